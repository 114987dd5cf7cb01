"""Quantile regression: a row above the quantile of non-members like it (Bertran et al. 2023). It needs no shadow models.

Among non-members with these features and label the signal s is above its quantile q of level 1 - a with chance a: a test with a
false alarms. q is where the mean pinball loss (1 - a) max(s - q, 0) + a max(q - s, 0) is least: its slope in q is a - P[s > q]
[derived here].
"""

import numpy as np

from dpviz.auditing.attacks.base import Floats, MembershipAttack, Shadows, Targets
from dpviz.common.progress import Monitor, ignore

#: false alarms that the regression aims at; other rates move the quantile of all rows by the same distance
RATE = 0.05


class QuantileRegression(MembershipAttack):
    """The signal above its quantile among non-members, predicted from a row's features and label for each target model."""

    id = "quantile-regression"
    label = "Quantile regression"
    citation = "Bertran, Tang, Kearns, Morgenstern, Roth, Wu, NeurIPS 2023, with the pinball loss"
    formula = r"s-\hat q_{1-\alpha}(x,y)"
    idea = "The signal exceeds a quantile of the population's, which a regression predicts from the row."
    most_targets = 64

    def score(self, targets: Targets, shadows: Shadows, monitor: Monitor = ignore) -> Floats:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        # trees as small as the population allows: a leaf of fewer than 1/RATE rows has no such quantile
        leaves = {"max_leaf_nodes": 8, "min_samples_leaf": int(2 / RATE), "max_iter": 40}
        model = HistGradientBoostingRegressor(loss="quantile", quantile=1 - RATE, early_stopping=False, random_state=0, **leaves)
        scores = np.empty(targets.signals.shape)
        with threadpool_limits(1, user_api="openmp"):  # threads that share so few rows wait for each other
            for t, (signals, population) in enumerate(zip(targets.signals, targets.population, strict=True)):
                monitor(t / len(targets))
                scores[t] = signals - model.fit(targets.population_rows, population).predict(targets.rows)
        return scores
