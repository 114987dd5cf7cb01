"""An audit from one training: many canaries, each put in by a coin of its own, and a bound on epsilon from the right guesses.

Every canary is a row with two forms, of which a fair coin decides the one that is trained on: with its label or the other one
where the guarantee is about replaced rows, there or a row of zeros where it is about added or removed ones. The bound holds for
this relation, because one coin changes one row (`dpviz.privacy.one_run_audit`).
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chndtrix, ndtr

from dpviz.auditing.pairs import needs_zero_rows
from dpviz.auditing.result import verdict_on
from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput, check_instance, check_integer, check_range
from dpviz.mechanisms import Calibration, Mechanism, Training, protection
from dpviz.models import Model, Rows
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.audit_bounds import gaussian_claim
from dpviz.privacy.budget import Budget, Neighbouring, check_delta
from dpviz.privacy.one_run_audit import one_run_epsilon_lower_bound, one_run_gaussian_epsilon, one_run_p_value
from dpviz.privacy.search import smallest

MOST_CANARIES = 2_000
_MOST_ENTRIES = 1 << 25  # rows x parameters of one training


@dataclass(frozen=True, eq=False)
class Canaries:
    """Rows of a problem that have two forms each.

    Attributes:
        problem: with every canary in its first form.
        positions: (m,) of the canaries among the rows, all different.
        X, y: (m, d) and (m,) their second forms.
        neighbouring: the relation under which one canary in its two forms makes neighbours.
        why: one sentence for people.
    """

    problem: Problem
    positions: NDArray[np.intp]
    X: Floats = field(repr=False)
    y: Floats = field(repr=False)
    neighbouring: Neighbouring
    why: str

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def first(self) -> Rows:
        """The canaries in their first form."""
        return self.problem.rows.take(self.positions)

    def apply_coins(self, coins: NDArray[np.bool_]) -> Problem:
        """The problem in which canary i has its first form where coins[i] is true."""
        X, y = self.problem.rows.X.copy(), self.problem.rows.y.copy()
        other = self.positions[~coins]
        X[other], y[other] = self.X[~coins], self.y[~coins]
        return Problem(Rows(X, y), self.problem.model, self.problem.lam)

    def evidence(self, model: Model, theta: Floats) -> Floats:
        """(m,) loss of the second form less that of the first at (m,) parameters: large where the first was trained on."""
        losses = [model.loss.value(rows.y * model.scores(theta[None], rows)[:, 0]) for rows in (self.first, Rows(self.X, self.y))]
        return np.asarray(losses[1] - losses[0], float)


@dataclass(frozen=True, eq=False)
class OneRunResult:
    """The result of an audit in one training run. A lower bound can show that a claim is wrong, never that it is right.

    Attributes:
        mechanism: its id.
        calibration: with the claimed and the proved budget.
        canaries: m, how many coins there were.
        guesses: r, on how many canaries the attacker guessed; fixed before the training.
        correct: how many of these guesses were right.
        seed: of coins and training.
        confidence: of the bound.
        visible_share: noise below this share of what the claim needs is expected to be seen by this many canaries; None where
            the claim is not one that Gaussian noise could meet, or where no noise is small enough.
        table: one row per canary: evidence, first (the coin), guess (1 first form, -1 second, 0 none).
    """

    mechanism: str
    calibration: Calibration
    canaries: int
    guesses: int
    correct: int
    seed: int
    confidence: float
    visible_share: float | None
    table: pd.DataFrame = field(repr=False)

    @property
    def guessed_right(self) -> float:
        """Share of right guesses."""
        return self.correct / self.guesses

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on epsilon at the delta asked for; 0 where the guesses show none."""
        delta = self.calibration.budget.delta
        return one_run_epsilon_lower_bound(self.correct, self.guesses, self.canaries, delta, self.confidence)

    @property
    def most(self) -> float:
        """The bound if all guesses were right."""
        delta = self.calibration.budget.delta
        return one_run_epsilon_lower_bound(self.guesses, self.guesses, self.canaries, delta, self.confidence)

    @property
    def gaussian_epsilon_lower(self) -> float | None:
        """Lower bound on epsilon by f-DP where the noise is declared to be Gaussian, so that the trade-off is; None elsewhere."""
        delta = self.calibration.budget.delta
        if self.calibration.mu is None or delta <= 0:
            return None
        return one_run_gaussian_epsilon(self.correct, self.guesses, self.canaries, delta, self.confidence)

    def exceeds(self, budget: Budget) -> bool:
        """True where so many right guesses have a probability below 1 - confidence if the budget holds."""
        return one_run_p_value(self.correct, self.guesses, self.canaries, budget.epsilon, budget.delta) < 1 - self.confidence

    @property
    def verdict(self) -> str:
        """ "claim exceeded", "no violation found" or "nothing is claimed"."""
        return verdict_on(self.calibration, self.exceeds)


