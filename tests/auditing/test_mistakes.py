"""Mistakes that the auditor catches, in real code, on networks and for persons; without them it accuses nobody."""

from dataclasses import replace
from typing import Any

import doubles
import numpy as np
import pandas as pd
import pytest
from doubles import WeakDescent
from scipy.stats import norm
from support import assert_refused

import dpviz
from dpviz.auditing import EXCEEDED, NO_VIOLATION, audit, battery, worst_case
from dpviz.auditing.pairs import differing_rows, label_flip, make
from dpviz.auditing.runs import audit_run, pair_of
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Calibration, Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import Setting, get_model
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.audit_bounds import Counts
from dpviz.privacy.budget import Budget

TWO = get_model("mlp-2")


@pytest.mark.parametrize("pair", ["quiet", "pushed"])
def test_half_of_the_noise_is_caught_on_a_network(pair: str) -> None:
    chosen = make(pair, TWO, 24, 4, 0.1)
    game = (chosen.first, chosen.second, Budget(2.0, 1e-5), 2000, 3)
    assert audit(WeakDescent(steps=1, share=0.5), *game, confidence=0.99).verdict == EXCEEDED
    assert audit(WeakDescent(steps=1, share=1.0), *game, confidence=0.99).verdict == NO_VIOLATION


def test_worst_cases_for_networks_and_what_cannot_be_asked() -> None:
    budget = Budget(1.0, 1e-5)
    for name, cls in dpviz.list_mechanisms().items():
        if cls.refusal(TWO.setting(100, 3, 0.1)):
            assert_refused(worst_case, cls(), TWO, budget, n=30, d=3, lam=0.1, match="mechanism")
        elif name != "non-private":
            assert worst_case(cls(), TWO, budget, n=30, d=3, lam=0.1).first.model.id == "mlp-2"


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


SVM, PERSON_ROWS, BUDGET = get_model("svm"), 5, Budget(2.0, 1e-5)


class OneRowOnly(DPGD):
    """The mistake: noise for one row of a person who has several."""

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        cal = super().calibrate(setting, budget)
        return replace(cal, noise_scale=cal.noise_scale / PERSON_ROWS)


def test_an_exact_gaussian_is_reached_and_noise_for_one_row_is_caught() -> None:
    """One clipped step whose worst pair moves the sum by 2kC: the person's true epsilon is the one asked for, by mu = k mu_1."""
    pair = make("quiet", SVM, 20, 2, 0.2, PERSON_ROWS)
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
    truth = float(gaussian_epsilon(1e-5, PERSON_ROWS * wrong.calibration.mu))  # type: ignore[operator]
    assert 0.8 * truth < wrong.gaussian_epsilon_lower < truth


def test_a_row_alone_would_not_see_it() -> None:
    flipped = label_flip(make("quiet", SVM, 20, 2, 0.2, PERSON_ROWS).first, 19)
    result = audit(OneRowOnly(steps=1, clip_norm=0.25), flipped.first, flipped.second, BUDGET, 4000, 1, confidence=0.99)
    assert result.verdict == NO_VIOLATION


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
