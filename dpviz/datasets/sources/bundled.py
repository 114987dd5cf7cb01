"""Real sets that ship with scikit-learn (bundled.toml), so that no network is needed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common import toml
from dpviz.datasets.base import Dataset, build
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.encoder import NUMBER, Column, Encoder


@dataclass(frozen=True)
class Bundled:
    """One scikit-learn set and how its target becomes two classes.

    Attributes:
        loader: name of the function in `sklearn.datasets`.
        positive: target values that count as +1.
        label_names: words for -1 and +1.
        title: the name that its publisher gives it.
    """

    loader: str
    rows: int
    positive: Sequence[int]
    label_names: Sequence[str]
    description: str
    title: str

    def load(self, name: str, intercept: bool) -> Dataset:
        import sklearn.datasets  # slow to import, and not needed to start

        bunch = getattr(sklearn.datasets, self.loader)()
        columns = [str(c) for c in bunch.feature_names]
        raw = pd.DataFrame(np.asarray(bunch.data, dtype=np.float64), columns=columns)
        y: NDArray[np.float64] = np.where(np.isin(bunch.target, self.positive), 1.0, -1.0)
        ends = zip(columns, raw.min(), raw.max(), strict=True)
        encoder = Encoder(tuple(Column(column, NUMBER, float(low), float(high)) for column, low, high in ends))
        x, norms = encoder.before_scaling(raw)
        frame = raw.assign(label=np.where(y > 0, self.label_names[1], self.label_names[0]))
        return build(
            name=name,
            x=x,
            norms=norms,
            y=y,
            feature_names=columns,
            frame=frame,
            intercept=intercept,
            source=f"{self.title}, UCI Machine Learning Repository, CC BY 4.0, as shipped with scikit-learn",
            label_names=tuple(self.label_names),
            description=self.description,
            looked_at=tuple(columns),
            encoder=encoder,
        )


BUNDLED = {name: Bundled(**words) for name, words in toml.declarations(__file__).items()}

SOURCE = Source(
    place=0,
    owns=BUNDLED.__contains__,
    load=lambda name, intercept: BUNDLED[name].load(name, intercept),
    names=lambda: tuple(BUNDLED),
    rows=lambda name: BUNDLED[name].rows,
    quick=True,
)