def axis_canaries(mechanism: Mechanism, model: Model, budget: Budget, count: int, lam: float = 0.01) -> Canaries:
    """`count` synthetic canaries and no other rows, each on an axis of its own, so that none hides another.

    Raises:
        InvalidInput: too many for the model, or the mechanism refuses it.
    """
    m = check_integer("canaries", count, 10, MOST_CANARIES)
    setting = model.setting(m, m, lam)
    if m * setting.m > _MOST_ENTRIES:
        raise InvalidInput("canaries", f"{m:,} canaries make {setting.m:,} parameters of {model.id!r}", "Use fewer canaries.")
    return _second_forms(mechanism, budget, Problem(Rows(np.eye(m), np.ones(m)), model, lam), np.arange(m))


def row_canaries(mechanism: Mechanism, problem: Problem, budget: Budget, count: int, seed: int = 0) -> Canaries:
    """`count` rows of a problem as canaries, drawn without looking at them; the other rows stay as they are."""
    m = check_integer("canaries", count, 10, min(MOST_CANARIES, problem.n))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4, 2)))
    return _second_forms(mechanism, budget, problem, np.sort(rng.choice(problem.n, m, replace=False)))


def _second_forms(mechanism: Mechanism, budget: Budget, problem: Problem, positions: NDArray[np.intp]) -> Canaries:
    mechanism.require(problem.setting)
    rows = problem.rows.take(positions)
    m, which = len(positions), "each on an axis of its own" if problem.n == len(positions) else f"among {problem.n:,} rows"
    if protection.calibrate(mechanism, problem.setting, budget).neighbouring is Neighbouring.ADD_REMOVE:
        needs_zero_rows(mechanism, problem, "mechanism")
        why = f"{m:,} canaries {which}; a coin leaves each in or puts a row of zeros in its place."
        return Canaries(problem, positions, np.zeros_like(rows.X), rows.y, Neighbouring.ADD_REMOVE, why)
    why = f"{m:,} canaries {which}; a coin flips the label of each or leaves it."
    return Canaries(problem, positions, rows.X, -rows.y, Neighbouring.REPLACE_ONE, why)


def audit_one_run(
    mechanism: Mechanism,
    canaries: Canaries,
    budget: Budget,
    seed: int = 0,
    *,
    confidence: float = 0.95,
    monitor: Monitor = ignore,
) -> OneRunResult:
    """Trains once on canaries that coins chose, guesses the coins, and says how much that shows about epsilon.

    The attacker knows both forms of every canary and sees the released model. Half of its guesses go to the canaries whose
    losses speak most for the first form, half to those that speak most for the second; how many is fixed beforehand (`plan`).

    Args:
        canaries: of `axis_canaries` or `row_canaries`, or your own.
        budget: what the mechanism is calibrated to.
        seed: of coins and training, 0 to 2^32 - 1.
        confidence: of the bound, in (0.5, 1).
        monitor: receives progress; raises to cancel.

    Raises:
        InvalidInput: the canaries' relation is not the mechanism's, a bad argument, or a budget that cannot be met.
        FloatingPointError: the released model is not finite.
    """
    seed, confidence = check_integer("seed", seed, 0, 2**32 - 1), check_range("confidence", confidence, 0.5, 1 - 1e-12)
    check_instance("mechanism", mechanism, Mechanism)
    check_delta(check_instance("budget", budget, Budget).delta, check_instance("canaries", canaries, Canaries).problem.n)
    calibration = protection.calibrate(mechanism, canaries.problem.setting, budget)
    if calibration.neighbouring is not canaries.neighbouring:
        raise InvalidInput(
            "canaries",
            f"{mechanism.id} speaks about {calibration.neighbouring.value}, these canaries about {canaries.neighbouring.value}",
            "Make the canaries for this mechanism.",
        )
    coin_stream, training_stream = (np.random.SeedSequence(seed, spawn_key=(4, k)) for k in range(2))
    coins = np.random.default_rng(coin_stream).random(len(canaries)) < 0.5
    model = canaries.problem.model.from_one_start(seed)
    drawn = canaries.apply_coins(coins)
    problem = Problem(drawn.rows, model, drawn.lam)
    fit = mechanism.fit(Training(problem, [calibration], [training_stream], record=False, monitor=monitor))
    if fit.constant_label is not None:
        raise InvalidInput(
            "mechanism", f"{mechanism.id} releases one label, which says nothing about single rows", "Choose another."
        )
    theta = fit.theta[0, 0]
    if not np.isfinite(theta).all():
        raise FloatingPointError("The released model is not finite, so nothing can be said about it.")
    return judge_one_run(mechanism.id, calibration, canaries.evidence(model, theta), coins, seed=seed, confidence=confidence)


