"""The total epsilon of different releases of one table: Gaussians, pure, (epsilon, delta)-DP and subsampled ones together.

Key terms:
    privacy profile: delta as a function of epsilon. It is convex in e^epsilon, and its values at all epsilon >= 0 determine
        a pair of distributions (P, Q) that dominates every neighbouring run under a symmetric relation (Zhu, Dong, Wang 2022,
        Proposition 5 and Theorem 10).
    privacy loss: ln P/Q under P. Those of dominating pairs add up, also for releases that are chosen adaptively, as long as
        the parameters of each were fixed beforehand (Zhu, Dong, Wang 2022, Theorem 27).

Theorem: no total is below the truth. Gaussians of full batches add up to one (their mu^2 do). Every other kind of release
becomes finitely many losses l with masses p and a mass of infinite loss, and delta(epsilon) = P[l = inf] +
E_P[(1 - e^(epsilon - l))_+] grows with every p and every l. The steps are:

1. A profile is bounded by lines between points that lie above it, whose losses are known exactly.
2. A loss between two points of the grid is split so that P- and Q-mass stay. Merging the two parts again is post-processing,
   so the split pair dominates (connect the dots, Doroshenko et al. 2022).
3. Infinite losses are added up by themselves and never found as what is missing from 1.
4. The losses are tilted by e^(theta l), whatever theta is, and convolved by FFT. What the window wraps round from below only
   adds; what lies above it is bounded by the Chernoff bound. The FFT's error is at most `_FFT_ERROR` a stage and factor in the
   2-norm (Higham 2002, Theorem 24.2), so the read-off errs by at most that times the norm of its weights, which is added.
5. Where the Chernoff bound itself or basic composition is smaller, it is the total.

dp_accounting's convolution leaves out the error of step 4: its pessimistic epsilon of 200 releases of 0.05 at delta = 1e-14
has a true delta 10 % above. Therefore it is the referee of the tests and not the total.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, rfft
from scipy.optimize import minimize_scalar

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, track
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.accountants.base import full_release_mu
from dpviz.privacy.accounting.events import Event, Gaussian, PureEpsilon, Repeated, Sampled, Shuffled, Step, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, log_gaussian_delta
from dpviz.privacy.budget import Budget, Neighbouring

_END = 1e-4  # of the total's delta: mass that a profile may leave to the infinite loss
_POINTS = 96  # places at which an accountant is asked for a profile
_GAUSSIAN_POINTS = 2048
_LOG_SIZES = 14, 18  # of the grid
_OUTSIDE = 40.0  # -ln of the tilted mass outside the window
_ULP = float(np.finfo(float).eps)
_FFT_ERROR = 16 * _ULP  # Higham's is below 7 u = 3.5 ulp, powers and products of spectra included below 10 ulp
_LARGEST = 1e9  # a loss or a mu above which nothing finite is said of a list that is not pure
_UP = 1e-12  # share by which what a function returns is raised


@dataclass(frozen=True, eq=False)
class Losses:
    """A privacy loss with finitely many values.

    Attributes:
        values: (A,) finite losses.
        masses: (A,) their probabilities under P, > 0.
        infinite: the probability of an infinite loss, in [0, 1).
    """

    values: Floats
    masses: Floats
    infinite: float

    @classmethod
    def of_budget(cls, budget: Budget) -> "Losses":
        """The largest loss of all (epsilon, delta)-DP releases (Kairouz, Oh, Viswanath 2015, Theorem 3.1)."""
        epsilon = max(budget.epsilon, 1e-100)  # whose square is no 0
        masses = (1 - budget.delta) / (1 + np.exp([-epsilon, min(epsilon, 700.0)]))
        return cls(np.array([epsilon, -epsilon]), masses * (1 + 4 * _ULP), budget.delta)

    @classmethod
    def of_profile(cls, epsilons: Floats, deltas: Floats) -> "Losses":
        """The loss whose profile is made of lines in e^epsilon between upper bounds of delta at (K,) epsilon > 0.

        Between two points the slope is -Q[loss > x], so a point's Q-mass is the difference of two slopes and its P-mass is
        e^loss times that. P[-loss] = e^-loss P[loss] by symmetry. delta(0) is at most tanh(epsilon/2) + 2 delta/(1 + e^epsilon)
        for each point (Kairouz, Oh, Viswanath 2015, Theorem 2.1), and with the smallest of these no slope is too steep.
        """
        zero = np.min(np.tanh(epsilons / 2) + 2 * deltas / (1 + np.exp(np.minimum(epsilons, 700.0))))
        x, delta = _convex([(0.0, min(1.0, float(zero))), *zip(epsilons.tolist(), deltas.tolist(), strict=True)])
        gaps = np.diff(x)
        rise = -np.diff(delta) / -np.expm1(-gaps)  # e^(right end) times minus the slope of each line
        up = rise * (1 + 16 * _ULP) - np.append((rise * np.exp(-gaps))[1:], 0.0)
        down = up * np.exp(-x[1:])
        rest = max(0.0, 1 - float(delta[-1]) - float(up.sum()) - float(down.sum())) + 16 * _ULP
        values, masses = np.concatenate([-x[1:], [0.0], x[1:]]), np.concatenate([down, [rest], up])
        return cls(values[masses > 0], masses[masses > 0], float(delta[-1]))


def _convex(points: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    """The lower convex hull of upper bounds, in e^epsilon: every chord of a convex function lies above it."""
    hull: list[tuple[float, float]] = []
    for epsilon, delta in sorted(points):
        if hull and delta >= hull[-1][1]:
            continue  # a profile never rises
        while len(hull) > 1 and _above(hull[-2], hull[-1], (epsilon, delta)):
            hull.pop()
        hull.append((epsilon, delta))
    x, deltas = np.array(hull).T
    return x, deltas


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """True where b lies above the chord from a to c."""
    share = math.exp(b[0] - c[0]) * math.expm1(a[0] - b[0]) / math.expm1(a[0] - c[0])
    return b[1] >= a[1] + share * (c[1] - a[1])


@lru_cache(maxsize=256)
def _of_step(step: Step, method: account.Method, end: float) -> Losses:
    """The loss of one kind of release, from places where an accountant is asked; its profile ends where delta is `end`."""
    if isinstance(step.event, Shuffled):  # its theorem starts from delta
        deltas = np.geomspace(1e-2, end, _POINTS)
        epsilons = np.array([account.epsilon(step.event, method, float(d)) for d in deltas])
        return Losses.of_profile(epsilons, deltas)
    event = _event(step)
    last = max(account.epsilon(event, method, end), 1e-6)
    epsilons = np.append(min(1e-6, last / 10), np.linspace(last / _POINTS, last, _POINTS))
    logs = np.array([account.log_delta(event, method, float(e), math.log(end) - 1) for e in epsilons])
    return Losses.of_profile(epsilons, np.exp(np.minimum(logs, 0.0)) * (1 + _UP))


def _of_gaussian(mu: float, end: float) -> Losses:
    """The loss of Gaussian noise at mu = sensitivity over sigma (Balle, Wang 2018, Theorem 8)."""
    last = max(float(gaussian_epsilon(end, mu)), 1e-3 * mu)
    epsilons = np.linspace(last / _GAUSSIAN_POINTS, last, _GAUSSIAN_POINTS)
    return Losses.of_profile(epsilons, np.exp(log_gaussian_delta(epsilons, mu)) * (1 + _UP))


def _event(step: Step) -> Event:
    event: Event = step.event
    if step.sampling != "full":
        assert isinstance(step.event, Gaussian)
        event = Sampled(step.event, step.rate, step.sampling)
    return Repeated(event, step.count) if step.count > 1 else event


def total_epsilon(
    releases: Sequence[Event | Budget], delta: float, relation: Neighbouring = Neighbouring.REPLACE_ONE, monitor: Monitor = ignore
) -> float:
    """The smallest proved epsilon at delta of several releases together; inf where there is none.

    Args:
        releases: an event where one is known, otherwise the budget that is proved.
        delta: of the total, in [0, 1).
        relation: the neighbouring relation of all of them.
        monitor: receives progress; raises to cancel.

    Raises:
        CannotAccount: no proof covers one of the events under this relation.

    >>> round(total_epsilon([Gaussian(1.0, 2.0), Gaussian(1.0, 2.0)], 1e-5), 3)
    2.943
    >>> total_epsilon([Budget(0.5), Budget(1.0)], 0.0)
    1.5
    """
    mu, kinds = 0.0, Counter[Budget | Step]()
    for release, count in Counter(releases).items():
        for step in (release,) if isinstance(release, Budget) else steps_of(release):
            if isinstance(step, Budget):
                kinds[step] += count
            elif isinstance(step.event, PureEpsilon):
                kinds[Budget(step.event.epsilon)] += count * step.count
            elif not isinstance(step.event, Gaussian):
                kinds[replace(step, count=1)] += count * step.count
            elif step.sampling == "full":
                mu = math.hypot(
                    mu, math.sqrt(count * step.count) * full_release_mu(step.event, account.Method(relation=relation))
                )
            else:
                kinds[step] += count
    basic, mu = _basic(kinds, delta) if mu == 0 else math.inf, mu * (1 + _UP)
    if delta == 0 or (not mu and not kinds):
        return basic
    if mu > _LARGEST or any(isinstance(kind, Budget) and kind.epsilon > _LARGEST for kind in kinds):
        return basic
    if not kinds:
        return float(gaussian_epsilon(delta, mu))
    only = next(iter(kinds))
    if not mu and kinds.total() == 1 and isinstance(only, Step):
        return account.epsilon(_event(only), _method(only, relation), delta)
    end = _END * delta
    parts = [(_of_gaussian(mu, end), 1)] if mu else []
    for (kind, count), inside in track(monitor, kinds.items()):
        losses = Losses.of_budget(kind) if isinstance(kind, Budget) else _of_step(kind, _method(kind, relation), end)
        parts.append((losses, count))
        inside(0.5)
    return min(basic, _composed(parts, delta, monitor))


def _method(step: Step, relation: Neighbouring) -> account.Method:
    shuffled = isinstance(step.event, Shuffled) and relation is Neighbouring.REPLACE_ONE
    return account.HOCKEY_STICK if shuffled else account.tightest(_event(step), relation)


def _basic(kinds: Counter[Budget | Step], delta: float) -> float:
    """Epsilons added up, where all releases are budgets whose deltas, added up, fit."""
    budgets = [(kind, count) for kind, count in kinds.items() if isinstance(kind, Budget)]
    if len(budgets) < len(kinds) or math.fsum(count * budget.delta for budget, count in budgets) > delta:
        return math.inf
    return math.fsum(count * budget.epsilon for budget, count in budgets)


def _composed(parts: Sequence[tuple[Losses, int]], delta: float, monitor: Monitor = ignore) -> float:
    """Epsilon at delta of losses, each so many times, by their sum (steps 2 to 5)."""
    infinite = -math.expm1(math.fsum(count * math.log1p(-part.infinite) for part, count in parts)) * (1 + _UP)
    if infinite >= delta:
        return math.inf
    total = sum(count for _, count in parts)
    reach = sum(count * float(part.values.max()) for part, count in parts)
    spread = math.sqrt(sum(count * float(part.masses @ part.values**2) for part, count in parts)) + 1e-6 * reach

    def cumulant(tilt: float) -> float:
        monitor(0.9)
        return sum(count * _log_moment(part, tilt) for part, count in parts)

    target = math.log(delta - infinite)

    def chernoff(tilt: float) -> float:
        """Epsilon by (1 - e^-x)_+ <= e^(t x) t^t / (1 + t)^(1 + t) (Canonne, Kamath, Steinke 2020, Proposition 12)."""
        return (cumulant(tilt) - math.log1p(tilt) - tilt * math.log1p(1 / tilt) - target) / tilt

    limits = (math.log(1e-2 / spread), math.log(1e3 / spread))
    theta = math.exp(minimize_scalar(lambda x: chernoff(math.exp(x)), bounds=limits, method="bounded").x)
    centre, more = cumulant(theta), np.geomspace(0.1, 30, 12) / spread
    above = [(cumulant(theta + s) - centre + _OUTSIDE) / s for s in more]
    top = min(above)
    beyond = theta + float(more[above.index(top)])
    bottom = max((centre - cumulant(theta - s) - _OUTSIDE) / s for s in more)
    # a cell is a tenth of a loss where all are alike: the window is 20 times their spread sqrt(total)
    log_size = min(max(math.ceil(math.log2(200 * math.sqrt(total))), _LOG_SIZES[0]), _LOG_SIZES[1])
    size = 1 << log_size
    h = max((top - bottom) / (size - 2), 1e-9 * spread)
    spectrum, centre, outside = np.ones(size // 2 + 1, complex), 0.0, 0.0
    for part, count in parts:
        index, on_grid = _grid(part, h)
        log_moment = _log_moment(on_grid, theta)
        tilted = on_grid.masses * np.exp(theta * on_grid.values - log_moment)
        spectrum *= rfft(np.bincount(index % size, tilted, size)) ** count
        centre += count * log_moment
        outside += count * _log_moment(on_grid, beyond)
    start = math.floor(bottom / h)
    sums = h * (start + np.arange(size))
    masses = np.roll(np.maximum(irfft(spectrum, size), 0.0), -(start % size))
    rounding = 4 * _ULP * (beyond * reach + 1000 * total)  # of the exponents, and of the masses in `_grid`
    error = _FFT_ERROR * log_size * (total + 2)
    lost = math.exp(min(0.0, outside + rounding - beyond * (sums[-1] + h)))

    def delta_at(epsilon: float) -> float:
        first = int(np.searchsorted(sums, epsilon))
        gaps = sums[first:] - epsilon
        weights = np.exp(-theta * gaps) * -np.expm1(-gaps)
        inside = float(masses[first:] @ weights) + error * float(np.linalg.norm(weights))
        power = centre + rounding - theta * epsilon
        return infinite + lost + math.exp(power) * inside if power < 700 else math.inf

    low, high = 0.0, max(0.0, chernoff(theta) + rounding / theta)
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def _log_moment(losses: Losses, tilt: float) -> float:
    """ln E[e^(tilt loss)] of the finite losses."""
    powers = tilt * losses.values
    top = float(powers.max())
    return top + math.log(float(losses.masses @ np.exp(powers - top)))


def _grid(losses: Losses, h: float) -> tuple[np.ndarray, Losses]:
    """Indices j and losses j h, to which each loss is split with its P- and Q-mass kept."""
    below = np.floor(losses.values / h)
    over = np.clip(losses.values - below * h + 4 * _ULP * np.abs(losses.values), 0.0, h)
    upper = losses.masses * (np.expm1(-over) / math.expm1(-h))
    index, masses = np.concatenate([below, below + 1]), np.concatenate([losses.masses - upper, upper])
    index, masses = index[masses > 0].astype(np.int64), masses[masses > 0]
    return index, Losses(h * index, masses, losses.infinite)
