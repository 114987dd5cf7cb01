"""Audits that change all rows of one person: an exact Gaussian is reached, and noise for one row of the person is caught."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpviz
from dpviz.auditing import EXCEEDED, audit
from dpviz.auditing.pairs import differing_rows, label_flip, make
from dpviz.auditing.result import NO_VIOLATION
from dpviz.auditing.runs import audit_run, pair_of
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Calibration
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.models import Setting, get_model
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.audit_bounds import Counts
from dpviz.privacy.budget import Budget

SVM, K, BUDGET = get_model("svm"), 5, Budget(2.0, 1e-5)


class OneRowOnly(DPGD):
    """The mistake: noise for one row of a person who has several."""

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        cal = super().calibrate(setting, budget)
        return replace(cal, noise_scale=cal.noise_scale / K)


def test_an_exact_gaussian_is_reached_and_noise_for_one_row_is_caught() -> None:
    """One clipped step whose worst pair moves the sum by 2kC: the person's true epsilon is the one asked for, by mu = k mu_1."""
    pair = make("quiet", SVM, 20, 2, 0.2, K)
    assert differing_rows(pair.first, pair.second).tolist() == [15, 16, 17, 18, 19]
    found = {
        cls: audit(cls(steps=1, clip_norm=0.25), pair.first, pair.second, BUDGET, 4000, 1, confidence=0.99)
        for cls in (DPGD, OneRowOnly)
    }
    right, wrong = found[DPGD], found[OneRowOnly]
    errors = 4000 * norm.cdf(-gaussian_mu(BUDGET) / 2)  # on each side, expected at the mid-point of two Gaussians mu apart
    expected = Counts(round(errors), round(errors), 4000).gaussian_epsilon_lower_bound(1e-5, right.confidence_of_each)
    assert abs(right.gaussian_epsilon_lower - expected) < 0.3
    assert right.gaussian_epsilon_lower < 2.0 > right.epsilon_lower > 0.3
    assert right.verdict == NO_VIOLATION
    assert wrong.epsilon_lower > 2.0
    assert wrong.verdict == EXCEEDED
    truth = float(gaussian_epsilon(1e-5, K * wrong.calibration.mu))  # type: ignore[operator]
    assert 0.8 * truth < wrong.gaussian_epsilon_lower < truth


def test_a_row_alone_would_not_see_it() -> None:
    pair, single = make("quiet", SVM, 20, 2, 0.2, K), make("quiet", SVM, 20, 2, 0.2)
    flipped = label_flip(pair.first, 19)
    result = audit(OneRowOnly(steps=1, clip_norm=0.25), flipped.first, flipped.second, BUDGET, 4000, 1, confidence=0.99)
    assert result.verdict == NO_VIOLATION
    with pytest.raises(InvalidInput, match="differ in 3 rows"):
        label_flip(single.first, np.array([17, 18, 19]))
    with pytest.raises(InvalidInput, match="several persons"):
        label_flip(pair.first, np.arange(14, 20))
    with pytest.raises(InvalidInput, match="pair"):
        audit(DPGD(), pair.first, single.second, BUDGET)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=200)
    return pd.DataFrame({"who": np.arange(200) % 50, "x": x, "y": np.where(x + rng.normal(0, 0.2, 200) > 0.5, "b", "a")})


def test_a_run_on_persons_is_attacked_by_all_rows_of_one() -> None:
    rows = dpviz.dataset(table(), target="y", ranges={"x": (0, 1)}, person="who", person_rows=4)
    spec = dpviz.RunSpec(rows, mechanism="output-gaussian", lam=0.1)
    shared = setup_for(spec)
    ids, who = shared.split.train, shared.dataset.persons
    of_first = ids[who[ids] == who[ids[0]]]
    for kind in ("without", "label-flip", "two-rows", "most-influential", "worst-case"):
        other = int(ids[who[ids] != who[ids[0]]][0])
        pair = pair_of(spec, kind, None if kind == "most-influential" else int(ids[0]), other)
        at = differing_rows(pair.first, pair.second)
        if kind == "worst-case":
            assert len(at) == 4
        else:
            assert len(set(who[ids[at]])) == 1
            assert "of one person" in pair.why
        if kind in ("without", "label-flip"):
            assert set(ids[at]) == set(of_first)
    assert audit_run(spec, runs=40).calibration.person_rows == 4
