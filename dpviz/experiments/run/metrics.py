"""Measures of usefulness beside accuracy: ROC AUC, average precision, recall, log loss, calibration, for all replicas.

A score of at least 0 predicts +1, as everywhere in this package. Rank-based measures treat equal scores as one
threshold. A measure that has no value is NaN: rank-based measures where one class is missing, measures of
probabilities where the model gives none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.threads import map_streams
from dpviz.common.validate import InvalidInput, check_choice, check_range, number_from_text
from dpviz.models import Model, Rows

_BLOCK = 1 << 18  # scores worked on at once: what is made of them stays in the processor's cache
PRECISION, FALSE_POSITIVE_RATE = 0.5, 0.05  # at which recall is measured unless another level is chosen
LEAST_PRECISION = 1e-6
RARE = 0.1  # share of the rows below which a class is called rare
_BINS = 15  # of the calibration error (Guo et al. 2017)


@dataclass(frozen=True)
class Metric:
    """A measure of how useful a model is.

    Attributes:
        id: name in addresses, tables and on the command line.
        label: name for people.
        help: what it measures, in one or two sentences.
        higher_is_better: the direction in which a model improves.
        needs: "labels" (predicted labels), "ranks" (scores) or "probabilities" (scores of a model with probabilities).
    """

    id: str
    label: str
    help: str
    needs: str
    higher_is_better: bool = True
    level: float | None = None

    @property
    def kind(self) -> str:
        """The id without its level: a key of `METRICS`."""
        return self.id.partition("=")[0]

    @property
    def within(self) -> str:
        """The label inside a sentence: "balanced accuracy", "ROC AUC"."""
        return self.label if self.label.split()[0] in ("F1", "ROC", "Brier") else self.label[0].lower() + self.label[1:]

    @property
    def shares(self) -> bool:
        """True where values are shares, written in percent; otherwise they are losses, written as they are."""
        return self.needs != "probabilities"

    @property
    def column(self) -> str:
        """Name of its column in tables."""
        return self.id.replace("-", "_").replace("=", "_")


def _at_precision(level: float) -> Metric:
    return Metric(
        "recall-at-precision",
        f"Recall at {100 * level:g} % precision",
        "Largest recall of the positive class at a threshold with at least this precision; 0 where none has it.",
        "ranks",
        level=level,
    )


def _at_false_positive_rate(level: float) -> Metric:
    return Metric(
        "recall-at-false-positive-rate",
        f"Recall at {100 * level:g} % false positives",
        "Largest recall of the positive class at a threshold with at most this false-positive rate.",
        "ranks",
        level=level,
    )


METRICS: dict[str, Metric] = {
    m.id: m
    for m in (
        Metric("accuracy", "Accuracy", "Share of rows that are predicted right.", "labels"),
        Metric("balanced-accuracy", "Balanced accuracy", "Mean of the shares of each class that are predicted right.", "labels"),
        Metric("f1", "F1 score", "Harmonic mean of precision and recall of the positive class.", "labels"),
        Metric(
            "roc-auc",
            "ROC AUC",
            "Chance that a positive row has a higher score than a negative one; equal scores count half.",
            "ranks",
        ),
        Metric(
            "average-precision",
            "Average precision",
            "Mean precision over all thresholds, weighted by the recall gained.",
            "ranks",
        ),
        _at_precision(PRECISION),
        _at_false_positive_rate(FALSE_POSITIVE_RATE),
        Metric("log-loss", "Log loss", "Mean negative log-probability of the true label.", "probabilities", False),
        Metric("brier", "Brier score", "Mean squared error of the predicted probability.", "probabilities", False),
        Metric(
            "calibration-error",
            "Calibration error",
            f"Mean distance between predicted probability and observed share, over {_BINS} bins of equal width.",
            "probabilities",
            False,
        ),
    )
}


_LEVELS = {
    "recall-at-precision": ("precision", _at_precision, LEAST_PRECISION),
    "recall-at-false-positive-rate": ("false-positive rate", _at_false_positive_rate, 0.0),
}
_SHORT = {
    "recall@precision": "recall-at-precision",
    "recall@fpr": "recall-at-false-positive-rate",
    "recall@false-positive-rate": "recall-at-false-positive-rate",
}


def get_metric(name: str, field: str = "metric") -> Metric:
    """A metric by its id, which may name another level: "recall-at-precision=0.6", or short "recall@precision=0.6".

    Its id has no level where that is the default.

    Args:
        name: the id.
        field: what an error calls it.

    Raises:
        InvalidInput: an unknown metric, a level of a measure without, or one outside its range.

    >>> get_metric("recall@precision=0.6").id
    'recall-at-precision=0.6'
    >>> get_metric("roc-auc").higher_is_better
    True
    """
    metric, equals, text = str(name).partition("=")
    kind = check_choice(field, _SHORT.get(metric, metric), METRICS)
    if not equals:
        return METRICS[kind]
    if kind not in _LEVELS:
        raise InvalidInput(field, f"{kind} has no level", f"Leave out “={text[:20]}”.")
    what, make, least = _LEVELS[kind]
    level = check_range(what, number_from_text(what, text), least, 1.0)
    return METRICS[kind] if level == METRICS[kind].level else replace(make(level), id=f"{kind}={level!r}")


def all_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Ids of all metrics, and of those among `names` that have a level of their own."""
    return (*METRICS, *dict.fromkeys(metric.id for metric in map(get_metric, names) if metric.id not in METRICS))


