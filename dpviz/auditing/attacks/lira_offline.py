"""LiRA, offline: how unusual a row's signal is among models that were not trained on it (Carlini et al. 2022)."""

import numpy as np

from dpviz.auditing.attacks.base import Floats, MembershipAttack, Shadows, Targets, row_gaussians
from dpviz.common.progress import Monitor, ignore


class LiRAOffline(MembershipAttack):
    """A one-sided test against one Gaussian a row, of shadow models without it."""

    id = "lira-offline"
    label = "LiRA, offline"
    citation = "Carlini, Chien, Nasr, Song, Terzis, Tramèr, S&P 2022, equation (4)"
    formula = r"P[Z\le s],\quad Z\sim\mathcal N(\mu_{\mathrm{out}},\sigma_{\mathrm{out}}^2)"
    idea = "The signal is larger than under shadow models that were not trained on the row."

    def score(self, targets: Targets, shadows: Shadows, monitor: Monitor = ignore) -> Floats:
        out = row_gaussians(shadows, False)
        # the distance in standard deviations orders rows as 1 - P[Z > s] of equation (4) does, which is 1 in doubles from 8.3 on
        return np.asarray((targets.signals - out.mean) / np.sqrt(out.variance))
