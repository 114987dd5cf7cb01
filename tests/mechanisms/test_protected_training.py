"""What is trained is what is accounted for: gradients clipped row by row, and rows drawn as often as the event says."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chi2
from support import make_problem, options

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import DeclaresEvent, ProtectsQuery, Training
from dpviz.mechanisms.gradient.dp_agd import DPAGD, Runs
from dpviz.mechanisms.output.bolt_on_psgd import BoltOnPSGD
from dpviz.mechanisms.output.permuted_sgd import Permuted
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Step, steps_of
from dpviz.privacy.budget import Budget

ALL = dpviz.list_mechanisms()
BUDGET = Budget(1.0, 1e-5)
CLIPS = [name for name, cls in ALL.items() if "clip_norm" in cls.knobs()]
#: knobs with which the end of a run depends on the clip norm alone
STEADY: dict[str, dict[str, Any]] = {"bassily-sgd": {"rule": "strongly-convex", "radius": 1000.0}, "dp-gd": {"steps": 3}}
STEADY |= {"dp-svrg": {"rounds": 2, "inner_steps": 3}, "renyi-filter": {"full_steps": 3}}


def end(name: str, params: dict[str, Any], clip: float, n: int) -> np.ndarray:
    """(m,) where training without noise ends on n equal rows, whose gradients are all longer than the clip norm."""
    problem = Problem(Rows(np.tile([1.0, 0.0, 0.0], (n, 1)), np.ones(n)), get_model("logistic"), 0.05)
    knobs = {"sampling_rate": 1.0, "epochs": 3.0, "step_size": 0.5, "batch": n, "clip_norm": clip}
    knobs |= STEADY.get(name, {}) | params
    built = ALL[name].from_params({k: v for k, v in knobs.items() if k in ALL[name].knobs()})
    cal = built.calibrate(problem.setting, BUDGET)
    if isinstance(built, DPAGD):  # its steps have lengths of their own
        runs = Runs(built, problem, [cal.noiseless()], spawn(0, 1))
        runs.measure()
        found: np.ndarray = runs.exact[0] / n
        return found
    return built.fit(Training(problem, [cal.noiseless()], spawn(0, 1))).theta[0, 0]


@pytest.mark.parametrize("name", CLIPS)
def test_every_row_is_clipped_before_rows_are_added(name: str) -> None:
    """Twice the clip norm takes the model twice as far, and twice as many rows no further."""
    for params in options(name):
        if "rule" in params or params.get("relation") == "add-remove":
            continue
        far, near = end(name, params, 0.02, 12), end(name, params, 0.01, 24)
        assert np.linalg.norm(near) > 0
        np.testing.assert_allclose(far, 2 * near, rtol=1e-4, err_msg=str(params))


@pytest.mark.parametrize("clip", [0.02, 1.0, 7.0])
@pytest.mark.parametrize("name", CLIPS)
def test_rows_are_clipped_at_the_clip_norm_itself(name: str, clip: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the model, in every form: a factor in it would pass the test above."""
    seen: set[float] = set()
    model = type(get_model("logistic"))
    original = model.sum_gradient

    def sum_gradient(self: Any, theta: Any, rows: Any, **more: Any) -> Any:
        seen.add(more.get("clip_norm", np.inf))
        return original(self, theta, rows, **more)

    monkeypatch.setattr(model, "sum_gradient", sum_gradient)
    for params in options(name):
        try:
            end(name, params, clip, 12)
        except dpviz.InvalidInput:
            continue  # this option is refused with such steps
        built = ALL[name].from_params({"clip_norm": clip})
        small = make_problem(n=12)
        if isinstance(built, ProtectsQuery):
            built.query(small, np.zeros((1, small.m)), spawn(0, 1))
    assert seen == {clip}


def drawn(name: str, params: dict[str, Any]) -> tuple[Any, Step] | None:
    """The mechanism, and the step of its event in which a row takes part by chance."""
    built = ALL[name].from_params({"epochs": 5.0} | params if "epochs" in ALL[name].knobs() else params)
    problem = make_problem(n=40)
    if not isinstance(built, DeclaresEvent) or built.refusal(problem.setting):
        return None
    event = built.released(problem.setting, built.calibrate(problem.setting, BUDGET))
    chance = [step for step in (() if event is None else steps_of(event)) if step.rate < 1]
    return (built, chance[0]) if chance else None


DRAWN = [(name, params) for name in ALL for params in options(name) if drawn(name, params)]


def test_the_sampled_mechanisms_are_among_these() -> None:
    assert {name for name, _ in DRAWN} == {"dp-sgd", "dp-lssgd", "bassily-sgd", "dp-svrg"}


@pytest.mark.parametrize(("name", "params"), [case for case in DRAWN if not case[1]])
def test_rows_are_drawn_as_often_as_the_event_says(name: str, params: dict[str, Any]) -> None:
    found = drawn(name, params)
    assert found is not None
    built, step = found
    problem = make_problem(n=40)
    cal = built.calibrate(problem.setting, BUDGET)
    visits = built.fit(Training(problem, [cal], spawn(3, 10))).record.visits
    always = built.rounds if name == "dp-svrg" else 0  # full gradients
    times = np.broadcast_to(visits, (1, 10, 40))[0] - always
    trials = step.count * 40 * 10
    assert binomtest(int(times.sum()), trials, step.rate).pvalue > 1e-6
    assert binomtest(round(times.sum() * 1.1), trials, step.rate).pvalue < 1e-6 or trials < 5000
    # a fresh choice in every step: the times of a row are binomial, and no two replicas have the same ones
    spread = float(((times - step.count * step.rate) ** 2).sum() / (step.count * step.rate * (1 - step.rate)))
    assert chi2.ppf(1e-6, times.size) < spread < chi2.isf(1e-6, times.size)
    assert len(np.unique(times, axis=0)) == 10


@pytest.mark.parametrize("name", [name for name, cls in ALL.items() if issubclass(cls, Permuted | BoltOnPSGD)])
def test_every_replica_has_an_order_of_its_own(name: str) -> None:
    problem = make_problem(n=40)
    built = ALL[name].from_params({"batch_size": 10})
    ends = built.query(problem, np.zeros((1, problem.m)), spawn(4, 6))  # type: ignore[attr-defined]
    assert len(np.unique(ends, axis=0)) == 6