def levels_of(names: Sequence[str]) -> tuple[str, ...]:
    """Ids of those among `names` that have a level of their own, which tables of all metrics do not hold, in order."""
    return tuple(sorted(all_metrics(names)[len(METRICS) :]))


def metric_of_column(column: str) -> Metric | None:
    """The metric whose column of a table this is; None where it is of none.

    >>> metric_of_column("roc_auc").label
    'ROC AUC'
    """
    standard = {metric.column: metric for metric in METRICS.values()}
    for start in (METRICS[kind].column for kind in _LEVELS):
        if column.startswith(f"{start}_") and column not in standard:
            return get_metric(f"{standard[start].id}={column.removeprefix(f'{start}_')}")
    return standard.get(column)


def measure(
    scores: Floats, y: Floats, metrics: Sequence[str] = tuple(METRICS), *, probabilities: bool = True
) -> dict[str, Floats]:
    """Measures of R replicas on n rows.

    Args:
        scores: (R, n) finite.
        y: (n,) labels in {-1, +1}.
        metrics: ids (`get_metric`).
        probabilities: whether sigmoid(score) is the model's probability of +1; without it those measures are NaN.

    Returns:
        Metric id -> (R,), in the order of `metrics`.

    Raises:
        InvalidInput: shapes that do not fit, labels that are not -1 or +1, scores that are not finite, unknown metrics.

    >>> measure(np.array([[2.0, -1.0, 0.5]]), np.array([1.0, -1.0, -1.0]), ["accuracy", "roc-auc"])
    {'accuracy': array([0.66666667]), 'roc-auc': array([1.])}
    """
    s, labels = np.asarray(scores, float), np.asarray(y, float)
    if s.ndim != 2 or labels.shape != s.shape[1:] or labels.size == 0:
        fix = "Give scores of shape (replicas, rows) and one label for each row."
        raise InvalidInput("scores", f"have shape {s.shape} beside labels of shape {labels.shape}", fix)
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise InvalidInput("y", "has labels other than -1 and +1", "Encode the labels as -1 and +1.")
    if not np.isfinite(s).all():
        raise InvalidInput("scores", "are not all finite", "Leave out replicas that diverged.")
    chosen = [get_metric(name) for name in metrics]
    out = {metric.id: np.full(len(s), np.nan) for metric in chosen}
    size = max(1, _BLOCK // labels.size)
    for first in range(0, len(s), size):
        rows = slice(first, first + size)
        for name, values in _block(s[rows], labels > 0, chosen, probabilities).items():
            out[name][rows] = values
    return out


def _block(s: Floats, positive: NDArray[np.bool_], chosen: Sequence[Metric], probabilities: bool) -> dict[str, Floats]:
    needed = {metric.needs for metric in chosen}
    values: dict[str, Floats] = {}
    if "labels" in needed:
        values |= _of_labels(s >= 0, positive)
    if "ranks" in needed and 0 < positive.sum() < positive.size:
        values |= _of_ranks(s, positive, [metric for metric in chosen if metric.level is not None])
    if "probabilities" in needed and probabilities:
        values |= _of_probabilities(s, positive)
    return {metric.id: values[metric.id] for metric in chosen if metric.id in values}


def _of_labels(predicted: NDArray[np.bool_], positive: NDArray[np.bool_]) -> dict[str, Floats]:
    """Measures of predicted labels; balanced accuracy is over the classes that are there."""
    total, n = float(positive.sum()), float(positive.size)
    hits = (predicted & positive).sum(axis=1).astype(float)
    false = (predicted & ~positive).sum(axis=1).astype(float)
    shares = [part / count for part, count in ((hits, total), (n - total - false, n - total)) if count]
    with np.errstate(invalid="ignore"):
        f1 = 2 * hits / (total + hits + false)  # precision and recall have the same numerator; NaN without any positive
    return {"accuracy": (hits + n - total - false) / n, "balanced-accuracy": np.mean(shares, axis=0), "f1": f1}


def _of_ranks(s: Floats, positive: NDArray[np.bool_], levels: Sequence[Metric]) -> dict[str, Floats]:
    """Measures over all thresholds, which lie behind the last row of equal scores."""
    total, others = int(positive.sum()), int((~positive).sum())
    values = {name: np.empty(len(s)) for name in ("roc-auc", "average-precision", *(metric.id for metric in levels))}
    for r, scores in enumerate(s):
        order = np.argsort(-scores)
        ordered = scores[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        hits = np.cumsum(positive[order])[ends]
        misses, precision, more = ends + 1 - hits, hits / (ends + 1), np.diff(hits, prepend=0)
        # pairs of a positive and a negative row in the right order, those of equal scores by half
        values["roc-auc"][r] = np.diff(misses, prepend=0) @ (hits - more / 2) / (total * others)
        values["average-precision"][r] = more @ precision / total
        for metric in levels:
            level, at_precision = metric.level or 0.0, metric.kind == "recall-at-precision"
            allowed = precision >= level if at_precision else misses / others <= level
            values[metric.id][r] = (allowed * hits).max() / total
    return values


def _of_probabilities(s: Floats, positive: NDArray[np.bool_]) -> dict[str, Floats]:
    small = np.exp(-np.abs(s))  # in (0, 1]: nothing overflows
    wrong = np.where(positive, -s, s)
    p = np.exp(np.minimum(s, 0.0)) / (1.0 + small)
    bins = np.minimum((_BINS * p).astype(np.intp), _BINS - 1) + _BINS * np.arange(len(s))[:, None]
    surplus = np.bincount(bins.ravel(), (p - positive).ravel(), _BINS * len(s)).reshape(len(s), _BINS)
    return {
        # finite where a probability rounds to 0 or 1
        "log-loss": np.maximum(wrong, 0.0).mean(axis=1) + np.log1p(small).mean(axis=1),
        "brier": np.square(p - positive).mean(axis=1),
        "calibration-error": np.abs(surplus).sum(axis=1) / positive.size,
    }


def measure_models(model: Model, theta: Floats, rows: Rows, labels: Floats | None, metrics: Sequence[str]) -> pd.DataFrame:
    """Measures of R trained replicas on rows, one column for each metric (`Metric.column`).

    Args:
        model: what was trained.
        theta: (R, m) parameters.
        rows: n labelled rows.
        labels: (R,) labels in {-1, +1} where a label was released in the place of a model. It has no scores, so that
            measures of ranks and of probabilities have no value (NaN).
    """
    if labels is not None:
        released, which = np.unique(np.asarray(labels, float), return_inverse=True)
        called = measure(released.reshape(-1, 1).repeat(len(rows), axis=1), rows.y, metrics)
        nothing = np.full(len(released), np.nan)
        tables = [{name: (v if get_metric(name).needs == "labels" else nothing)[which] for name, v in called.items()}]
    else:
        size = max(1, _BLOCK // len(rows))
        starts = range(0, len(theta), size)

        def block(k: int, _: Monitor) -> dict[str, Floats]:
            scores = np.ascontiguousarray(model.scores(theta[starts[k] : starts[k] + size], rows).T)
            return measure(scores, rows.y, metrics, probabilities=model.loss.probabilities)

        tables = map_streams(block, len(starts), ignore)
    chosen = [get_metric(name) for name in metrics]
    return pd.DataFrame({metric.column: np.concatenate([t[metric.id] for t in tables]) for metric in chosen})


def rarer_share(y: Floats) -> float:
    """Share of the rarer class, in [0, 0.5].

    >>> rarer_share(np.array([1.0, -1.0, -1.0, -1.0]))
    0.25
    """
    positive = np.asarray(y) > 0
    return float(min(positive.mean(), (~positive).mean()))


def default_metric(y: Floats) -> str:
    """Accuracy, except where the rarer class has less than 10 % of the rows: then the majority label alone looks good.

    >>> default_metric(np.array([1.0] + 19 * [-1.0]))
    'balanced-accuracy'
    """
    return "balanced-accuracy" if rarer_share(y) < RARE else "accuracy"
