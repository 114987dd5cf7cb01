"""The total epsilon of different releases of one table: Gaussians, pure, (epsilon, delta)-DP and subsampled ones together.

Key terms:
    privacy profile: delta as a function of epsilon. It is convex in e^epsilon, and its values at all epsilon >= 0 determine
        a pair of distributions that dominates every neighbouring run under a symmetric relation (Zhu, Dong, Wang 2022,
        Proposition 5 and Theorem 10).
    composition: the privacy losses of dominating pairs add up, also for releases that are chosen adaptively, as long as the
        parameters of each were fixed beforehand (Zhu, Dong, Wang 2022, Theorem 27).

Gaussians of full batches are composed exactly (their mu^2 add up). Every other release becomes a discrete privacy loss on one
grid, by connecting the dots of its profile (Doroshenko et al. 2022, Algorithm 1), and the grid is composed by FFT. All errors
are upwards. The result is never above basic composition.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from dpviz.common.arrays import Floats
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.accountants.base import mu_of
from dpviz.privacy.accounting.events import Event, Gaussian, PureEpsilon, Repeated, Sampled, Shuffled, Step, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, log_gaussian_delta
from dpviz.privacy.accounting.methods import HOCKEY_STICK, Method, tightest
from dpviz.privacy.budget import Budget, Neighbouring

_TAIL = 1e-16  # mass that a profile may leave above its end; it is counted as an infinite loss
_POINTS = 96  # places at which an accountant is asked for a profile
_SIZE = 1 << 17  # cells of the grid


@dataclass(frozen=True)
class Profile:
    """An upper bound on delta(epsilon) at epsilon >= 0, as points that are connected by lines in e^epsilon.

    Attributes:
        epsilons: (P,) increasing, the first is 0.
        deltas: (P,) in [0, 1]; above the last epsilon delta stays at the last value.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    def at(self, epsilon: Floats) -> Floats:
        """delta at each epsilon >= 0."""
        ends, deltas = np.array(self.epsilons), np.array(self.deltas)
        right = np.clip(np.searchsorted(ends, epsilon), 1, len(ends) - 1)
        a, b = ends[right - 1], ends[right]
        # (e^x - e^a) / (e^b - e^a) without overflow
        share = np.exp(np.minimum(epsilon, b) - b) * np.expm1(a - np.minimum(epsilon, b)) / np.expm1(a - b)
        return deltas[right - 1] + share * (deltas[right] - deltas[right - 1])

    @property
    def end(self) -> float:
        """The epsilon from which on delta no longer falls."""
        return self.epsilons[-1]


@dataclass(frozen=True)
class GaussianProfile:
    """The profile of Gaussian noise at mu = sensitivity over sigma (Balle, Wang 2018, Theorem 8)."""

    mu: float

    def at(self, epsilon: Floats) -> Floats:
        """delta at each epsilon >= 0."""
        return np.exp(log_gaussian_delta(epsilon, self.mu))

    @property
    def end(self) -> float:
        """The epsilon at which delta is `_TAIL`."""
        return float(gaussian_epsilon(_TAIL, self.mu))


def of_budget(budget: Budget) -> Profile:
    """The largest profile of all (epsilon, delta)-DP releases.

    delta(x) = delta + (1 - delta) max(0, (e^epsilon - e^x) / (1 + e^epsilon)) (Kairouz, Oh, Viswanath 2015, Theorem 3.1),
    a line in e^x.
    """
    return Profile((0.0, budget.epsilon), (budget.delta + (1 - budget.delta) * math.tanh(budget.epsilon / 2), budget.delta))


@lru_cache(maxsize=256)
def of_step(step: Step, method: Method) -> Profile:
    """The profile of one kind of release, at places where an accountant is asked.

    Raises:
        CannotAccount: no proof covers the release under the method's relation.
    """
    event = step.event
    if isinstance(event, Shuffled):  # its theorem starts from delta
        asked = np.geomspace(1e-2, 1e-14, _POINTS)
        pairs = [(account.epsilon(event, method, float(d)), float(d)) for d in asked]
        return _convex([(0.0, 1.0), *pairs])
    release = _event(step)
    last = account.epsilon(release, method, 1e-15)
    start = min(1e-6, last / 10)
    epsilons = [start, *np.linspace(last / _POINTS, last, _POINTS)]
    deltas = [math.exp(min(0.0, account.log_delta(release, method, float(e), -36.0))) for e in epsilons]
    # the slope of a profile in e^x is at least -1
    return _convex([(0.0, min(1.0, deltas[0] + math.expm1(start))), *zip(map(float, epsilons), deltas, strict=True)])


def _event(step: Step) -> Event:
    event: Event = step.event
    if step.sampling != "full":
        assert isinstance(step.event, Gaussian)
        event = Sampled(step.event, step.rate, step.sampling)
    return Repeated(event, step.count) if step.count > 1 else event


def _convex(points: Sequence[tuple[float, float]]) -> Profile:
    """The lower convex hull of upper bounds, in e^epsilon: every chord of a convex function lies above it."""
    hull: list[tuple[float, float]] = []
    for epsilon, delta in sorted(points):
        if hull and delta >= hull[-1][1]:
            continue  # a profile never rises
        while len(hull) > 1 and _above(hull[-2], hull[-1], (epsilon, delta)):
            hull.pop()
        hull.append((epsilon, delta))
    return Profile(tuple(e for e, _ in hull), tuple(d for _, d in hull))


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """True where b lies above the chord from a to c."""
    share = math.expm1(b[0] - a[0]) / math.expm1(c[0] - a[0])
    return b[1] >= a[1] + share * (c[1] - a[1])


