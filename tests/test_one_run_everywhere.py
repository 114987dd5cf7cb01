"""A page, a report, its Python call, its command and the link say the same of one run, whatever powers meet in it."""

import json
import shlex
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st
from support import ONE_OF_EACH_FAMILY
from support_pages import opened, plain, settled

import dpviz
from dpviz.cli.main import main
from dpviz.common.validate import InvalidInput
from dpviz.reporting import python_call, report_of, shell_call

#: values that differ from each other and from the defaults
RUNS = st.fixed_dictionaries(
    {
        "mechanism": st.sampled_from([*ONE_OF_EACH_FAMILY, "automatic", "dp-sgd", "renyi-filter"]),
        "dataset": st.sampled_from(["teaching", "iris"]),
        "epsilon": st.sampled_from([0.37, 2.6]),
        "delta": st.sampled_from([None, 3e-7]),
        "lam": st.sampled_from([None, 0.02]),
        "class_weight": st.sampled_from([1.0, 3.0]),
        "split_seed": st.sampled_from([0, 5]),
        "seed": st.sampled_from([0, 7]),
        "row_scaling": st.sampled_from(["automatic", "centred", "unit"]),
        "intercept": st.booleans(),
    }
)


def said(spec: dpviz.RunSpec) -> set[str]:
    """What must be equal wherever the run is shown: numbers to the last digit."""
    result = dpviz.run(spec)
    return {repr(result.accuracy.tolist()), repr(result.calibration.noise_scale), repr(result.calibration.proved_budget)}


@pytest.mark.long
@settings(max_examples=12, phases=[Phase.generate])
@given(RUNS)
def test_one_run_is_the_same_everywhere(one: dict[str, Any]) -> None:
    spec = dpviz.RunSpec(seeds=2, **one)
    try:
        result = dpviz.run(spec)
    except InvalidInput:
        reject()  # these powers exclude each other, which other tests ask for in words
    known = said(spec)
    assert said(dpviz.RunSpec.from_query(spec.to_query())) == known, "the link"
    exec(python_call(spec), scope := {})
    assert said(scope["result"].spec) == known, "the Python call"
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("sys.stdout.write", lines.append, raising=False)
        assert main([*shlex.split(shell_call(spec))[1:], "--json"]) == 0
    told = json.loads("".join(lines))
    assert told["accuracy"]["draws"] == result.accuracy.tolist(), "the command"
    assert told["guarantee"]["noise_scale"] == result.calibration.noise_scale
    assert told["guarantee"]["status"] == result.calibration.status
    report = plain(report_of(spec, metric="accuracy").sentence)
    page = settled(opened("One_model", **{"metric": "accuracy"} | spec.to_query()))
    shown = plain(next(m.value for m in page.markdown if " without privacy, " in m.value)).replace("**", "")
    assert " ".join(shown.split()).startswith(" ".join(report.split())), "the page and the report"
    mean = result.accuracy.mean() if result.expected_accuracy is None else result.expected_accuracy
    assert f"{100 * mean:.1f}" in shown
    if result.labels is None:  # a released label may be the same
        other = dpviz.run(dpviz.RunSpec(seeds=2, **one | {"seed": one["seed"] + 1}))
        assert not np.array_equal(other.theta, result.theta), "the control: another seed is another run"
