"""Real sets that ship with scikit-learn, so that no network is needed."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.datasets.base import Dataset, build
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.encoder import of_numbers
from dpviz.datasets.table.encoding import encode


@dataclass(frozen=True)
class Bundled:
    """One scikit-learn set and how its target becomes two classes.

    Attributes:
        loader: name of the function in `sklearn.datasets`.
        positive: target values that count as +1.
        label_names: words for -1 and +1.
    """

    loader: str
    rows: int
    positive: tuple[int, ...]
    label_names: tuple[str, str]
    description: str
    source: str

    def load(self, name: str, intercept: bool) -> Dataset:
        import sklearn.datasets  # slow to import, and not needed to start

        bunch = getattr(sklearn.datasets, self.loader)()
        columns = [str(c) for c in bunch.feature_names]
        raw = pd.DataFrame(np.asarray(bunch.data, dtype=np.float64), columns=columns)
        y: NDArray[np.float64] = np.where(np.isin(bunch.target, self.positive), 1.0, -1.0)
        x, names = encode(raw)
        frame = raw.assign(label=np.where(y > 0, self.label_names[1], self.label_names[0]))
        return build(
            name=name,
            x=norms.unit(x),
            norms=np.linalg.norm(x, axis=1),
            y=y,
            feature_names=names,
            frame=frame,
            intercept=intercept,
            source=self.source,
            label_names=self.label_names,
            description=self.description,
            looked_at=tuple(columns),
            encoder=of_numbers(columns, raw.to_numpy().min(axis=0), raw.to_numpy().max(axis=0)),
        )


UCI: str = "UCI Machine Learning Repository, CC BY 4.0, as shipped with scikit-learn"

BUNDLED = {
    "breast-cancer": Bundled(
        "load_breast_cancer",
        569,
        (1,),
        ("malignant", "benign"),
        "569 tumours described by 30 measurements of cell nuclei: benign or malignant?",
        f"Breast Cancer Wisconsin (Diagnostic), {UCI}",
    ),
    "iris": Bundled(
        "load_iris",
        150,
        (2,),
        ("other", "virginica"),
        "150 iris flowers, four lengths: virginica or one of the other two species?",
        f"Iris, {UCI}",
    ),
    "wine": Bundled(
        "load_wine",
        178,
        (0,),
        ("other", "cultivar 1"),
        "178 Italian wines, 13 chemical measurements: cultivar 1 or one of the other two?",
        f"Wine, {UCI}",
    ),
    "digits": Bundled(
        "load_digits",
        1797,
        (5, 6, 7, 8, 9),
        ("0 to 4", "5 to 9"),
        "1,797 handwritten digits of 8 x 8 pixels: five or more?",
        f"Optical Recognition of Handwritten Digits (test part), {UCI}",
    ),
}


SOURCE = Source(
    place=0,
    owns=BUNDLED.__contains__,
    load=lambda name, intercept: BUNDLED[name].load(name, intercept),
    names=lambda: tuple(BUNDLED),
    rows=lambda name: BUNDLED[name].rows,
    quick=True,
)
