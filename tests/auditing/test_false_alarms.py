"""How often the auditor accuses mechanisms that are right."""

from __future__ import annotations

import pytest

from dpviz.auditing import EXCEEDED, NO_VIOLATION, audit
from dpviz.auditing.pairs import make
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


@pytest.mark.long
def test_correct_mechanisms_raise_few_alarms() -> None:
    """200 audits at alpha = 0.01 on the pair that uses up the whole sensitivity: at most 7 alarms."""
    alarms, pair = 0, make("quiet", get_model("svm"), 20, 2, 0.2)
    for k in range(200):
        mechanism: Mechanism = (OutputGaussian(), DPGD(steps=2, step_size=0.1), CMSOutput(), OutputGaussian())[k % 4]
        budget = Budget((0.5, 1.0, 2.0, 4.0)[(k // 4) % 4], 1e-5)
        result = audit(mechanism, pair.first, pair.second, budget, runs=400, seed=k, confidence=0.99)
        assert result.verdict in (EXCEEDED, NO_VIOLATION)
        alarms += result.verdict == EXCEEDED
    assert alarms <= 7
