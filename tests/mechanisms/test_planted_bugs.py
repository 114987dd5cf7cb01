"""Mistakes as they are found in real code: the auditor catches each, and accuses no mechanism that is without it."""

from typing import Any

import doubles
import pytest

from dpviz.auditing import EXCEEDED, NO_VIOLATION, audit, battery
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

SMALL = {"n": 24, "d": 4, "lam": 0.1}

#: double, its knobs, claimed epsilon, the pair that shows it, iterates seen, sizes, runs
BY_AUDIT: list[tuple[type[Mechanism], dict[str, Any], float, str, tuple[int, ...], dict[str, Any], int]] = [
    (doubles.ReusedNoise, {"steps": 5}, 1.0, "quiet", (1, 2), SMALL, 1000),
    (doubles.FittedScaler, {}, 1.0, "outlier", (), SMALL | {"n": 200}, 1000),
    (doubles.LocalSensitivity, {}, 1.0, "presence", (), SMALL, 1000),
    (doubles.PerCoordinateLaplace, {}, 3.0, "quiet", (), SMALL | {"d": 25}, 4000),
    (doubles.FixedBatches, {"steps": 20, "step_size": 0.02}, 1.0, "quiet", (19,), SMALL | {"n": 40}, 2000),
]


def play(cls: type[Mechanism], params: dict[str, Any], eps: float, pair: str, iterates: Any, size: Any, runs: int) -> str:
    mechanism = cls(**params)
    chosen = next(p for p in battery(mechanism, get_model("svm"), **size) if p.name == pair)
    return audit(mechanism, chosen.first, chosen.second, Budget(eps, 1e-5), runs, 3, confidence=0.99, iterates=iterates).verdict


@pytest.mark.parametrize("case", BY_AUDIT, ids=lambda case: case[0].__name__)
def test_the_auditor_catches(case: Any) -> None:
    assert play(*case) == EXCEEDED
    # the same game on what it was before the mistake
    original = next(base for base in case[0].__mro__ if base in (OutputGaussian, DPGD, CMSOutput))
    params = {k: v for k, v in case[1].items() if k in original.knobs()}
    assert play(original, params, *case[2:]) == NO_VIOLATION
