"""What training really does beside what is proved: observed sensitivity and observed excess empirical risk.

Both look at data without any noise: they are diagnostics for whoever holds the data, never something to publish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.random import spawn
from dpviz.common.threads import map_streams
from dpviz.common.validate import InvalidInput, whole
from dpviz.datasets.base import train_size
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import Mechanism
from dpviz.models import Rows, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, default_delta
from dpviz.privacy.sensitivity.bounds import logistic_worst_pair

Floats = NDArray[np.float64]

#: how a neighbouring pair comes about
KINDS = {
    "random": "a row is replaced by a random one on the unit sphere",
    "flipped": "a row's label is flipped",
    "adversarial": "a row is one of two whose gradients differ most at the minimiser, along the flattest direction",
    "worst-case data": "all other rows are equal, and the replaced row is one of two whose gradients differ most",
}


def kinds_of(setting: Setting) -> tuple[str, ...]:
    """The kinds of neighbours that can be made: where gradients differ most is known for linear models only."""
    return tuple(KINDS) if setting.m == setting.d else ("random", "flipped")


@dataclass(frozen=True, eq=False)
class Moves:
    """How far the protected query moved between neighbouring datasets.

    Attributes:
        kind: (K,) keys of `KINDS`.
        distance: (K,) largest L2 distance over the shared streams.
        bound: worst-case sensitivity that the calibration uses.
    """

    kind: NDArray[np.str_]
    distance: Floats
    bound: float

    def largest(self, kind: str | None = None) -> float:
        """The largest distance, of one kind or of all; NaN where there is none."""
        chosen = self.distance if kind is None else self.distance[self.kind == kind]
        return float(chosen.max()) if len(chosen) else float("nan")


def observed_sensitivity(
    problem: Problem,
    mechanism: Mechanism,
    pairs: int = 12,
    *,
    kinds: Sequence[str] | None = None,
    seed: int = 0,
    streams: int = 2,
    monitor: Monitor = silent,
) -> Moves:
    """Retrains on neighbouring datasets that share all randomness, and measures how far `Mechanism.query` moves.

    Mechanisms whose query is asked at a point are asked at 0, at the minimiser and at random points between.

    Args:
        kinds: all that the model has by default, see `kinds_of`.
        pairs: neighbouring pairs of each kind; one suffices for "worst-case data".
        streams: shared random streams per pair; the largest distance over them counts.

    Raises:
        InvalidInput: an unknown kind.
        NotImplementedError: the mechanism protects no query of bounded sensitivity.
    """
    known = kinds_of(problem.setting)
    kinds = known if kinds is None else kinds
    for kind in kinds:
        if kind not in known:
            raise InvalidInput("kinds", f"{problem.model.id!r} has no kind {kind!r}", f"Choose from: {', '.join(known)}.")
    count = whole("pairs", pairs, 1, 100_000)
    rng = np.random.default_rng(seed)
    pools = spawn(seed, streams)
    bound = mechanism.calibrate(problem.setting, Budget(1.0, default_delta(problem.n))).sensitivity
    theta = np.zeros((streams, problem.m))
    theta[1:] = problem.optimum * rng.uniform(0.0, 1.5, (streams - 1, 1))
    base = mechanism.query(problem, theta, pools)
    made = [(kind, k) for kind in kinds for k in range(1 if kind == "worst-case data" else count)]
    seeds = np.random.SeedSequence(seed).spawn(len(made))

    def work(k: int, tick: Callable[[float], None]) -> float:
        first, second = _pair(problem, made[k][0], np.random.default_rng(seeds[k]))
        before = base if first is problem else mechanism.query(first, theta, pools)
        tick(0.5)
        return float(np.linalg.norm(mechanism.query(second, theta, pools) - before, axis=1).max())

    distances = map_streams(work, len(made), monitor)
    return Moves(np.array([kind for kind, _ in made]), np.array(distances), bound)


def _pair(problem: Problem, kind: str, rng: np.random.Generator) -> tuple[Problem, Problem]:
    n, d = problem.rows.X.shape
    index = int(rng.integers(n))
    if kind == "flipped":
        return problem, problem.replace_row(index, problem.rows.X[index], -problem.rows.y[index])
    if kind == "random":
        x = rng.standard_normal(d)
        return problem, problem.replace_row(index, np.asarray(x / np.linalg.norm(x), float), float(rng.choice([-1.0, 1.0])))
    if kind == "adversarial":
        _, vectors = np.linalg.eigh(problem.model.hessian(problem.optimum, problem.rows, problem.lam))
        z, other = _opposed(problem, problem.optimum, vectors[:, 0])
    else:
        crowd = Rows(np.tile(np.eye(1, d), (n, 1)), np.ones(n))
        problem = Problem(crowd, problem.model, problem.lam)
        z, other = _opposed(problem, problem.optimum, np.eye(d)[-1])
    return problem.replace_row(index, z, 1.0), problem.replace_row(index, other, 1.0)


def _opposed(problem: Problem, theta: Floats, flat: Floats) -> tuple[Floats, Floats]:
    """Two signed rows of length 1 whose gradients at theta differ most (for the logistic loss), mostly along `flat`."""
    length = float(np.linalg.norm(theta))
    along = theta / length if length > 0 else np.eye(len(theta))[0]
    across = flat - (flat @ along) * along
    size = float(np.linalg.norm(across))
    if size < 1e-9:
        return along, -along
    across = across / size
    p, q = logistic_worst_pair(length) if problem.setting.model == "logistic" else (0.0, 0.0)
    return p * along + np.sqrt(1 - p * p) * across, q * along - np.sqrt(1 - q * q) * across


def _part(monitor: Monitor, start: float, share: float) -> Monitor:
    """A monitor for a piece of the work."""
    return lambda done: monitor(start + share * done)


def census_name(n: int) -> str:
    """The synthetic census of n people."""
    return f"census-{whole('n', n, 100, 1_000_000)}"


def same_share(mechanism: Mechanism, n: int, other: int) -> Mechanism:
    """The mechanism for `other` rows with batches of the same share of the rows as it has for n.

    With the passes fixed too, every published sensitivity of mini-batch descent is then exactly proportional to 1/n.
    A batch size of 0, the mechanism's own choice, becomes what it is for n.
    """
    changed: dict[str, int] = {}
    for name, declared in mechanism.knobs().items():
        if declared.unit == "rows":
            size = getattr(mechanism, name) or mechanism.automatic(name, n)
            changed[name] = int(min(max(round(size * other / n), 1), declared.high))
    return replace(mechanism, **changed)


def sensitivity_over_n(
    spec: RunSpec, sizes: Sequence[int], pairs: int = 6, *, share: bool = True, monitor: Monitor = silent
) -> list[tuple[int, Moves]]:
    """(training rows, moves) of a spec's mechanism on synthetic censuses of the given sizes.

    Args:
        share: batches keep their share of the rows of the spec's own data; otherwise their size or rule stays.
    """
    out = []
    total = float(sum(sizes))
    done = 0.0
    for size in sizes:
        here = replace(spec, dataset=census_name(size), delta=None)
        problem = setup_for(here).problem
        mechanism = same_share(spec.build(), spec.n_train, problem.n) if share else spec.build()
        part = _part(monitor, done / total, size / total)
        out.append((problem.n, observed_sensitivity(problem, mechanism, pairs, seed=spec.seed, monitor=part)))
        done += size
    return out


@dataclass(frozen=True, eq=False)
class Excess:
    """Observed excess empirical risk of private models at one setting.

    Attributes:
        n, d, epsilon, delta: the setting.
        gap: (S,) objective above its minimum.
        noise_scale: of the calibration.
        eigenvalues: (d,) of the Hessian at the minimum; none for a network, where nothing follows from them.
        start: objective at 0 above its minimum.
    """

    n: int
    d: int
    epsilon: float
    delta: float
    gap: Floats
    noise_scale: float
    eigenvalues: Floats
    start: float

    @property
    def mean(self) -> float:
        """Mean over the noise draws."""
        return float(self.gap.mean())


def excess_risk(
    problem: Problem, mechanism: Mechanism, budgets: Sequence[Budget], seeds: int, seed: int = 0, monitor: Monitor = silent
) -> list[Excess]:
    """Excess empirical risk of `seeds` noise draws at every budget, trained together."""
    calibrations = [mechanism.calibrate(problem.setting, b) for b in budgets]
    fit = mechanism.fit(problem, calibrations, spawn(seed, seeds), record=False, monitor=monitor)
    if not np.isfinite(fit.theta).all():
        raise InvalidInput("mechanism", "training diverged with these settings", "Use a smaller step size.")
    e, s, m = fit.theta.shape
    objective = problem.objective(fit.theta.reshape(e * s, m)).reshape(e, s)
    values: Floats = np.empty(0)
    if problem.model.convex:
        values = np.linalg.eigvalsh(problem.model.hessian(problem.optimum, problem.rows, problem.lam)).astype(float)
    start = float(problem.objective(np.zeros((1, m)))[0]) - problem.optimal_value
    return [
        Excess(problem.n, m, b.epsilon, b.delta, gap - problem.optimal_value, cal.noise_scale, values, start)
        for b, cal, gap in zip(budgets, calibrations, objective, strict=True)
    ]


def excess_over_epsilon(spec: RunSpec, epsilons: Sequence[float], *, monitor: Monitor = silent) -> list[Excess]:
    """On the spec's own data, at its own delta."""
    budgets = [Budget(e, spec.budget.delta) for e in epsilons]
    return excess_risk(setup_for(spec).problem, spec.build(), budgets, spec.seeds, spec.seed, monitor)


