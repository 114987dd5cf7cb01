"""Made-up sets: one small enough to see every point, one as large as wanted with a known best accuracy."""

import re

import numpy as np
import pandas as pd
from scipy.special import expit

from dpviz.common.norms import unit
from dpviz.common.validate import InvalidInput, check_integer
from dpviz.datasets.base import Dataset, build
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.encoder import CATEGORIES, NUMBER, Column, Encoder

CENSUS_MIN, CENSUS_MAX, CENSUS_DEFAULT = 100, 1_000_000, 10_000
_BLOCK = 10_000

#: column: (share of each level, weight of each level in the true model)
_LEVELS: dict[str, dict[str, tuple[float, float]]] = {
    "education": {
        "none": (0.05, -2.0),
        "primary": (0.12, -1.4),
        "secondary": (0.33, -0.6),
        "vocational": (0.22, 0.1),
        "bachelor": (0.18, 1.2),
        "master": (0.08, 2.0),
        "doctorate": (0.02, 2.6),
    },
    "occupation": {
        "farming": (0.06, -1.2),
        "crafts": (0.14, -0.4),
        "office": (0.18, 0.2),
        "sales": (0.14, 0.0),
        "services": (0.20, -0.9),
        "care": (0.12, -0.2),
        "engineering": (0.10, 1.3),
        "management": (0.06, 1.9),
    },
    "household": {"single": (0.34, -0.9), "couple": (0.46, 1.1), "separated": (0.14, -0.5), "widowed": (0.06, -0.7)},
    "region": {"north": (0.3, 0.2), "east": (0.2, -0.3), "south": (0.3, -0.2), "west": (0.2, 0.4)},
}
_RANGES = {"age": (17, 90), "hours per week": (1, 80), "years in job": (0, 50)}
_SLOPES = {"age": 1.6, "hours per week": 2.4, "years in job": 1.2}
_ENCODER = Encoder(
    (
        *(Column(name, NUMBER, float(low), float(high)) for name, (low, high) in _RANGES.items()),
        *(Column(name, CATEGORIES, levels=tuple(levels)) for name, levels in _LEVELS.items()),
    )
)
_SHARPNESS, _OFFSET = 4.5, -1.1


def census(name: str, n: int, intercept: bool) -> Dataset:
    """A synthetic census of n people whose labels follow a known logistic model.

    Ranges and categories are declared, not read off the data, so preprocessing costs no privacy here. Rows come in
    blocks of 10,000 with their own seeds: the first k rows are the same people for every n >= k.
    """
    x = np.empty((n, len(_RANGES) + sum(map(len, _LEVELS.values()))))
    y, prob, norms = np.empty(n), np.empty(n), np.empty(n)
    columns: dict[str, list[np.ndarray]] = {c: [] for c in (*_RANGES, *_LEVELS)}
    for start in range(0, n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n))
        size = rows.stop - start
        rng = np.random.default_rng([20190416, start])
        numbers = {
            "age": np.clip(rng.normal(42, 15, _BLOCK), 17, 90).round(),
            "hours per week": np.clip(rng.normal(38, 11, _BLOCK), 1, 80).round(),
            "years in job": np.clip(rng.gamma(1.6, 6.0, _BLOCK), 0, 50).round(),
        }
        at = 0
        weight: list[float] = []
        for column, values in numbers.items():
            low, high = _RANGES[column]
            x[rows, at] = (values[:size] - low) / (high - low)
            columns[column].append(values[:size].astype(np.int16))
            weight.append(_SLOPES[column])
            at += 1
        for column, levels in _LEVELS.items():
            code = rng.choice(len(levels), _BLOCK, p=[share for share, _ in levels.values()])[:size].astype(np.int8)
            x[rows, at : at + len(levels)] = code[:, None] == np.arange(len(levels))
            columns[column].append(code)
            weight.extend(w for _, w in levels.values())
            at += len(levels)
        norms[rows] = np.linalg.norm(x[rows], axis=1)
        x[rows] = unit(x[rows])
        prob[rows] = expit(_SHARPNESS * (x[rows] @ np.array(weight) + _OFFSET))
        y[rows] = np.where(rng.random(_BLOCK)[:size] < prob[rows], 1.0, -1.0)
    labels = ("below median income", "above median income")
    frame = pd.DataFrame({c: np.concatenate(parts) for c, parts in columns.items()})
    for column, levels in _LEVELS.items():
        frame[column] = pd.Categorical.from_codes(frame[column], categories=list(levels))
    frame["label"] = pd.Categorical.from_codes((y > 0).astype(np.int8), categories=list(labels))
    names = [*_RANGES, *(f"{c}={level}" for c, levels in _LEVELS.items() for level in levels)]
    return build(
        name=name,
        x=x,
        norms=norms,
        y=y,
        feature_names=names,
        frame=frame,
        intercept=intercept,
        source="made by dpviz from a fixed seed; no real people",
        label_names=labels,
        description=f"{n:,} synthetic people with jobs, education and hours; labels follow a known logistic model.",
        encoder=_ENCODER,
        facts={"bayes_accuracy": float(np.maximum(prob, 1 - prob).mean())},
    )


def teaching(name: str, intercept: bool) -> Dataset:
    """400 points in the plane: two overlapping groups and eight clear outliers, all within the unit disc."""
    rng = np.random.default_rng(7)
    n, outliers = 400, 8
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    x = 0.22 * rng.standard_normal((n, 2)) + y[:, None] * np.array([0.30, 0.18])
    kind = np.full(n, "group", dtype=object)
    # outliers sit deep on the other side, with the wrong label for where they are
    angle = rng.uniform(-0.5, 0.5, outliers) + np.arctan2(0.18, 0.30)
    x[:outliers] = -y[:outliers, None] * 0.9 * np.c_[np.cos(angle), np.sin(angle)]
    kind[:outliers] = "outlier"
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    labels = ("blue", "orange")
    frame = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "kind": kind, "label": np.where(y > 0, labels[1], labels[0])})
    return build(
        name=name,
        x=x,
        y=y,
        feature_names=["x1", "x2"],
        frame=frame,
        intercept=intercept,
        source="made by dpviz from a fixed seed",
        label_names=labels,
        plane=("x1", "x2"),
        encoder=Encoder(tuple(Column(name, NUMBER, clip=False) for name in ("x1", "x2")), "clip"),
        description="400 points in the plane, eight of them outliers with the wrong label for where they stand.",
    )


def _owns(name: str) -> bool:
    return name == "teaching" or re.fullmatch(r"census([-, ]*\d[\d,]{0,8})?", name, re.ASCII | re.IGNORECASE) is not None


def _canonical(name: str, n: int | None) -> str:
    """ "teaching", or "census-N", which people also write "Census 20,000"."""
    if name == "teaching":
        if n is not None:
            raise InvalidInput("n", "'teaching' has a fixed number of rows", "Leave n out, or choose 'census'.")
        return name
    size = n if n is not None else int(re.sub(r"\D", "", name) or CENSUS_DEFAULT)
    return f"census-{check_integer('n', size, CENSUS_MIN, CENSUS_MAX)}"


def _size(name: str) -> int | None:
    return None if name == "teaching" else int(re.sub(r"\D", "", name) or CENSUS_DEFAULT)


def _load(name: str, intercept: bool) -> Dataset:
    size = _size(name)
    return teaching(name, intercept) if size is None else census(name, size, intercept)


SOURCE = Source(
    place=1,
    owns=_owns,
    load=_load,
    names=lambda: ("teaching", f"census-{CENSUS_DEFAULT}"),
    canonical=_canonical,
    rows=_size,
    sized=True,
    quick=True,
)
