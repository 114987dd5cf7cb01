"""Privacy loss distributions: Gaussians on full batches, on Poisson batches, and on fresh batches of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, log_delta_of_full
from dpviz.privacy.accounting.events import CannotAccount, Gaussian, Step
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.pld import Pair, log_delta
from dpviz.privacy.budget import Neighbouring, Status

#: rates below which, and epsilons between which, two hops were the smaller proof wherever both were computed; the other
#: distribution takes as long at such rates
_LOW_RATE, _HOPS_ARE_LESS = 0.1, (1e-3, 5.0)


class PLD(Accountant):
    """The distribution of the privacy loss, composed by FFT on a grid that errs upwards."""

    name = "pld"
    words = "privacy loss distribution (tilted FFT, pessimistic grid)"
    label = "PLD"
    conversion_words = "δ(ε) of the composed distribution"
    place = 30
    samplings = ("full", "poisson", "without-replacement")
    opposite = True
    columns = (("PLD", "cks"),)

    def refuse(self, step: Step, method: Method) -> None:
        super().refuse(step, method)
        if step.sampling == "without-replacement" and method.relation is not Neighbouring.REPLACE_ONE:
            cause = "batches of fixed size are covered for replace-one by PLD only"
            raise CannotAccount("accountant", cause, "Use pld with replace-one.")

    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        event, count = step.event, step.count
        assert isinstance(event, Gaussian)
        if step.sampling == "full":  # the privacy loss of Gaussians is Gaussian: exact
            return log_delta_of_full(step, method, epsilon, floor)
        shift = 1 / event.noise_multiplier
        if step.sampling == "without-replacement":
            # Balle, Barthe, Gaboardi 2018, Theorem 9: delta' = (b/n) delta(ln(1 + (e^eps - 1) n/b)) for replacements
            return log_delta(Pair("symmetric", step.rate, 2 * shift), count, epsilon, floor)
        if method.route == "opposite" and method.relation is Neighbouring.REPLACE_ONE:
            return log_delta(Pair("opposite", step.rate, shift), count, epsilon, floor)
        # neither direction is known to be the larger one after composition
        return max(log_delta(Pair(kind, step.rate, shift), count, epsilon, floor) for kind in directions)

    def log_delta_of_replacement(self, steps: tuple[Step, ...], method: Method, epsilon: float, floor: float) -> float:
        """The profile of batches of a fixed size, which holds for Poisson batches too.

        Both neighbours draw the batch of the other rows alike, and the row joins it with chance q: two mixtures with one part
        in common, to which Balle, Barthe, Gaboardi 2018, Theorem 2, applies; removing and replacing the row each move a sum by
        at most 2C. At q = 1 it is the exact bound of full batches.
        """
        (step,) = steps
        if step.rate < _LOW_RATE and _HOPS_ARE_LESS[0] < epsilon < _HOPS_ARE_LESS[1]:
            return 0.0
        return self.log_delta(replace(step, sampling="without-replacement"), method, epsilon, floor, ("remove", "add"))

    def route(self, steps: tuple[Step, ...]) -> str | None:
        if len(steps) > 1:
            return None
        return {"poisson": "two-hop", "without-replacement": "none"}.get(steps[0].sampling)

    def lines(self, step: Step) -> Sequence[Line]:
        if step.sampling != "full":
            hops = r"\delta(\varepsilon)\le(1+e^{\varepsilon/2})\,\delta_\pm(\varepsilon/2)"
            return (
                Line("PLD, remove and add", hops, "Doroshenko et al. 2022", route="two-hop"),
                Line(
                    "PLD, opposite pair",
                    r"(1-q)N(0)+qN(\pm1)",
                    "dp_accounting's convention",
                    route="opposite",
                    note="that this pair dominates every replacement is not proved",
                    status=Status.CLAIM,
                ),
            )
        total = step.total
        return (
            Line(
                "PLD",
                r"\delta(\varepsilon)=\mathbb E_P[(1-e^{\varepsilon-\ell})_+]",
                "Sommer, Meiser, Mohammadi 2019",
                note="for Gaussian releases the privacy loss is Gaussian: the same as exact",
                sigma=lambda budget: total / gaussian_mu(budget),
            ),
        )


ACCOUNTANT = PLD()
