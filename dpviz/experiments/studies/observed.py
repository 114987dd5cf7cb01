"""Observed sensitivity: how far the protected query changes when a mechanism is retrained on neighbouring datasets.

It looks at data without any noise: a diagnostic for the holder of the data, never something to publish.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.random import spawn
from dpviz.common.threads import map_streams
from dpviz.common.validate import InvalidInput, check_integer
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import mechanism_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Mechanism, ProtectsQuery, Training, protection
from dpviz.models import Ability, Rows, Setting, derivatives_of
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, default_delta
from dpviz.privacy.sensitivity.bounds import logistic_worst_pair

STREAMS = 2  # shared random streams of each pair
#: how a neighbouring pair comes about
KINDS = {
    "random": "a row is replaced by a random one on the unit sphere",
    "flipped": "a row's label is flipped",
    "adversarial": "a row is one of two whose gradients differ most at the minimiser, along the flattest direction",
    "worst-case data": "all other rows are equal, and the replaced row is one of two whose gradients differ most",
}


def kinds_of(setting: Setting) -> tuple[str, ...]:
    """The kinds of neighbours that can be made: where gradients differ most is known for linear models only."""
    return tuple(KINDS) if setting.linear and Ability.DERIVATIVES in setting.abilities else ("random", "flipped")


@dataclass(frozen=True, eq=False)
class ObservedSensitivity:
    """Changes of the protected query between neighbouring datasets.

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


def protects_a_query(mechanism: Mechanism, setting: Setting) -> bool:
    """True where the mechanism adds its noise to a query of bounded sensitivity, which can be observed."""
    if not isinstance(mechanism, ProtectsQuery):
        return False
    return bool(np.isfinite(protection.calibrate(mechanism, setting, Budget(1.0, default_delta(setting.n))).sensitivity))


def observed_sensitivity(
    problem: Problem, mechanism: Mechanism, pairs: int, *, seed: int, monitor: Monitor = ignore
) -> ObservedSensitivity:
    """Retrains on neighbouring datasets that share all randomness, and measures how far `Mechanism.query` changes.

    Mechanisms whose query is asked at a point are asked at 0, at the minimiser and at random points between.

    Args:
        pairs: neighbouring pairs of each kind that the model has (`kinds_of`); one suffices for "worst-case data". Each is
            tried with `STREAMS` shared random streams, of which the largest distance counts.

    Raises:
        InvalidInput: the mechanism has no query of bounded sensitivity.
    """
    if not isinstance(mechanism, ProtectsQuery):
        raise InvalidInput("mechanism", f"{mechanism.id} has no query of bounded sensitivity", "Choose another mechanism.")
    rng = np.random.default_rng(seed)
    pools = spawn(seed, STREAMS)
    budget = Budget(1.0, default_delta(problem.n))
    bound = protection.calibrate(mechanism, problem.setting, budget).sensitivity
    settled = protection.settle(mechanism, problem.setting, budget)
    theta = np.zeros((STREAMS, problem.m))
    theta[1:] = problem.optimum * rng.uniform(0.0, 1.5, (STREAMS - 1, 1))
    return _changes(problem, lambda there: settled.query(there, theta, pools), bound, pairs, seed, monitor)


def observed_movement(
    problem: Problem, mechanism: Mechanism, budget: Budget, pairs: int, *, seed: int = 0, monitor: Monitor = ignore
) -> ObservedSensitivity:
    """Distances of the trained parameters between neighbouring datasets when training has no noise; any mechanism, no bound."""
    quiet, pools = [protection.calibrate(mechanism, problem.setting, budget).noiseless()], spawn(seed, 1)

    def trained(there: Problem) -> Floats:
        return mechanism.fit(Training(there, quiet, pools, record=False)).theta

    return _changes(problem, trained, float("inf"), pairs, seed, monitor)


def _changes(
    problem: Problem, of: Callable[[Problem], Floats], bound: float, pairs: int, seed: int, monitor: Monitor
) -> ObservedSensitivity:
    """The largest distance between the rows of `of` on both sides of every neighbouring pair."""
    count = check_integer("pairs", pairs, 1, 100_000)
    base = of(problem)
    made = [(kind, k) for kind in kinds_of(problem.setting) for k in range(1 if kind == "worst-case data" else count)]
    seeds = np.random.SeedSequence(seed).spawn(len(made))

    def work(k: int, tick: Callable[[float], None]) -> float:
        first, second = _pair(problem, made[k][0], np.random.default_rng(seeds[k]))
        before = base if first is problem else of(first)
        tick(0.5)
        return float(np.linalg.norm(of(second) - before, axis=1).max())

    distances = map_streams(work, len(made), monitor)
    return ObservedSensitivity(np.array([kind for kind, _ in made]), np.array(distances), bound)


def _pair(problem: Problem, kind: str, rng: np.random.Generator) -> tuple[Problem, Problem]:
    n, d = problem.rows.X.shape
    index = int(rng.integers(n))
    if kind == "flipped":
        return problem, problem.replace_row(index, problem.rows.X[index], -problem.rows.y[index])
    if kind == "random":
        x = rng.standard_normal(d)
        return problem, problem.replace_row(index, np.asarray(x / np.linalg.norm(x), float), float(rng.choice([-1.0, 1.0])))
    if kind == "adversarial":
        _, vectors = np.linalg.eigh(derivatives_of(problem.model).hessian(problem.optimum, problem.rows, problem.lam))
        z, other = _opposed(problem, problem.optimum, vectors[:, 0])
    else:
        crowd = Rows(np.tile(np.eye(1, d), (n, 1)), np.ones(n))
        problem = Problem(crowd, problem.model, problem.lam)
        z, other = _opposed(problem, problem.optimum, np.eye(d)[-1])
    return problem.replace_row(index, z, 1.0), problem.replace_row(index, other, 1.0)


def _opposed(problem: Problem, theta: Floats, flat: Floats) -> tuple[Floats, Floats]:
    """Two signed rows of norm 1 whose gradients at theta differ most (for the logistic loss), mostly along `flat`."""
    norm = float(np.linalg.norm(theta))
    along = theta / norm if norm > 0 else np.eye(len(theta))[0]
    across = flat - (flat @ along) * along
    size = float(np.linalg.norm(across))
    if size < 1e-9:
        return along, -along
    across = across / size
    p, q = logistic_worst_pair(norm) if problem.setting.model == "logistic" else (0.0, 0.0)
    return p * along + np.sqrt(1 - p * p) * across, q * along - np.sqrt(1 - q * q) * across


def census_name(n: int) -> str:
    """The synthetic census of n people."""
    return f"census-{check_integer('n', n, 100, 1_000_000)}"


def sensitivity_over_n(
    spec: RunSpec, sizes: Sequence[int], pairs: int, *, monitor: Monitor = ignore
) -> list[tuple[int, ObservedSensitivity]]:
    """(training rows, observed sensitivity) of a spec's mechanism on synthetic censuses; batches keep their share of the rows."""
    out = []
    for size, inside in track(monitor, sizes, float):
        here = replace(spec, dataset=census_name(size), delta=None, lam=resolve(spec).lam, published_split=False)
        problem = setup_for(here).problem
        mechanism = mechanism_of(spec, problem.n)
        out.append((problem.n, observed_sensitivity(problem, mechanism, pairs, seed=spec.seed, monitor=inside)))
    return out
