"""Privacy loss distributions: Gaussians on full batches, on Poisson batches, and on fresh batches of fixed size."""

from collections.abc import Sequence

from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, log_delta_of_full
from dpviz.privacy.accounting.events import CannotAccount, Gaussian, Step
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.pld import Pair, log_delta
from dpviz.privacy.budget import Neighbouring


class PLD(Accountant):
    """The distribution of the privacy loss, composed by FFT on a grid that errs upwards."""

    name = "pld"
    words = "privacy loss distribution (tilted FFT, pessimistic grid)"
    label = "PLD"
    conversion_words = "δ(ε) of the composed distribution"
    place = 30
    samplings = ("full", "poisson", "without-replacement")
    columns = (("PLD", "improved"),)

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
        if method.relation is Neighbouring.REPLACE_ONE:  # no replacement is further apart: proved in `rdp.opposite_rows`
            return log_delta(Pair("opposite", step.rate, shift), count, epsilon, floor)
        # neither direction is known to be the larger one after composition
        return max(log_delta(Pair(kind, step.rate, shift), count, epsilon, floor) for kind in directions)

    def lines(self, step: Step) -> Sequence[Line]:
        if step.sampling != "full":
            pair = r"(1-q)N(0)+qN(\pm1)" if step.sampling == "poisson" else r"q\,\delta_G(\ln(1+(e^\varepsilon-1)/q),2)"
            return (Line(name="PLD", formula=pair, source="Doroshenko et al. 2022"),)
        total = step.total
        return (
            Line(
                name="PLD",
                formula=r"\delta(\varepsilon)=\mathbb E_P[(1-e^{\varepsilon-\ell})_+]",
                source="Sommer, Meiser, Mohammadi 2019",
                note="for Gaussian releases the privacy loss is Gaussian: the same as exact",
                sigma=lambda budget: total / gaussian_mu(budget),
            ),
        )


ACCOUNTANT = PLD()
