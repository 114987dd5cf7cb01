"""Observed excess empirical risk of private models over epsilon, over the number of rows and over the dimension.

It is measured on the training rows without noise: a diagnostic for the holder of the data, never something to publish.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.datasets.base import train_size
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.observed import census_name
from dpviz.mechanisms import Calibration, HasExcessTheory, Training, protection
from dpviz.models import Rows, derivatives_of, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, default_delta


@dataclass(frozen=True, eq=False)
class Excess:
    """Observed excess empirical risk of private models at one setting.

    Attributes:
        n, d, epsilon, delta, lam: the setting.
        gap: (S,) objective above its minimum.
        noise_scale: of the calibration.
        eigenvalues: (d,) of the Hessian at the minimum; none for a network, where nothing follows from them.
        start: objective at 0 above its minimum.
    """

    n: int
    d: int
    epsilon: float
    delta: float
    lam: float
    gap: Floats
    noise_scale: float
    eigenvalues: Floats
    start: float

    @property
    def mean(self) -> float:
        """Mean over the noise draws."""
        return float(self.gap.mean())


def excess_risk(problem: Problem, calibration: Calibration, gap: Floats) -> Excess:
    """The excess empirical risk of trained replicas, with what theory needs.

    Args:
        problem: what they were trained on, at their own regularisation.
        gap: (S,) `Trained.optimality_gap`.
    """
    values: Floats = np.empty(0)
    if problem.model.convex:
        hessian = derivatives_of(problem.model).hessian(problem.optimum, problem.rows, problem.lam)
        values = np.linalg.eigvalsh(hessian).astype(float)
    start = float(problem.objective(np.zeros((1, problem.m)))[0]) - problem.optimal_value
    budget = calibration.budget
    return Excess(problem.n, problem.m, budget.epsilon, budget.delta, problem.lam, gap, calibration.noise_scale, values, start)


def excess_over_epsilon(spec: RunSpec, epsilons: Sequence[float], *, monitor: Monitor = ignore) -> list[Excess]:
    """On the spec's own data, at its own delta; an automatic regularisation is that of each budget."""
    results = run_epsilons(spec, epsilons, instances=False, monitor=monitor)
    return [excess_risk(each.setup.problem, each.calibration, each.optimality_gap) for each in results]


def _trained_on(problem: Problem, spec: RunSpec, budget: Budget, monitor: Monitor) -> Excess:
    """The excess risk of a run's method on a problem that is none of the run's."""
    mechanism = spec.build()
    calibration = protection.calibrate(mechanism, problem.setting, budget)
    training = Training(problem, [calibration], spawn(spec.seed, spec.seeds), record=False, monitor=monitor)
    return excess_risk(problem, calibration, train(mechanism, training).optimality_gap[0])


def excess_over_n(spec: RunSpec, sizes: Sequence[int], *, monitor: Monitor = ignore) -> list[Excess]:
    """On synthetic censuses of the given sizes, at one delta: that of the spec, or the smallest default among the sizes."""
    out = []
    budget = Budget(spec.epsilon, min(resolve(spec).budget.delta, *(default_delta(train_size(size)) for size in sizes)))
    for size, inside in track(monitor, sizes, float):
        here = replace(spec, dataset=census_name(size), delta=budget.delta, lam=resolve(spec).lam, published_split=False)
        out.append(_trained_on(setup_for(here).problem, here, budget, inside))
    return out


def excess_over_d(spec: RunSpec, dims: Sequence[int], *, monitor: Monitor = ignore) -> list[Excess]:
    """On the spec's rows with further features that are 0 in every row: the data stays, only the noise gets more room.

    Raises:
        InvalidInput: fewer dimensions than the data has.
    """
    problem, out = setup_for(spec).problem, []
    width = problem.rows.X.shape[1]
    if min(dims) < width:
        raise InvalidInput("dims", f"{min(dims)} is below the {width} features of the data", f"Give numbers from {width} up.")
    for d, inside in track(monitor, dims):
        kept = problem.rows
        padded = np.pad(kept.X, ((0, 0), (0, d - width)))
        rows = Rows(padded, kept.y, kept.person_rows, kept.weights, kept.class_weights, kept.persons, kept.preparations)
        out.append(_trained_on(Problem(rows, problem.model, problem.lam), spec, resolve(spec).budget, inside))
    return out


@dataclass(frozen=True)
class Axis:
    """A quantity that excess risk is drawn over.

    Attributes:
        key: "epsilon", "n" or "d".
        title: of the axis.
        data: what is trained on, in words.
        measure: (spec, grid, monitor) -> excess risk at every value of the grid.
        of: the value on the axis that an `Excess` belongs to.
    """

    key: str
    title: str
    data: str
    measure: Callable[..., list[Excess]]
    of: Callable[[Excess], float]


#: what excess risk may be drawn over
AXES = {
    "epsilon": Axis("epsilon", "ε", "this dataset", excess_over_epsilon, lambda e: e.epsilon),
    "n": Axis("n", "training rows n", "synthetic censuses", excess_over_n, lambda e: e.n),
    "d": Axis("d", "parameters d", "the same rows with features that are 0 in all rows", excess_over_d, lambda e: e.d),
}


def theory(spec: RunSpec, measured: Sequence[Excess]) -> list[dict[str, float]]:
    """`HasExcessTheory.excess_theory` at every measured setting; empty for models without a proved minimum."""
    mechanism = spec.build()
    here, model = setting_of(spec), get_model(spec.model)
    out: list[dict[str, float]] = []
    for e in measured:
        if not isinstance(mechanism, HasExcessTheory) or not model.convex or e.noise_scale <= 0:
            out.append({})
            continue
        setting = model.setting(e.n, e.d if here.m == here.d else here.d, e.lam)
        out.append(mechanism.excess_theory(setting, e.noise_scale, e.start, e.eigenvalues))
    return out


def table(measured: Sequence[Excess], formulas: Sequence[dict[str, float]]) -> pd.DataFrame:
    """One row per setting: n, d, epsilon, delta, lam, noise_scale, mean, standard_error, and what `theory` gives."""
    return pd.DataFrame(
        [
            {
                "n": e.n,
                "d": e.d,
                "epsilon": e.epsilon,
                "delta": e.delta,
                "lam": e.lam,
                "noise_scale": e.noise_scale,
                "mean": e.mean,
                "standard_error": e.gap.std(ddof=1) / np.sqrt(len(e.gap)) if len(e.gap) > 1 else np.nan,
                **formula,
            }
            for e, formula in zip(measured, formulas, strict=True)
        ]
    )


def share_of_the_start(formulas: Sequence[dict[str, float]]) -> float | None:
    """Largest share of the bound that is the start which training has not yet forgotten; None where no bound says.

    This part does not fall with n or epsilon, so a rate's slope shows only where it is small.
    """
    key = "of the bound, start not yet forgotten"
    if not any(key in f for f in formulas):
        return None
    return max((f[key] / f["bound"] for f in formulas if f.get("bound")), default=None)
