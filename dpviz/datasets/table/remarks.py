"""Remarks on a table and its label that a careful colleague would make before anything is trained.

They read the rows and are for their owner, as the list of what was lost is; nothing of them enters a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.datasets.table.cell_text import is_number
from dpviz.datasets.table.columns import is_identifier, word
from dpviz.datasets.table.proposals import count_outside, round_range

if TYPE_CHECKING:
    from dpviz.datasets.table.spec import TableSpec

#: share of rows of one class from which on accuracy says little
ONE_CLASS = 0.95
_ALONE = 0.95  # accuracy of one column from which on it may give the label away
_LEFT = 0.25  # of the errors of the majority label that it leaves at most
_ROWS = 20_000  # that are looked at for one column's accuracy
_FEW_VALUES = 20
_FEW_OF_A_LEVEL = 5
_WIDE = 5.0  # times a round range that the whole range is wide
_FEW_ROWS, _FEW_OF = 10, 0.001  # that many, or that share of them
_LOSES_MORE, _LOSES = 1.5, 0.05
_CODE = re.compile(r"-?(\d)\1{1,}|-[1-9]")  # 99, 8888, -9: what tables write where there is no value
_FAR = 3.0  # times the range of all other values that such a number is away from them


def remarks(
    frame: pd.DataFrame,
    kept: NDArray[np.bool_],
    used: pd.DataFrame,
    y: NDArray[np.float64],
    label_names: Sequence[str],
    spec: TableSpec,
) -> tuple[str, ...]:
    """All remarks, one sentence each.

    Args:
        frame: all rows and columns, NaN for gaps.
        kept: (rows,) which of them have no gap in the columns used.
        used: (kept rows, features and label), with gaps filled.
        y: (kept rows,) labels in {-1, +1}.
        label_names: words for -1 and +1.
        spec: what the table means.
    """
    features = [str(c) for c in used.columns if c != spec.target]
    return (
        *_one_class(y, label_names),
        *_giveaways(used, features, y),
        *([] if spec.person else _repeated(frame.loc[kept], spec.target, features)),
        *_wide_ranges(used, features, spec),
        *_codes(used, features, spec),
        *_losses(frame, kept, y, label_names, spec),
    )


def _one_class(y: NDArray[np.float64], label_names: Sequence[str]) -> list[str]:
    share = float(max((y > 0).mean(), (y < 0).mean()))
    if share < ONE_CLASS:
        return []
    rare = label_names[int((y > 0).mean() < 0.5)]
    return [
        f"Accuracy is no measure here: {rare} has {100 * (1 - share):.1f} % of the rows, so a model that never predicts it is "
        f"right {100 * share:.1f} % of the time. Look at balanced accuracy, recall or ROC AUC."
    ]


def _giveaways(used: pd.DataFrame, features: Sequence[str], y: NDArray[np.float64]) -> list[str]:
    every = max(1, len(y) // _ROWS)
    labels = y[::every] > 0
    majority = max(labels.mean(), 1 - labels.mean())
    messages = []
    for column in features:
        right, cut = _accuracy_alone(used[column].iloc[::every], labels)
        if right >= _ALONE and 1 - right <= _LEFT * (1 - majority):
            how = "" if cut is None else f", by one threshold: values up to {cut:g} against larger ones"
            messages.append(
                f"{column} alone predicts the label in {100 * right:.1f} % of the rows{how}. If it is not known before the label "
                f"is, it gives the label away: leave it out."
            )
    return messages


def _accuracy_alone(series: pd.Series, labels: NDArray[np.bool_]) -> tuple[float, float | None]:
    """(accuracy of the best rule from one column, its threshold): one cut through numbers, else a label for each value.

    A value that fewer than `_FEW_OF_A_LEVEL` rows have counts as half right, so that an identifier does not predict.
    """
    codes, values = pd.factorize(series, sort=is_number(series))
    positive = np.bincount(codes, weights=labels, minlength=len(values))
    rows = np.bincount(codes, minlength=len(values))
    best = np.where(rows < _FEW_OF_A_LEVEL, rows / 2, np.maximum(positive, rows - positive)).sum()
    if is_number(series) and len(values) > 2:
        below, positive_below = np.cumsum(rows), np.cumsum(positive)
        right = below - positive_below + labels.sum() - positive_below  # negative below the cut, positive above
        right = np.maximum(right, len(labels) - right)
        if right.max() >= best or len(values) > _FEW_VALUES:
            return float(right.max()) / len(labels), float(values[int(right.argmax())])
    return float(best) / len(labels), None


def _repeated(used: pd.DataFrame, target: str, features: Sequence[str]) -> list[str]:
    messages = []
    for column in map(str, used.columns):
        if column == target or not is_identifier(used[column]):
            continue
        counts = used[column].value_counts()
        counts = counts[counts > 0]
        if len(counts) == len(used):
            continue
        most = int(counts.max())
        keeps = [f"at most {k} keep{'s' * (k == 1)} {int(counts.clip(upper=k).sum()):,}" for k in (1, 3) if k < most]
        drop = " It is also a feature; if not, leave it out." if column in features else ""
        messages.append(
            f"Several rows have the same {column}: {len(counts):,} different values in {len(used):,} rows, up to {most:,} each. "
            f"ε holds for one row; for all rows of one of them it is up to {most:,} times ε. If it names a person, ε can be for "
            f"the person: say that this column names them (of the rows, {' and '.join(keeps)}).{drop}"
        )
    return messages


def _codes(used: pd.DataFrame, features: Sequence[str], spec: TableSpec) -> list[str]:
    """A remark where one number such as 8888 stands far from all others, or among categories, in several rows."""
    messages = []
    for column in features:
        counts = used[column].value_counts()
        levels = [level for level in counts.index if _CODE.fullmatch(word(level))]
        for level in levels:
            others = counts.index.drop(level)
            if is_number(used[column]):
                low, high = others.min(), others.max()
                odd = max(low - level, level - high) > _FAR * (high - low) and len(others) > _FEW_OF_A_LEVEL
            else:
                odd = len(word(level)) > 2
            if odd and counts[level] > 1 and column not in spec.missing_in and spec.missing is None:
                messages.append(
                    f"{counts[level]:,} of {len(used):,} values of {column} are {word(level)}, unlike the others. If that stands "
                    f"for a gap, say so."
                )
    return messages


def _wide_ranges(used: pd.DataFrame, features: Sequence[str], spec: TableSpec) -> list[str]:
    messages = []
    for column in features:
        if column in spec.ranges or column in spec.proposed or column in spec.categories or not is_number(used[column]):
            continue
        values = used[column].to_numpy(dtype=np.float64)
        proposed = round_range(values)
        if proposed is None or not np.isfinite(values.max() - values.min()):
            continue
        low, high = proposed
        far = (values < 2 * low - high) | (values > 2 * high - low)  # further out than the round range is wide
        few = int(far.sum())
        if 0 < few <= max(_FEW_ROWS, _FEW_OF * len(values)) and values.max() - values.min() >= _WIDE * (high - low):
            rows = "1 row sets" if few == 1 else f"{few:,} rows set"
            near = values[~far]
            messages.append(
                f"{rows} the range of {column}, {values.min():g} to {values.max():g}; the others lie within {near.min():g} to "
                f"{near.max():g}. Take the round range {low:g} to {high:g} (it clips {count_outside(values, low, high):,} "
                "values), or declare one that is public."
            )
    return messages


def _losses(
    frame: pd.DataFrame, kept: NDArray[np.bool_], y: NDArray[np.float64], label_names: Sequence[str], spec: TableSpec
) -> list[str]:
    """A remark where gaps take far more rows of the rarer class than of the other."""
    dropped = frame.loc[~kept, spec.target].dropna()
    if not len(dropped):
        return []
    positive = _is_positive(frame[spec.target], kept, y)
    lost = np.array([(~positive[dropped.index]).sum(), positive[dropped.index].sum()])
    left = np.array([(y < 0).sum(), (y > 0).sum()])
    share = lost / np.maximum(lost + left, 1)
    rare = int(left[1] + lost[1] < left[0] + lost[0])
    if share[rare] < _LOSES or share[rare] < _LOSES_MORE * share[1 - rare]:
        return []
    return [
        f"Gaps take {100 * share[rare]:.0f} % of the rows of {label_names[rare]}, the rarer class, and "
        f"{100 * share[1 - rare]:.0f} % of the others: what is left is another population. Fill the gaps or "
        "leave out the column with most."
    ]


def _is_positive(labels: pd.Series, kept: NDArray[np.bool_], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(rows,) labels of all rows, by what the kept ones say of each value; a number between two of them counts as the nearer."""
    known = pd.Series(y > 0, index=labels.index[kept]).groupby(labels[kept], observed=True).first()
    if is_number(labels):
        below = known[~known].index.max() if (~known).any() else -np.inf
        by_cut = (known == (known.index > below)).all()
        if by_cut:
            return (labels > below).to_numpy()
    return labels.map(known).fillna(False).to_numpy(dtype=bool)
