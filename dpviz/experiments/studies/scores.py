"""Scores and thresholds: score distributions, ROC and precision-recall curves, reliability, and the confusion matrix.

Of the private models (one for each noise draw) and of the non-private one, on the test rows. Everything here is read from
private rows and is not covered by epsilon, as is any threshold chosen by looking at it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from dpviz.common.arrays import Floats
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps.curves import QUANTILES

Curve = Callable[[Floats, Floats], Floats]  # (values, labels) -> one number for each of `GRID`

PRIVATE, NON_PRIVATE = "private", "non-private"
GRID = np.linspace(0.0, 1.0, 101)  # of false-positive rates and recalls
BINS = 10  # of the reliability diagram
_BARS = 40  # of the distribution


@dataclass(frozen=True, eq=False)
class Scores:
    """Values of the test rows, and what follows from them.

    Attributes:
        values: "private" (S, n) and "non-private" (1, n): probabilities of +1 where the model gives them, else decision values.
        y: (n,) labels in {-1, +1}.
        probabilities: whether the values are probabilities.
    """

    values: dict[str, Floats]
    y: Floats
    probabilities: bool

    @property
    def usual(self) -> float:
        """The threshold that predictions use: 0.5, or 0 for decision values."""
        return 0.5 if self.probabilities else 0.0

    @property
    def span(self) -> tuple[float, float]:
        """Smallest and largest value that makes sense as a threshold."""
        if self.probabilities:
            return 0.0, 1.0
        ends = [v for part in self.values.values() for v in (part.min(), part.max())]
        return float(min(ends)), float(max(ends))

    def distribution(self) -> pd.DataFrame:
        """Share of each class's rows per interval: model, label, value (middle of the interval), share (mean over the draws)."""
        edges = np.linspace(*self.span, _BARS + 1)
        rows = []
        for model, values in self.values.items():
            for label in (-1, 1):
                inside = values[:, self.y == label]
                counts, _ = np.histogram(inside, edges)
                share = counts / max(inside.size, 1)
                middles = (edges[1:] + edges[:-1]) / 2
                rows += [(model, label, middle, part) for middle, part in zip(middles, share, strict=True)]
        return pd.DataFrame(rows, columns=["model", "label", "value", "share"])

    def roc(self) -> pd.DataFrame:
        """Recall at false-positive rates of at most `GRID`: model, x, mean, low, high over the draws."""
        return self._over_draws(_recalls)

    def precision_recall(self) -> pd.DataFrame:
        """Precision at the highest threshold with a recall of at least `GRID`: model, x, mean, low, high over the draws."""
        return self._over_draws(_precisions)

    def _over_draws(self, curve: Curve) -> pd.DataFrame:
        parts = []
        for model, values in self.values.items():
            lines = np.array([curve(row, self.y) for row in values])
            low, high = np.quantile(lines, QUANTILES, axis=0)
            parts.append(pd.DataFrame({"model": model, "x": GRID, "mean": lines.mean(axis=0), "low": low, "high": high}))
        return pd.concat(parts, ignore_index=True)

    def reliability(self) -> pd.DataFrame:
        """Per interval of predicted probability: model, predicted, observed (share of +1), low, high over the draws, rows.

        Rows are means over the draws; draws without a row in an interval are left out. Empty where there are no probabilities.
        """
        rows = []
        for model, values in self.values.items() if self.probabilities else ():
            index = np.minimum((values * BINS).astype(np.intp), BINS - 1)
            for k in range(BINS):
                inside = index == k
                count = inside.sum(axis=1)
                there = count > 0
                if there.any():
                    observed = (inside & (self.y > 0)).sum(axis=1)[there] / count[there]
                    predicted = float((values * inside).sum() / count.sum())
                    low, high = np.quantile(observed, QUANTILES)
                    rows.append((model, predicted, float(observed.mean()), float(low), float(high), float(count.mean())))
        return pd.DataFrame(rows, columns=["model", "predicted", "observed", "low", "high", "rows"])

    def confusion(self, threshold: float) -> pd.DataFrame:
        """Means over the draws where rows from `threshold` on are called positive; NaN where nothing is divided.

        Returns:
            One row per model (index): true_positive, false_negative, false_positive, true_negative, recall, precision,
            false_positive_rate, accuracy.
        """
        rows = {}
        positive = self.y > 0
        for model, values in self.values.items():
            called = values >= threshold
            hits, false = (called & positive).sum(axis=1), (called & ~positive).sum(axis=1)
            total, others = int(positive.sum()), int((~positive).sum())
            calls = (hits + false)[hits + false > 0]
            rows[model] = {
                "true_positive": hits.mean(),
                "false_negative": (total - hits).mean(),
                "false_positive": false.mean(),
                "true_negative": (others - false).mean(),
                "recall": (hits / total).mean() if total else np.nan,
                "precision": (hits[hits + false > 0] / calls).mean() if len(calls) else np.nan,
                "false_positive_rate": (false / others).mean() if others else np.nan,
                "accuracy": ((hits + others - false) / len(self.y)).mean(),
            }
        return pd.DataFrame.from_dict(rows, orient="index")

    def matrix(self, threshold: float, names: tuple[str, str]) -> pd.DataFrame:
        """`confusion` in words: one row per count or share, with the columns what, private and non-private.

        Args:
            names: of the classes -1 and +1.
        """
        table, (negative, positive) = self.confusion(threshold), names
        counts = {
            "true_positive": f"{positive}, called {positive}",
            "false_negative": f"{positive}, called {negative}",
            "false_positive": f"{negative}, called {positive}",
            "true_negative": f"{negative}, called {negative}",
        }
        shares = {
            "recall": "Recall",
            "precision": "Precision",
            "false_positive_rate": "False-positive rate",
            "accuracy": "Accuracy",
        }
        rows = [(label, *(f"{table.at[m, name]:,.1f}" for m in (PRIVATE, NON_PRIVATE))) for name, label in counts.items()]
        rows += [(label, *(_share(float(table.at[m, name])) for m in (PRIVATE, NON_PRIVATE))) for name, label in shares.items()]
        return pd.DataFrame(rows, columns=["what", PRIVATE, NON_PRIVATE])