def excess_over_n(spec: RunSpec, sizes: Sequence[int], *, monitor: Monitor = silent) -> list[Excess]:
    """On synthetic censuses of the given sizes, at one delta: that of the spec, or the smallest default among the sizes."""
    out, total, done = [], float(sum(sizes)), 0.0
    budget = Budget(spec.epsilon, min(spec.budget.delta, *(default_delta(train_size(size)) for size in sizes)))
    for size in sizes:
        here = replace(spec, dataset=census_name(size), delta=None)

        part = _part(monitor, done / total, size / total)
        out += excess_risk(setup_for(here).problem, here.build(), [budget], spec.seeds, spec.seed, part)
        done += size
    return out


def excess_over_d(spec: RunSpec, dims: Sequence[int], *, monitor: Monitor = silent) -> list[Excess]:
    """On the spec's rows with further features that are 0 in every row: the data stays, only the noise gets more room.

    Raises:
        InvalidInput: fewer dimensions than the data has.
    """
    problem, out = setup_for(spec).problem, []
    width = problem.rows.X.shape[1]
    if min(dims) < width:
        raise InvalidInput("dims", f"{min(dims)} is below the {width} features of the data", f"Give numbers from {width} up.")
    for k, d in enumerate(dims):
        rows = Rows(np.pad(problem.rows.X, ((0, 0), (0, d - width))), problem.rows.y)
        wide = Problem(rows, problem.model, problem.lam)
        part = _part(monitor, k / len(dims), 1 / len(dims))
        out += excess_risk(wide, spec.build(), [spec.budget], spec.seeds, spec.seed, part)
    return out


def loglog_slope(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> tuple[float, float]:
    """(slope, intercept) of the least-squares line through (ln x, ln y), over the points where both are above 0.

    Returns NaN where fewer than two points are left.
    """
    a, b = np.asarray(x, float), np.asarray(y, float)
    keep = np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0)
    if len(np.unique(a[keep])) < 2:
        return float("nan"), float("nan")
    slope, intercept = np.polyfit(np.log(a[keep]), np.log(b[keep]), 1)
    return float(slope), float(intercept)
