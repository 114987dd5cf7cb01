"""One status everywhere: what was read from the rows stands beside the word "proved" on every surface."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import dpviz
from dpviz.cli.main import main
from dpviz.experiments.run.setup import calibration_of
from dpviz.reporting import words


def draw_badge(name: str) -> None:
    import dpviz
    from dpviz.dashboard.components import guarantee
    from dpviz.experiments.run.setup import calibration_of

    spec = dpviz.RunSpec(name, mechanism="output-gaussian", lam=0.1)
    guarantee.badge(calibration_of(spec), spec.build(), fold=False)


@pytest.mark.parametrize("declared", [0, 1, 2])
def test_every_surface_says_what_was_read_from_the_rows(
    declared: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All, one and none of the ranges of two columns are read; the last is the control."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (200, 2)), columns=["a", "b"]).assign(y=np.arange(200) % 2)
    frame.to_csv("mine.csv", index=False)
    ranges = dict(list({"a": (0, 9), "b": (0, 9)}.items())[:declared])
    sentence = ["proved, given 2 ranges and categories that were read from the rows"]
    sentence = [*sentence, "proved, given 1 range or category that was read from the rows", "proved"][declared]

    spec = dpviz.RunSpec(dpviz.dataset(frame, target="y", ranges=ranges).name, mechanism="output-gaussian", lam=0.1)
    said = {"badge": words.guarantee(calibration_of(spec), spec.build())}
    page = AppTest.from_function(draw_badge, args=(spec.dataset,)).run()
    said["page"] = next(text.value for text in page.markdown if "proved" in text.value)
    said["card"] = dpviz.release(spec, ranges_from_data=True).card
    table = ["mine.csv", "--target=y", "--mechanism=output-gaussian", "--lam=0.1"]
    table += [f"--range={name}=0,9" for name in ranges]
    for name, command in {
        "run": ["run", *table, "--seeds=2"],
        "run, JSON": ["run", *table, "--seeds=2", "--json"],
        "calibrate": ["calibrate", *table],
        "release": ["release", *table, "--ranges-from-data", "--out=model"],
    }.items():
        assert main(command) == 0
        said[name] = capsys.readouterr().out
    said["model.json"] = json.loads(Path("model/model.json").read_text())["privacy"]["sentence"]
    x, how = frame[["a", "b"]].to_numpy(float), "from data" if declared == 0 else (0, 9)
    if declared != 1:  # a classifier reads all ranges or none
        guarantee = dpviz.PrivateClassifier("output-gaussian", data_norm=None, ranges=how).fit(x, frame["y"]).guarantee_
        said["classifier"] = str(guarantee)
    plain = {
        name: text.replace("\\", "").replace("\u00a0", " ").replace(" under stated conditions", "") for name, text in said.items()
    }
    assert [name for name, text in plain.items() if sentence not in text] == []
    assert [name for name, text in plain.items() if ("given" in text) != (declared < 2)] == []
