"""Two-dimensional data: the scores of models on a grid over the plane, for decision lines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoding import add_intercept
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.models import Rows, get_model

_MOST = 5e5  # scores of curved lines


@dataclass(frozen=True, eq=False)
class Plane:
    """The points of a two-dimensional set and a grid over them.

    Attributes:
        dataset: the set.
        points: (n, 2).
        labels: (n,) in {-1, +1}.
        outlier: (n,) points that are outliers by construction.
        axis: (k,) grid coordinates, the same for both features.
        straight: whether decision lines are straight.
        model: whose scores are drawn.
    """

    dataset: Dataset
    points: Floats
    labels: Floats
    outlier: NDArray[np.bool_]
    axis: Floats
    straight: bool
    model: str

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two features."""
        assert self.dataset.plane is not None
        return self.dataset.plane

    def scores(self, theta: Floats) -> Floats:
        """(R, k, k) scores of R models; the first index of the grid is the second feature.

        Args:
            theta: (R, m).
        """
        k = len(self.axis)
        grid = np.stack(np.meshgrid(self.axis, self.axis), axis=-1).reshape(-1, 2)
        rows = Rows(add_intercept(grid) if self.dataset.intercept else grid, np.ones(len(grid)))
        return np.asarray(get_model(self.model).scores(theta, rows).T.reshape(len(theta), k, k), float)


def plane_of(spec: RunSpec, models: int, parameters: int) -> Plane | None:
    """The plane of a run's dataset; None where the set has more than two features.

    Args:
        models: how many models are drawn: curved lines need a fine grid, within bounds for many models.
        parameters: m of each.
    """
    dataset = dataset_of(spec)
    if dataset.plane is None:
        return None
    # lines of linear models are exact on any grid, so its corners are enough
    straight = parameters == len(dataset.feature_names)
    count = 2 if straight else max(43, min(161, int((_MOST / max(models, 1)) ** 0.5)))
    frame = dataset.frame
    return Plane(
        dataset=dataset,
        points=frame[list(dataset.plane)].to_numpy(float),
        labels=dataset.y,
        outlier=frame["kind"].eq("outlier").to_numpy() if "kind" in frame else np.zeros(dataset.n, bool),
        axis=np.linspace(-1.05, 1.05, count),
        straight=straight,
        model=spec.model,
    )
