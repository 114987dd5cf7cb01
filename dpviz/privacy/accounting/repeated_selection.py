"""The cost of a private search: a random number of runs of one private method, of which only the best is released.

Key terms:
    run: one draw of a setting from a fixed list, a training with it, and a private score; all of it is (a, R(a))-RDP.
    repetitions: the number of runs K, drawn from a distribution that does not depend on the rows.

A fixed K is not covered: the best of a known number of runs informs about all of them, and the cost
grows with K. With a random K the cost is about that of two or three runs, however large its mean is (Papernot, Steinke 2022).
The bounds need that a run's privacy holds for every setting of the list, that the list is fixed before looking at the rows, and
that only the best run leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_range, positive
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.accountants.base import Method
from dpviz.privacy.accounting.accountants.rdp import curve_of_steps
from dpviz.privacy.accounting.events import Event, steps_of
from dpviz.privacy.budget import Neighbouring
from dpviz.privacy.search import smallest

_ORDERS = np.asarray(rdp.ORDERS, float)


@dataclass(frozen=True)
class NegativeBinomial:
    """K from a negative binomial distribution, conditioned on K >= 1 (Papernot, Steinke 2022, Definition 1).

    P[K = k] is proportional to (1 - gamma)^k prod_{l < k} (l + eta)/(l + 1); for eta = 0, to (1 - gamma)^k / k.

    Attributes:
        eta: shape, from -0.999 to 100. 1 is geometric, 0 logarithmic; a smaller shape costs less and varies more.
        gamma: in (0, 1); the smaller, the more runs.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        check_range("eta", self.eta, -0.999, 100.0)
        check_range("gamma", self.gamma, 1e-9, 1 - 1e-9)

    @classmethod
    def with_mean(cls, mean: float, eta: float = 1.0) -> NegativeBinomial:
        """The one of shape `eta` whose mean number of runs is `mean`, at least 1.001.

        >>> NegativeBinomial.with_mean(20.0).gamma
        0.05
        """
        wanted = check_range("mean_runs", mean, 1.001, 1e6)
        if eta == 1:
            return cls(1.0, 1 / wanted)
        # the mean falls as gamma grows
        return cls(eta, smallest(lambda gamma: cls(eta, gamma).mean - wanted, -math.log(wanted), limits=(1e-9, 1 - 1e-9)))

    @property
    def mean(self) -> float:
        """E[K]: (1/gamma - 1)/ln(1/gamma) for eta = 0, else eta (1 - gamma)/(gamma (1 - gamma^eta))."""
        if abs(self.eta) < 1e-9:
            return (1 / self.gamma - 1) / -math.log(self.gamma)
        return self.eta * (1 - self.gamma) / (self.gamma * -math.expm1(self.eta * math.log(self.gamma)))

    def probabilities(self, most: int) -> Floats:
        """(most,) P[K = k] for k = 1..most."""
        k = np.arange(1, most + 1)
        if abs(self.eta) < 1e-9:
            return (1 - self.gamma) ** k / (k * -math.log(self.gamma))
        logs = k * math.log1p(-self.gamma) + np.cumsum(np.log(np.abs(np.r_[self.eta, k[:-1] + self.eta] / k)))
        total = math.expm1(-self.eta * math.log(self.gamma))  # gamma^-eta - 1
        return np.exp(logs) / abs(total)

    def draw(self, uniform: float) -> int:
        """K by inversion of a uniform number in [0, 1)."""
        most = 64
        while True:
            cumulative = np.cumsum(self.probabilities(most))
            if cumulative[-1] > uniform or most >= 1 << 22:
                return min(int(np.searchsorted(cumulative, uniform, side="right")) + 1, most)
            most *= 4

    def rdp(self, curve: Floats) -> Floats:
        """The RDP curve of the best of K runs whose curve is `curve` (Papernot, Steinke 2022, Theorem 2).

        R(a) + (1 + eta) (1 - 1/b) R(b) + (1 + eta) ln(1/gamma)/b + ln E[K]/(a - 1), at the best order b.

        Args:
            curve: (orders,) of one run, at `rdp.ORDERS`.
        """
        price = (1 + self.eta) * ((1 - 1 / _ORDERS) * curve - math.log(self.gamma) / _ORDERS)
        return curve + price.min() + math.log(self.mean) / (_ORDERS - 1)


@dataclass(frozen=True)
class Poisson:
    """K from a Poisson distribution; with chance e^-mean there is no run, and nothing is released.

    Attributes:
        mean: of K, > 0.
    """

    mean: float

    def __post_init__(self) -> None:
        positive("mean_runs", self.mean)

    def draw(self, uniform: float) -> int:
        """K by inversion of a uniform number in [0, 1)."""
        from scipy.stats import poisson

        return int(poisson.ppf(uniform, self.mean)) if uniform > 0 else 0

    def rdp(self, curve: Floats) -> Floats:
        """The RDP curve of the best of K runs (Papernot, Steinke 2022, Theorem 6).

        R(a) + mean delta_a + ln(mean)/(a - 1), where a run is (ln(1 + 1/(a - 1)), delta_a)-DP.
        """
        deltas = np.array([math.exp(rdp.log_delta(curve, math.log1p(1 / (a - 1)))) for a in _ORDERS])
        return np.maximum(curve + self.mean * deltas + math.log(self.mean) / (_ORDERS - 1), 0.0)


Repetitions = NegativeBinomial | Poisson

KINDS = ("geometric", "logarithmic", "negative-binomial", "poisson")


def repetitions(kind: str, mean: float, eta: float = 0.5) -> Repetitions:
    """The distribution of the number of runs by its name, one of `KINDS`, with its mean.

    Args:
        eta: shape of "negative-binomial".
    """
    if kind == "poisson":
        return Poisson(mean)
    shapes = {"geometric": 1.0, "logarithmic": 0.0, "negative-binomial": eta}
    if kind not in shapes:
        raise InvalidInput("repetitions", f"is no distribution: {kind!r}", f"Choose one of {', '.join(KINDS)}.")
    return NegativeBinomial.with_mean(mean, shapes[kind])


def replace_one_curve(event: Event) -> Floats:
    """(orders,) RDP of an event under replace-one at `rdp.ORDERS`.

    Raises:
        CannotAccount: no RDP is known for a part of it under replace-one.
    """
    return curve_of_steps(steps_of(event), Method("rdp", Neighbouring.REPLACE_ONE))


def best_of(curve: Floats, distribution: Repetitions, delta: float) -> float:
    """The epsilon at delta of releasing the best of a random number of runs.

    >>> from dpviz.privacy.accounting.events import Gaussian
    >>> one = replace_one_curve(Gaussian(0.3))
    >>> round(best_of(one, NegativeBinomial.with_mean(20.0), 1e-6) / rdp.epsilon(one, 1e-6)[0], 1)
    2.1
    """
    return rdp.epsilon(distribution.rdp(curve), delta)[0]