def _share(value: float) -> str:
    return "none" if np.isnan(value) else f"{100 * value:.1f} %"


def scores(spec: RunSpec, theta: Floats, labels: Floats | None = None) -> Scores | None:
    """The values of a run's released models on its test rows.

    Args:
        spec: the run.
        theta: (S, m) released parameters.
        labels: (S,) labels where a label was released in the place of a model.

    Returns:
        None where there are no scores: a label was released, or the test rows are of one class.
    """
    setup = setup_for(spec)
    y = setup.test.y
    if labels is not None or abs(y.sum()) == len(y):
        return None
    model = setup.problem.model
    scores_by_model = {
        PRIVATE: np.ascontiguousarray(model.scores(theta, setup.test).T),
        NON_PRIVATE: np.ascontiguousarray(model.scores(setup.reference.optimum[None], setup.test).T),
    }
    if model.loss.probabilities:
        scores_by_model = {name: expit(values) for name, values in scores_by_model.items()}
    return Scores(scores_by_model, y, model.loss.probabilities)


def _recalls(values: Floats, y: Floats) -> Floats:
    from sklearn.metrics import roc_curve  # half a second, which the first page does not need

    false, recall, _ = roc_curve(y, values, drop_intermediate=False)
    return np.asarray(recall[np.searchsorted(false, GRID + 1e-12, side="right") - 1])


def _precisions(values: Floats, y: Floats) -> Floats:
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(y, values)
    rising = slice(-2, None, -1)  # without the last point, which is no threshold
    return np.asarray(precision[rising][np.searchsorted(recall[rising], GRID - 1e-12)])
