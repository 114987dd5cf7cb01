"""A released model: its file, and predictions for new rows. The file is JSON; nothing in it is executed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.common.validate import InvalidInput, number, show, truth
from dpviz.datasets.sources import own
from dpviz.datasets.table.encoder import Encoder
from dpviz.datasets.table.encoding import add_intercept
from dpviz.models import Rows, get_model

Floats = NDArray[np.float64]

FORMAT = "dpviz model 1"
FILE, CARD = "model.json", "card.md"
_MOST = 200_000_000  # bytes of a file that is read
_DAMAGED: str = "The file is damaged or was not written by dpviz release; take another copy."


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """A model that may be published.

    Attributes:
        model: id of the model.
        theta: (m,) parameters.
        constant_label: -1 or +1 where one label for everybody was released in the place of a model.
        intercept: whether rows get the constant feature.
        classes: words for -1 and +1.
        encoder: how new rows become features.
        privacy: mechanism, hyperparameters, budgets and status, as plain values.
    """

    model: str
    theta: Floats
    constant_label: float | None
    intercept: bool
    classes: tuple[str, str]
    encoder: Encoder
    privacy: dict[str, Any] = field(default_factory=dict)

    def scores(self, data: pd.DataFrame | ArrayLike, said: list[str] | None = None) -> Floats:
        """(n,) decision values; at 0 and above the second class is predicted.

        Args:
            data: rows with the columns that the model was trained on.
            said: is told what was clipped or unknown in them.

        Raises:
            InvalidInput: a column is missing or holds what the model cannot read.
        """
        x = self.encoder.rows(own.table(data), said)
        if self.constant_label is not None:
            return np.full(len(x), self.constant_label)
        rows = Rows(add_intercept(x) if self.intercept else x, np.ones(len(x)))
        return np.asarray(get_model(self.model).scores(self.theta[None], rows)[:, 0])

    def predict(self, data: pd.DataFrame | ArrayLike, said: list[str] | None = None) -> NDArray[Any]:
        """(n,) predicted labels in words; see `scores`."""
        return np.array(self.classes, dtype=object)[(self.scores(data, said) >= 0).astype(int)]

    def to_json(self) -> str:
        """The file's content."""
        values = {
            "format": FORMAT,
            "model": self.model,
            "classes": list(self.classes),
            "intercept": self.intercept,
            "constant_label": self.constant_label,
            "encoder": self.encoder.to_dict(),
            "privacy": self.privacy,
            "theta": self.theta.tolist(),
        }
        return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> ReleasedModel:
        """The model of a file's content.

        Raises:
            InvalidInput: it is none.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(FILE, f"is not JSON: {error}", _DAMAGED) from error
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise InvalidInput(FILE, f"is no model of the format {FORMAT!r}", _DAMAGED)
        theta, classes, encoder = values.get("theta"), values.get("classes"), values.get("encoder")
        if not isinstance(theta, list) or not isinstance(encoder, dict):
            raise InvalidInput(FILE, "has no parameters or no columns", _DAMAGED)
        if not isinstance(classes, list) or len(classes) != 2 or not all(isinstance(c, str) for c in classes):
            raise InvalidInput("classes", f"must be two texts, got {show(classes)}", _DAMAGED)
        label = values.get("constant_label")
        privacy = values.get("privacy")
        made = cls(
            model=str(values.get("model")),
            theta=np.array([number("theta", value, fix=_DAMAGED) for value in theta]),
            constant_label=None if label is None else number("constant_label", label),
            intercept=truth("intercept", values.get("intercept")),
            classes=(classes[0], classes[1]),
            encoder=Encoder.from_dict(encoder),
            privacy=privacy if isinstance(privacy, dict) else {},
        )
        d = len(made.encoder.names) + made.intercept
        needed = get_model(made.model).setting(10, d, 1.0).m
        if len(theta) != needed:
            raise InvalidInput("theta", f"has {len(theta):,} numbers where {needed:,} are needed", _DAMAGED)
        return made


def load_model(path: str | Path) -> ReleasedModel:
    """The model in a folder that `dpviz release` wrote, or in its file `model.json`.

    Raises:
        InvalidInput: there is none, or its file is damaged.
    """
    file = Path(path)
    if os.path.isdir(file):
        file = file / FILE
    try:
        if file.stat().st_size > _MOST:
            raise InvalidInput(FILE, f"is larger than {_MOST / 1e6:.0f} MB", _DAMAGED)
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(FILE, f"cannot be read: {error.strerror}", f"Check the path {str(file)!r}.") from error
    return ReleasedModel.from_json(content)
