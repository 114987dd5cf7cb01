"""Single-record SGD with a rule that lets rows train without noise: draws, contributions of rows, solvers, and the row log.

PIDP-SGD and DBDP-ERM (performance improving) share it; all E x S replicas take a step together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpviz.common.random import generator, substreams
from dpviz.influence import influence_of, row_gradients
from dpviz.mechanisms.base import Floats, NoiseRecord, Streams
from dpviz.mechanisms.capabilities import ChoosesStart, CountsSteps, HasRule, HasWorstPair
from dpviz.models import Model, Rows, Setting
from dpviz.models.problem import Problem

Solve = Callable[[Floats], Floats]

NOT_PRIVATE_START: str = (
    "Training starts at the non-private minimiser and only a few single rows are read from there, so most of what the result "
    "knows was learned without any protection; no budget covers the start."
)
_BLOCK_ELEMENTS = 1 << 18  # entries of contributions that are held at once


class SingleRecord(HasRule, HasWorstPair, ChoosesStart, CountsSteps):
    """Shared declarations of PIDP-SGD and DBDP-ERM PI."""

    rounds: int
    local_steps: int

    @property
    def steps(self) -> int:
        """T = R T_local."""
        return self.rounds * self.local_steps

    def step_count(self, setting: Setting) -> int:
        return self.steps

    @staticmethod
    def worst_pair(model: Model, setting: Setting) -> tuple[Problem, Problem] | None:
        """All rows e1 with label +1, and one row that points a little back and to either side [ours].

        The others push the model along e1, so the differing row is misclassified with a long gradient and moves the
        non-private minimiser far, at which training starts.
        """
        n, d = setting.n, setting.d
        if n < 4 or d < 2:
            return None
        along, side = np.eye(d)[0], np.zeros(d)
        side[1:] = ((1 - 0.25**2) / (d - 1)) ** 0.5
        base = Problem(Rows(np.tile(along, (n, 1)), np.ones(n)), model, setting.lam)
        return base.replace_row(n - 1, side - 0.25 * along, 1.0), base.replace_row(n - 1, -side - 0.25 * along, 1.0)

    def starting_points(self, problem: Problem, streams: Streams) -> Floats:
        """(S, m) where training starts."""
        if self.public_start:
            return problem.model.initial(problem.m, streams)
        return np.tile(problem.optimum, (len(streams), 1))


@dataclass(frozen=True)
class Draws:
    """The random draws that all replicas of a seed share: S seeds, T steps.

    Attributes:
        index: (S, T) position of the row drawn in each step, uniform with replacement.
        noise: (S, k, T, dim) k standard Gaussian draws per step.
    """

    index: NDArray[np.intp]
    noise: Floats


def draw(streams: Streams, n: int, steps: int, dim: int, kinds: int = 1) -> Draws:
    """Rows and noise for every seed, from streams of their own; noise for all steps, so that no rule shifts later draws."""
    index, noise = [], []
    for stream in streams:
        rows, normal = (generator(part) for part in substreams(stream, 2))
        index.append(rows.integers(n, size=steps))
        noise.append(normal.standard_normal((kinds, steps, dim)))
    return Draws(np.array(index, np.intp), np.array(noise))


def gradient(model: Model, theta: Floats, rows: Rows, lam: float) -> Floats:
    """(R, m) gradients of the papers' l(z_r, theta_r): the regulariser is inside each row's loss."""
    return row_gradients(model, theta, rows) + lam * theta


def contributions(problem: Problem, theta: Floats, solve: Solve) -> Iterator[tuple[slice, Floats]]:
    """Slices of the training rows with their contributions c = (1/n) H^{-1} grad l(z, theta) (rows, m).

    Kang-PIDP eq. (11) and Kang-DBDP eq. (14).
    """
    size = max(16, _BLOCK_ELEMENTS // problem.m)
    for start in range(0, problem.n, size):
        block = slice(start, min(start + size, problem.n))
        yield block, solve(gradient(problem.model, theta, problem.rows.take(block), problem.lam)) / problem.n


def statistic(problem: Problem, theta: Floats, solve: Solve, of: Callable[[Floats], Floats]) -> Floats:
    """(n,) a number per training row, computed from its contribution."""
    out = np.empty(problem.n)
    for block, c in contributions(problem, theta, solve):
        out[block] = of(c)
    return out


def solver(problem: Problem, theta: Floats) -> Solve:
    """(k, m) -> (k, m): H^{-1} v with the Hessian of the regularised objective at theta (m,)."""
    return influence_of(problem, theta).solve


def solvers(problem: Problem, places: Floats, report: Callable[[], None]) -> Callable[[int, Floats], Floats]:
    """(r, v) -> H^{-1} v at places[r], v (m,). A Hessian is made when it is first asked for; a shared place has one.

    Args:
        places: (R, m).
        report: called before a Hessian is made; raises to cancel.
    """
    shared = bool((places == places[0]).all())

    @cache
    def solver_at(r: int) -> Solve:
        report()
        return solver(problem, places[r])

    return lambda r, vector: solver_at(0 if shared else r)(vector[None])[0]


class RowLog:
    """Counts what happens to every row: E budgets, S seeds, R rounds."""

    def __init__(self, budgets: int, seeds: int, n: int, rounds: int, active: bool) -> None:
        self._seeds = np.arange(seeds)
        self._active = active
        if active:
            self._visits = np.zeros((1, seeds, n))
            self._noise_count = np.zeros((budgets, seeds, n))
            self._passed = np.zeros((budgets, seeds, n))
            self._noise_norm = np.zeros((budgets, seeds, n))
            self._timeline = np.zeros((budgets, seeds, rounds))

    def step(self, at: int, index: NDArray[np.intp], passed: NDArray[np.bool_], noise_norm: Floats) -> None:
        """One step of round `at`: rows `index` (S,), which passed (E, S), and how long the noise was (E, S)."""
        if not self._active:
            return
        with_noise = noise_norm > 0
        self._visits[0, self._seeds, index] += 1
        self._noise_count[:, self._seeds, index] += with_noise
        self._passed[:, self._seeds, index] += passed
        self._noise_norm[:, self._seeds, index] += noise_norm
        self._timeline[:, :, at] += with_noise

    def record(self, where: str, margin: Floats | None) -> NoiseRecord:
        """The record; `margin` broadcasts to (E, S, n)."""
        if not self._active:
            return NoiseRecord(where)
        return NoiseRecord(
            where,
            visits=self._visits,
            times_noised=self._noise_count,
            noise_norm=self._noise_norm,
            passed=self._passed,
            rule_margin=margin,
            timeline=self._timeline,
        )


def replicate(rows: Rows, index: NDArray[np.intp], budgets: int) -> Rows:
    """The rows `index` (S,) for E x S replicas, budgets outermost."""
    at = np.tile(index, budgets)
    return Rows(rows.X[at], rows.y[at])
