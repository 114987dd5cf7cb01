"""LiRA, online: the likelihood ratio of a row's signal under members and under non-members (Carlini et al. 2022)."""

import numpy as np

from dpviz.auditing.attacks.base import Floats, MembershipAttack, RowGaussians, Shadows, Targets, row_gaussians
from dpviz.common.progress import Monitor, ignore


class LiRAOnline(MembershipAttack):
    """Two Gaussians a row, of shadow models with and without it."""

    id = "lira-online"
    label = "LiRA, online"
    citation = "Carlini, Chien, Nasr, Song, Terzis, Tramèr, S&P 2022, Algorithm 1"
    formula = (
        r"\ln\mathcal N(s;\mu_{\mathrm{in}},\sigma_{\mathrm{in}}^2)-\ln\mathcal N(s;\mu_{\mathrm{out}},\sigma_{\mathrm{out}}^2)"
    )
    idea = "The signal is likelier under shadow models that were trained on the row than under those that were not."

    def score(self, targets: Targets, shadows: Shadows, monitor: Monitor = ignore) -> Floats:
        return log_density(targets.signals, row_gaussians(shadows, True)) - log_density(
            targets.signals, row_gaussians(shadows, False)
        )


def log_density(signals: Floats, of: RowGaussians) -> Floats:
    """(T, n) ln N(s; mean, variance) without its constant, which cancels in the ratio of Algorithm 1, line 15."""
    return np.asarray(-0.5 * (signals - of.mean) ** 2 / of.variance - 0.5 * np.log(of.variance))
