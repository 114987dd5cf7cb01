"""The divergence that defines (epsilon, delta): Gaussians on full batches, mixtures, pure releases and shuffled reports."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, logsumexp

from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, full_release_mu, log_delta_of_full
from dpviz.privacy.accounting.events import CannotAccount, Gaussian, Mixture, PureEpsilon, Shuffled, Step
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.mixture import mixture_delta, mixture_epsilon, mixture_sigma
from dpviz.privacy.accounting.shuffle import central_epsilon, shuffled_gaussian


class HockeyStick(Accountant):
    """Exact for Gaussians of full batches and pure releases; joint convexity for mixtures; a theorem for shuffled reports."""

    name = "hockey-stick"
    words = "hockey-stick divergence"
    label = "Hockey-stick divergence"
    conversion_words = "none: the divergence is δ(ε)"
    place = 50
    kinds = (Gaussian, Mixture, PureEpsilon, Shuffled)

    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        event, count = step.event, step.count
        if isinstance(event, PureEpsilon):
            return log_pure_delta(event.epsilon, count, epsilon)
        if isinstance(event, Shuffled):
            raise CannotAccount("epsilon", "the theorem on shuffling starts from delta", "Ask for the epsilon at a delta.")
        if isinstance(event, Mixture):
            return math.log(max(mixture_delta(epsilon, *event.parts, event.sigma), math.exp(floor - 1)))
        return log_delta_of_full(step, method, epsilon, floor)

    def epsilon(self, step: Step, method: Method, delta: float) -> float | None:
        event = step.event
        if isinstance(event, PureEpsilon):
            return None
        if isinstance(event, Shuffled) and isinstance(event.event, PureEpsilon):
            return central_epsilon(event.event.epsilon, event.n, delta)
        if isinstance(event, Shuffled):
            assert isinstance(event.event, Gaussian)
            return shuffled_gaussian(event.event.sensitivity / event.event.sigma, event.n, delta).epsilon
        if isinstance(event, Mixture):
            return mixture_epsilon(delta, *event.parts, event.sigma)
        return float(gaussian_epsilon(delta, full_release_mu(event, method) * math.sqrt(step.count)))

    def lines(self, step: Step) -> Sequence[Line]:
        if not isinstance(step.event, Mixture):
            return ()  # the same as the exact Gaussian
        parts = step.event.parts
        return (
            Line(
                name="Mixture, hockey-stick",
                formula=r"\delta(\varepsilon)\le\sum_j q_j\,\delta_G(\varepsilon,\Delta_j/\sigma)",
                source="joint convexity [ours]",
                sigma=lambda budget: mixture_sigma(budget, *parts),
            ),
        )


def log_pure_delta(single: float, count: int, epsilon: float) -> float:
    """ln delta of `count` releases that are each `single`-DP: the exact composition.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3: randomised response is the worst case, so delta is the sum over l of
    C(k, l) (e^((k-l) e0) - e^(eps + l e0))_+ / (1 + e^e0)^k.
    """
    ell = np.arange(count + 1)
    gain = (count - ell) * single - (epsilon + ell * single)
    ell, gain = ell[gain > 0], gain[gain > 0]
    if len(ell) == 0:
        return -math.inf
    choose = gammaln(count + 1) - gammaln(ell + 1) - gammaln(count - ell + 1)
    terms = choose + (count - ell) * single + np.log(-np.expm1(-gain)) - count * np.logaddexp(0.0, single)
    return min(0.0, float(logsumexp(terms)))


ACCOUNTANT = HockeyStick()