def judge_one_run(
    mechanism: str, calibration: Calibration, evidence: Floats, coins: NDArray[np.bool_], *, seed: int, confidence: float
) -> OneRunResult:
    """The result from (m,) evidence, which is large where the first form is likely, and the (m,) coins."""
    m = len(coins)
    claim = calibration.claimed_budget or calibration.proved_budget or calibration.budget
    guesses, share = plan(m, claim, confidence)
    order, guess = np.argsort(evidence, kind="stable"), np.zeros(m, np.int8)
    guess[order[: guesses // 2]], guess[order[m - (guesses - guesses // 2) :]] = -1, 1
    correct = int(((guess == 1) & coins).sum() + ((guess == -1) & ~coins).sum())
    table = pd.DataFrame({"evidence": evidence, "first": coins, "guess": guess})
    return OneRunResult(mechanism, calibration, m, guesses, correct, seed, confidence, share, table)


@lru_cache(maxsize=256)
def plan(canaries: int, claim: Budget, confidence: float) -> tuple[int, float | None]:
    """The number of guesses that shows the least excess over a claim, and the share of its noise that it can show.

    Fixed before the training, from public facts. For each number of guesses r: the right guesses that refute the claim, and the
    smallest mu at which an attacker on m independent values N(+-mu/2, 1), who guesses the r largest in size, expects as many.
    Where no number of guesses can refute the claim, r is the one that shows most if Gaussian noise spends all of it.
    """
    tried = sorted({round(r) for r in np.geomspace(min(10, canaries), canaries, 25)})
    weakest = {r: mu for r in tried if (mu := _visible(r, canaries, claim, confidence)) is not None}
    allowed = gaussian_claim(claim)
    if weakest:
        r = min(weakest, key=lambda r: weakest[r])
        return r, None if allowed is None else min(1.0, allowed / weakest[r])
    spent = allowed if allowed is not None else gaussian_mu(Budget(claim.epsilon, 1e-5))

    def shown(r: int) -> float:
        right = int(r * _right(spent, r / canaries))
        return one_run_epsilon_lower_bound(right, r, canaries, claim.delta, confidence)

    return max(tried, key=shown), None


def _visible(guesses: int, canaries: int, claim: Budget, confidence: float) -> float | None:
    """The smallest mu at which so many guesses are expected to refute a claim; None where none does."""
    needed = _refuting(guesses, canaries, claim, confidence)
    if needed is None:
        return None

    def missing(mu: float) -> float:
        return needed / guesses - _right(mu, guesses / canaries)

    return smallest(missing, 0.0, tolerance=1e-4, limits=(1e-3, 1e3))


def _refuting(guesses: int, canaries: int, claim: Budget, confidence: float) -> int | None:
    """The smallest number of right guesses whose p-value is below 1 - confidence; None where even all right are too few."""

    def refutes(right: int) -> bool:
        return one_run_p_value(right, guesses, canaries, claim.epsilon, claim.delta) < 1 - confidence

    first = bisect_left(range(guesses + 1), True, key=refutes)
    return first if first <= guesses else None


def _right(mu: float, share: float) -> float:
    """Share of right guesses by sign on the `share` largest in size of N(+-mu/2, 1), whose squares are noncentral chi^2."""
    cut = np.sqrt(chndtrix(1 - share, 1, mu**2 / 4))
    right, wrong = ndtr(mu / 2 - cut), ndtr(-mu / 2 - cut)
    return float(right / max(right + wrong, 1e-300))