def total_epsilon(releases: Sequence[Event | Budget], delta: float, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> float:
    """The smallest proved epsilon at delta of several releases together.

    Args:
        releases: an event where one is known, otherwise the budget that is proved.
        delta: of the total, in (0, 1).
        relation: the neighbouring relation of all of them.

    Raises:
        CannotAccount: no proof covers one of the events under this relation.

    >>> round(total_epsilon([Gaussian(1.0, 2.0), Gaussian(1.0, 2.0)], 1e-5), 3)
    2.943
    >>> round(total_epsilon([Budget(0.5), Budget(1.0)], 1e-9), 6)
    1.5
    """
    mu2, profiles = 0.0, list[Profile | GaussianProfile]()
    for release in releases:
        if isinstance(release, Budget):
            profiles.append(of_budget(release))
            continue
        for step in steps_of(release):
            if isinstance(step.event, Gaussian) and step.sampling == "full":
                mu2 += step.count * mu_of(step.event, Method(relation=relation)) ** 2
            elif isinstance(step.event, PureEpsilon) and relation is Neighbouring.REPLACE_ONE:
                profiles += [of_budget(Budget(step.event.epsilon))] * step.count
            else:
                profiles.append(of_step(step, _method(step, relation)))
    if len(releases) == 1 and len(profiles) == 1 and not mu2 and not isinstance(releases[0], Budget):
        return account.epsilon(releases[0], _method(steps_of(releases[0])[0], relation), delta)
    if not profiles:
        return float(gaussian_epsilon(delta, math.sqrt(mu2))) if mu2 else 0.0
    if mu2:
        profiles.append(GaussianProfile(math.sqrt(mu2)))
    return min(_basic(profiles, delta), _composed(profiles, delta))


def _method(step: Step, relation: Neighbouring) -> Method:
    if relation is Neighbouring.ADD_REMOVE:
        return Method("pld", relation)
    return HOCKEY_STICK if isinstance(step.event, Shuffled) else tightest(_event(step))


def _basic(profiles: Sequence[Profile | GaussianProfile], delta: float) -> float:
    """Epsilons and deltas added up, where all releases have an end: sum of ends if the deltas there fit."""
    ends = [p for p in profiles if isinstance(p, Profile)]
    if len(ends) < len(profiles) or sum(p.deltas[-1] for p in ends) > delta:
        return math.inf
    return sum(p.end for p in ends)


def _composed(profiles: Sequence[Profile | GaussianProfile], delta: float) -> float:
    """Epsilon at delta by adding up discrete privacy losses."""
    from scipy.signal import lfilter  # a fifth of a second, which the first page does not need

    reach = sum(p.end for p in profiles)
    h = 2 * reach / (_SIZE - 4 * len(profiles))
    size = next_fast_len(_SIZE, real=True)
    spectrum, kept, first = np.ones(size // 2 + 1, complex), 1.0, 0
    for profile, count in Counter(profiles).items():
        j, mass = _losses(profile, h)
        spectrum *= rfft(mass, size) ** count
        kept *= float(mass.sum()) ** count
        first += j * count
    mass = np.maximum(irfft(spectrum, size), 0.0)
    losses = h * (first + np.arange(size))
    # infinite losses, and rounding: of the profiles' values, and of the FFT (as in `pld`)
    rest = max(0.0, 1 - kept) + len(profiles) * (math.sqrt(size) * 2e-16 + 1e-15)
    losses, mass = losses[losses > 0], mass[losses > 0]
    tail = np.cumsum(mass[::-1])[::-1]  # P[loss >= l]
    # E_P[e^(l - loss); loss >= l], from the largest loss down
    weighted = lfilter([1.0], [1.0, -math.exp(-h)], mass[::-1])[::-1]
    deltas = rest + tail - weighted  # delta(l) = E_P[(1 - e^(l - loss))_+]
    if deltas[-1] > delta:
        return math.inf
    at = int(np.argmax(deltas <= delta))
    # down to the loss below it delta(x) = rest + tail - e^(x - l) weighted
    below = math.log((rest + tail[at] - delta) / weighted[at]) if weighted[at] > 0 and rest + tail[at] > delta else 0.0
    return max(0.0, float(losses[at]) + min(0.0, max(below, -h)) * (1 - 1e-12))


def _losses(profile: Profile | GaussianProfile, h: float) -> tuple[int, Floats]:
    """First index and masses under P of losses j h that dominate a profile; what is missing from 1 is an infinite loss.

    Connecting the dots: between two grid points delta is a line in e^x whose slope is -Q[loss > x], so a point's Q-mass is the
    difference of two slopes and its P-mass is e^loss times that. P[-loss] = e^-loss P[loss] by symmetry.
    """
    last = math.ceil(profile.end / h)
    x: Floats = h * np.arange(last + 1, dtype=float)
    delta = np.minimum.accumulate(np.clip(profile.at(x), 0.0, 1.0))
    # slopes times -e^(lower end): T_j e^(x_j) = (delta_j - delta_(j+1)) / (e^h - 1)
    fall = (delta[:-1] - delta[1:]) / math.expm1(h)
    # p_j = e^(x_j) (T_(j-1) - T_j), with T_(j-1) e^(x_j) = e^h fall_(j-1); beyond the end the slope is 0
    p = np.maximum(math.exp(h) * fall - np.append(fall[1:], 0.0), 0.0)
    positive = x[1:]
    mirrored = p * np.exp(-positive)
    centre = max(0.0, 1 - delta[-1] - float(p.sum()) - float(mirrored.sum()))
    return -last, np.concatenate([mirrored[::-1], [centre], p])
