"""Every guarantee names the conditions that its proof needs: what a mechanism does is watched, and compared with its text."""

import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY, make_problem, options
from support_noise_recipes import RECIPES

import dpviz
from dpviz.common import random
from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, Mechanism, Training, all_rows, calibration
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.local.ldp_gaussian import LDPGaussian
from dpviz.mechanisms.objective.objective_tight import ObjectiveTight
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

ALL = dpviz.list_mechanisms()
BUDGET = Budget(1.0, 1e-5)


@dataclass
class Watch:
    """What a training did."""

    clips: bool = False
    single_precision: bool = False
    reads_minimum: bool = False
    features_matter: bool = False
    draws: set[str] = field(default_factory=set)


def watched(built: Mechanism, calibration: Calibration, problem: Problem, patch: pytest.MonkeyPatch) -> Watch:
    """Trains one replica, on the rows and on rows with other features, and keeps what it did."""
    seen, original, model = Watch(), random.generator, type(problem.model)
    summed, batched = model.sum_gradient, model.sum_batches
    here = threading.get_ident()  # a job of an earlier test may still train elsewhere

    class Watched(np.random.Generator):
        def standard_normal(self, *args: Any, **more: Any) -> Any:
            seen.single_precision |= more.get("dtype") is np.float32 and threading.get_ident() == here
            return super().standard_normal(*args, **more)

    def sum_gradient(self: Any, theta: np.ndarray, rows: Any, **more: Any) -> Any:
        if threading.get_ident() == here:
            seen.single_precision |= theta.dtype == np.float32
            seen.clips |= np.isfinite(more.get("clip_norm", np.inf))
        return summed(self, theta, rows, **more)

    def sum_batches(self: Any, theta: np.ndarray, rows: Any, batches: Any, **more: Any) -> Any:
        if threading.get_ident() == here:
            seen.single_precision |= more.get("precision") is np.float32
            seen.clips |= np.isfinite(more.get("clip_norm", np.inf))
        return batched(self, theta, rows, batches, **more)

    def optimum(self: Problem) -> np.ndarray:
        seen.reads_minimum |= threading.get_ident() == here
        return self.model.minimise(self.rows, self.lam)

    with patch.context() as inner:
        inner.setattr(all_rows, "_SINGLE_FROM", 0)  # as on a large table
        inner.setattr(model, "sum_gradient", sum_gradient)
        inner.setattr(model, "sum_batches", sum_batches)
        inner.setattr(Problem, "optimum", property(optimum))
        for module in list(sys.modules.values()):
            if getattr(module, "generator", None) is original:
                inner.setattr(module, "generator", lambda stream: Watched(np.random.PCG64(stream)))
        others = Problem(type(problem.rows)(problem.rows.X[::-1].copy(), problem.rows.y), problem.model, problem.lam)
        ends = [built.fit(Training(rows, [calibration], spawn(5, 1), record=False)) for rows in (problem, others)]
    seen.features_matter = not np.array_equal(ends[0].theta, ends[1].theta)
    return seen


def needed(cls: type[Mechanism], patch: pytest.MonkeyPatch, tried: list[dict[str, Any]]) -> set[str]:
    """The conditions that what a mechanism declares and does with the options tried makes necessary."""
    out, clips = set[str](), False
    problem = make_problem(n=20, d=4)
    sizes = [problem.model.setting(n, 4, problem.lam) for n in (4_000, 8_000)]
    for params in tried:
        built = cls.from_params(RECIPES[cls.id][1] | params)
        try:
            cal, *others = (built.calibrate(setting, BUDGET) for setting in (problem.setting, *sizes))
        except dpviz.InvalidInput:
            continue  # an option that needs more rows, or another model
        if cal.noise_scale <= 0:
            continue
        out |= {"ranges", "real-valued"}
        out |= {"public number of rows"} if len({(c.noise_scale, c.details.get("local_epsilon")) for c in others}) > 1 else set()
        if any("exact minimiser" in condition for condition in cal.conditions):
            out.add("exact minimum")
        seen = watched(built, cal, problem, patch)
        clips |= seen.clips
        out |= {"single precision"} if seen.single_precision else set()
        out |= {"minimum"} if seen.reads_minimum and cal.proved_budget else set()
        out |= {"rows in the unit ball"} if seen.features_matter else set()
    assert clips or "clipped" not in cls.guarantee, "who clips nothing must not say so"
    return out | ({"convex"} if cls.needs_strong_convexity else set())


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ONE_OF_EACH_FAMILY else pytest.mark.long) for n in ALL])
def test_every_guarantee_names_its_conditions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = ALL[name]
    tried = options(name) if name in ONE_OF_EACH_FAMILY else [{}]
    missing = {words for words in needed(cls, monkeypatch, tried) if words not in cls.guarantee}
    assert not missing


@pytest.mark.parametrize("cls", ALL.values(), ids=ALL)
def test_only_what_protects_nobody_has_no_conditions(cls: type[Mechanism]) -> None:
    assert bool(cls.supposes) == (cls.id != "non-private")
    assert cls.guarantee.count("Conditions: ") == bool(cls.supposes)
    assert ("convex" in cls.guarantee) or not cls.needs_strong_convexity


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (DPGD, {"public number of rows", "rows in the unit ball", "real-valued", "ranges", "single precision"}),
        (OutputGaussian, {"public number of rows", "minimum", "rows in the unit ball", "real-valued", "ranges", "convex"}),
        (LDPGaussian, {"public number of rows", "rows in the unit ball", "real-valued", "ranges", "single precision"}),
    ],
)
def test_what_is_needed_is_seen(cls: type[Mechanism], words: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a guarantee without conditions would miss all of these."""
    assert needed(cls, monkeypatch, options(cls.id)) == words


def test_an_exact_minimum_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "exact minimum" in needed(ObjectiveTight, monkeypatch, [{}])


def test_the_guarantee_of_a_new_mechanism_names_what_it_supposes() -> None:
    class Mine(OutputGaussian):
        guarantee = "Proved."
        supposes = (calibration.PUBLIC_N,)

    class Unconditional(OutputGaussian):
        guarantee = "Nothing."
        supposes = ()

    last = f"{calibration.PUBLIC_RANGES}; {calibration.REAL_NOISE}."
    assert f"Proved. Conditions: {calibration.PUBLIC_N}; {last}" == Mine.guarantee
    assert Unconditional.guarantee == "Nothing."
    assert Mine.order == OutputGaussian.order > dpviz.list_mechanisms()["non-private"].order
