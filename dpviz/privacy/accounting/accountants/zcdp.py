"""zCDP of Gaussians on full batches, with the conversion of Bun and Steinke."""

import math
from collections.abc import Sequence

from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, full_release_mu
from dpviz.privacy.accounting.events import Gaussian, Step


class ZCDP(Accountant):
    """rho of all releases added up; eps = rho + 2 sqrt(rho ln(1/delta)) (Bun, Steinke 2016, Proposition 1.3)."""

    name = "zcdp"
    words = "zCDP (Bun, Steinke 2016)"
    label = "zCDP"
    conversion_words = "Bun, Steinke 2016, Proposition 1.3"
    place = 10
    columns = (("zCDP", "improved"),)

    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        assert isinstance(step.event, Gaussian)
        total = full_release_mu(step.event, method) * math.sqrt(step.count)
        return -((max(epsilon - total**2 / 2, 0.0)) ** 2) / (2 * total**2)  # the conversion, solved for delta

    def lines(self, step: Step) -> Sequence[Line]:
        if step.sampling != "full":
            return (Line(name="zCDP", formula=r"\rho=T\mu^2/2", source="Bun, Steinke 2016"),)
        total = step.total
        return (
            Line(
                name="zCDP",
                formula=rf"\varepsilon=\rho+2\sqrt{{\rho\ln(1/\delta)}},\ \rho=({step.formula})^2/2\sigma^2",
                source="Bun, Steinke 2016, Proposition 1.3",
                note="the same as RDP with Mironov's conversion: both take the best order of the same line",
                sigma=lambda budget: total / math.sqrt(2 * rdp.zcdp_rho(budget)),
            ),
        )


ACCOUNTANT = ZCDP()
