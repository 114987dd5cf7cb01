"""Mechanisms are found in the family folders and through the entry points of other packages."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import dpviz
from dpviz.mechanisms import registry
from dpviz.mechanisms.registry import GROUP

SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms import Calibration, Fit, NoiseRecord, ProtectsQuery, Training, knob


@dataclass(frozen=True)
class Rounded(ProtectsQuery):
    """The minimiser, rounded."""

    id = "{id}"
    label = "Rounded minimiser"
    family = "output"
    citation = "nobody"
    noise_enters = "Nowhere."
    guarantee = "None."

    digits: int = knob(2, "Digits", "Digits that are kept.", low=0, high=10)

    def calibrate(self, setting, budget):
        return Calibration.unprotected(
            budget, query="the minimiser", sensitivity_source="none", noise_scale=0.0, accountant="none"
        )

    def fit(self, training):
        theta = training.problem.optimum.round(self.digits)
        shape = (len(training.calibrations), len(training.streams), len(theta))
        return Fit(np.broadcast_to(theta, shape).copy(), NoiseRecord("nowhere"))

    def query(self, problem, theta, streams):
        return problem.optimum[None].repeat(len(streams), axis=0)
'''


def install(folder: Path, source: str, target: str = "strange_methods.rounding:Rounded", name: str = "rounded") -> None:
    """A distribution as an installer would leave it: a package, and a dist-info folder with the entry point."""
    package = folder / "strange_methods"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "rounding.py").write_text(source)
    about = folder / "strange_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-methods\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the distribution."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})


@pytest.mark.long
def test_a_method_of_another_package_runs_without_an_edit_here(tmp_path: Path) -> None:
    install(tmp_path, SOURCE.replace("{id}", "rounded"))
    done = run(
        tmp_path,
        "import dpviz, json\n"
        "from dpviz.experiments.run.resolve import resolve\n"
        "spec = dpviz.RunSpec.from_query('?dataset=iris&mechanism=rounded&rounded.digits=1&seeds=2')\n"
        "result = dpviz.run(spec)\n"
        "print(json.dumps([list(dpviz.list_mechanisms()), spec.to_query(), result.theta.tolist(), resolve(spec).key()]))",
    )
    assert done.returncode == 0, done.stderr
    names, query, theta, key = json.loads(done.stdout)
    assert set(names) == {*dpviz.list_mechanisms(), "rounded"}
    assert query["rounded.digits"] == "1"
    assert all(value == round(value, 1) for row in theta for value in row)
    assert "rounded" in key


def test_two_mechanisms_with_one_id_are_an_error_that_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, SOURCE.replace("{id}", "dp-gd"))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        with pytest.raises(dpviz.InvalidInput) as caught:
            registry._all.__wrapped__()
    said = str(caught.value)
    for name in [name for name in sys.modules if name.startswith("strange_methods")]:
        del sys.modules[name]
    assert "two mechanisms have the id 'dp-gd'" in said
    assert "dpviz.mechanisms.gradient.dp_gd.DPGD" in said
    assert "strange_methods.rounding.Rounded" in said


@pytest.mark.parametrize(
    "target", ["unittest:TestCase", "dpviz.mechanisms.base:Mechanism", "dpviz.mechanisms.base:knob", "dpviz:list_mechanisms"]
)
def test_an_entry_point_names_a_mechanism_with_an_id(target: str) -> None:  # a TestCase has an id, and is none
    with pytest.raises(dpviz.InvalidInput, match="neither a mechanism nor a module"):
        list(registry._of_entry_point(EntryPoint("strange", target, GROUP)))
    good = EntryPoint("fine", "dpviz.mechanisms.gradient.dp_gd:DPGD", GROUP)
    assert list(registry._of_entry_point(good)) == [dpviz.list_mechanisms()["dp-gd"]]
