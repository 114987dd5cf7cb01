"""RMIA: a row against rows of the population, each relative to what shadow models say of it (Zarifzadeh et al. 2024).

Was the model trained on x, or on z in its place? By Bayes p(theta | x) = p(x | theta) p(theta)/p(x), so that the likelihood
ratio of the two is (p(x | theta)/p(x)) / (p(z | theta)/p(z)): p(theta) cancels [derived here]. x dominates z where it is at least
gamma, and the score is the share of the population that x dominates. p(x) is a mean over models, half of them trained on x.
Rows that dominate equally many are ordered by their ratio, and where that is the same by a coin, so that this attack finds a
little more than the published share, which leaves such ties.
"""

import numpy as np
from scipy.special import expit, logsumexp

from dpviz.auditing.attacks.base import Floats, MembershipAttack, Shadows, Targets
from dpviz.common.progress import Monitor, ignore

#: the ratio above which a row dominates one of the population; near 1, where private models have their ratios
GAMMA = 1.0


class RMIA(MembershipAttack):
    """The share of the population that a row dominates, online: shadow models with and without the row count alike."""

    id = "rmia"
    label = "RMIA"
    citation = "Zarifzadeh, Liu, Shokri, ICML 2024, score as ml_privacy_meter documents it (mia.md)"
    formula = (
        r"P_z\!\left[\frac{p(x\mid\theta)}{p(x)}\ge\gamma\,\frac{p(z\mid\theta)}{p(z)}\right],\quad "
        r"p(x)=\tfrac12\left(\bar p_{\mathrm{in}}(x)+\bar p_{\mathrm{out}}(x)\right)"
    )
    idea = (
        "Against shadow models the row gained more probability than most rows of the population; ties of this share are ordered "
        "by the gain itself, which finds a little more than the published score."
    )

    def score(self, targets: Targets, shadows: Shadows, monitor: Monitor = ignore) -> Floats:
        rows = _log_p(targets.signals) - _reference(shadows)
        reference = logsumexp(_log_p(shadows.population), axis=0) - np.log(len(shadows))  # ln of the mean over models
        population = np.sort(_log_p(targets.population) - reference, axis=1)
        scores = np.empty(rows.shape)
        for t, (ratio, others) in enumerate(zip(rows, population, strict=True)):
            monitor(t / len(rows))
            dominated = np.searchsorted(others, ratio - np.log(GAMMA), side="right")
            # rows that dominate equally many are ordered by their ratio: a small population would tie the most exposed ones
            scores[t] = (dominated + expit(ratio)) / (len(others) + 1)
        return scores


def _log_p(signals: Floats) -> Floats:
    """ln of the probability of the row's label."""
    return np.asarray(-np.logaddexp(0.0, -np.asarray(signals, float)))


def _reference(shadows: Shadows) -> Floats:
    """(n,) ln p(x), the mean of both kinds of shadow models; of the one that is there where the other is missing."""
    p, member = expit(np.asarray(shadows.signals, float)), shadows.member
    inside, outside = member.sum(axis=0), (~member).sum(axis=0)
    means = [(np.where(kind, p, 0.0).sum(axis=0), count) for kind, count in ((member, inside), (~member, outside))]
    both = [np.where(count > 0, total / np.maximum(count, 1), 0.0) for total, count in means]
    kinds = np.minimum(inside, 1) + np.minimum(outside, 1)
    return np.asarray(np.log(np.maximum((both[0] + both[1]) / np.maximum(kinds, 1), 1e-300)))
