"""The exact composition of Gaussian mechanisms on full batches."""

from collections.abc import Sequence

from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, log_delta_of_full
from dpviz.privacy.accounting.events import Step
from dpviz.privacy.accounting.gaussian import gaussian_mu


class ExactGaussian(Accountant):
    """mu of all releases together is sqrt(count) times that of one (Dong, Roth, Su 2022, Corollary 2)."""

    name = "gaussian"
    words = "exact composition of Gaussian mechanisms"
    label = "Exact Gaussian"
    conversion_words = "Balle, Wang 2018, Theorem 8"
    place = 40

    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        return log_delta_of_full(step, method, epsilon, floor)

    def lines(self, step: Step) -> Sequence[Line]:
        if step.sampling != "full":
            return ()
        total = step.total
        return (
            Line(
                name="Exact Gaussian",
                formula=r"\Phi(\tfrac\mu2-\tfrac\varepsilon\mu)-e^\varepsilon\Phi(-\tfrac\mu2-\tfrac\varepsilon\mu)=\delta,"
                rf"\ \mu={step.formula}/\sigma",
                source="Balle, Wang 2018, Theorem 8",
                sigma=lambda budget: total / gaussian_mu(budget),
            ),
        )


ACCOUNTANT = ExactGaussian()
