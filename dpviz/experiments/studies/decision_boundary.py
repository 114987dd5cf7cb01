"""A plane through a run's training rows, and the scores of models on it, for decision lines.

A set with two features is drawn as it is. Of any other set the plane has the two columns, or the two principal components, that
separate the classes best; a model's line there is the zero line of the least-squares plane through its scores.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.memory import Cache
from dpviz.common.norms import add_intercept
from dpviz.datasets import Dataset
from dpviz.experiments.run.resolve import fit_key
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.knobs import Changes
from dpviz.models import Rows, get_model

_MOST = 5e5  # scores of curved lines
SHOWN = 1500  # rows that are drawn
_FEW = 8  # values of a column that would be drawn as stripes
_COMPONENTS = 6


@dataclass(frozen=True, eq=False)
class View:
    """A plane through the rows.

    Attributes:
        names: of its two axes.
        ids: (k,) row ids of the training rows that are drawn.
        points: (k, 2) their places.
        limits: (2, 2) ends of both axes.
        exact: whether both axes are all features.
    """

    names: tuple[str, str]
    ids: NDArray[np.intp]
    points: Floats
    limits: Floats
    exact: bool


@dataclass(frozen=True, eq=False)
class Plane:
    """A view with the grid on which a model is drawn.

    Attributes:
        dataset, view: what is drawn.
        axes: (nx,) and (ny,) grid coordinates.
        model: whose scores are drawn.
    """

    dataset: Dataset
    view: View
    axes: tuple[Floats, Floats]
    model: str

    @property
    def labels(self) -> Floats:
        """(k,) in {-1, +1}."""
        return self.dataset.y[self.view.ids]

    @property
    def outlier(self) -> NDArray[np.bool_]:
        """(k,) points that are outliers by construction."""
        frame = self.dataset.frame
        return (frame["kind"].eq("outlier") if "kind" in frame else pd.Series(False, frame.index)).to_numpy()[self.view.ids]

    def scores(self, theta: Floats) -> Floats:
        """(R, ny, nx) scores of R models; the first index of the grid is the second axis.

        Args:
            theta: (R, m).
        """
        grid = np.stack(np.meshgrid(*self.axes), axis=-1)
        if self.view.exact:
            flat = grid.reshape(-1, 2)
            rows = Rows(add_intercept(flat, self.dataset.constant), np.ones(len(flat)))
            return np.asarray(get_model(self.model).scores(theta, rows).T.reshape(len(theta), *grid.shape[:2]), float)
        rows = Rows(self.dataset.X[self.view.ids], np.ones(len(self.view.ids)))
        design = add_ones(self.view.points)
        slopes = np.linalg.lstsq(design, get_model(self.model).scores(theta, rows), rcond=None)[0]
        return np.moveaxis(add_ones(grid) @ slopes, -1, 0)


def add_ones(points: Floats) -> Floats:
    """(..., 2) points with a third coordinate 1."""
    return np.concatenate([points, np.ones((*points.shape[:-1], 1))], axis=-1)


_views: Cache[View] = Cache("planes", 16 << 20, lambda made: 4 * made.points.nbytes + 64)


def plane_of(spec: RunSpec, models: int, parameters: int) -> Plane:
    """The plane of a run's training rows.

    Args:
        models: how many models are drawn: curved lines need a fine grid, within bounds for many models.
        parameters: m of each.
    """
    setup = setup_for(spec)
    dataset = setup.dataset
    view = _views.compute(fit_key(spec.restrict(Changes.DATA)), lambda _: _view(dataset, setup.split.train), owner=spec.dataset)
    # lines of linear models are exact on any grid, so its corners are enough
    straight = not view.exact or parameters == len(dataset.feature_names)
    count = 2 if straight else max(43, min(161, int((_MOST / max(models, 1)) ** 0.5)))
    x, y = (np.linspace(ends[0], ends[1], count) for ends in view.limits)
    return Plane(dataset, view, (x, y), spec.model)


def _view(dataset: Dataset, train: NDArray[np.intp]) -> View:
    ids = train[np.unique(np.linspace(0, len(train) - 1, min(SHOWN, len(train))).astype(int))]
    if dataset.plane is not None:
        points = dataset.frame[list(dataset.plane)].to_numpy(float)[ids]
        return View(dataset.plane, ids, points, np.array([[-1.05, 1.05]] * 2), True)
    names, values = zip(*_candidates(dataset, ids), strict=True)
    places = np.column_stack(values)
    apart = separation(places, dataset.y[ids])
    of_columns = np.array([not name.startswith("principal component") for name in names])
    apart[of_columns[:, None] != of_columns] = -1.0  # no column beside a component
    first, second = divmod(int(apart.argmax()), len(names))
    pair = [first, second] if first != second else [len(names) - 2, len(names) - 1]
    points = places[:, pair]
    low, high = np.quantile(points, (0.005, 0.995), axis=0)
    room = np.maximum(0.06 * (high - low), 1e-9)
    return View((names[pair[0]], names[pair[1]]), ids, points, np.column_stack([low - room, high + room]), False)


def _candidates(dataset: Dataset, ids: NDArray[np.intp]) -> list[tuple[str, Floats]]:
    """Columns of many numbers in their own units, then principal components."""
    frame = dataset.frame.iloc[ids, :-1]
    numbers = [
        c for c in frame if pd.api.types.is_numeric_dtype(frame[c]) and frame[c].notna().all() and frame[c].nunique() > _FEW
    ]
    rows = dataset.X[ids] - dataset.X[ids].mean(axis=0)
    axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :_COMPONENTS]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # does not flip from run to run
    parts = np.column_stack([rows @ axes, np.zeros((len(rows), 2 - min(axes.shape[1], 2)))])
    components = [(f"principal component {k + 1}", parts[:, k]) for k in range(parts.shape[1])]
    return [(str(c), frame[c].to_numpy(float)) for c in numbers] + components


def separation(values: Floats, y: Floats) -> Floats:
    """(k, k) squared Mahalanobis distance of two classes in each pair of k columns; 0 where it has none.

    d'W^-1 d for the difference d of the class means and the covariance W within classes (Fisher 1936).

    Args:
        values: (n, k).
        y: (n,) labels in {-1, +1}.
    """
    positive = y > 0
    if positive.all() or not positive.any():
        return np.zeros((values.shape[1],) * 2)
    means = np.stack([values[side].mean(axis=0) for side in (~positive, positive)])
    centred = values - means[positive.astype(int)]
    within, gap = centred.T @ centred / len(values), means[1] - means[0]
    variance = np.diag(within)
    determinant = np.outer(variance, variance) - within**2
    top = np.outer(gap**2, variance) + np.outer(variance, gap**2) - 2 * np.outer(gap, gap) * within
    usable = determinant > 1e-9 * np.outer(variance, variance)
    return np.where(usable, top / np.where(usable, determinant, 1.0), 0.0)
