"""A released model: its file, and predictions for new rows. The file is JSON; nothing in it is executed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.common.arrays import Floats
from dpviz.common.norms import add_intercept
from dpviz.common.validate import InvalidInput, check_bool, check_range, check_text, number, parse_path, show
from dpviz.datasets.sources import own
from dpviz.datasets.table.encoder import LONGEST, Encoder
from dpviz.datasets.table.lost import Lost
from dpviz.models import Rows, get_model

FORMAT = "dpviz model 1"
FILE, CARD = "model.json", "card.md"
_MOST = 200_000_000  # bytes of a file that is read
_LARGEST = 1e100  # of a parameter, so that no score overflows
_ENTRIES = 1 << 22  # of features in memory at once
_DAMAGED: str = "The file is damaged or was not written by dpviz release; take another copy."


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """A model that may be published.

    Attributes:
        model: id of the model.
        theta: (m,) parameters.
        constant_label: -1 or +1 where one label for all rows was released in the place of a model.
        constant: c of the constant feature that rows get, (x, c)/sqrt(1 + c²); 0 for none.
        classes: words for -1 and +1.
        encoder: how new rows become features.
        privacy: mechanism, hyperparameters, budgets and status, as plain values.
    """

    model: str
    theta: Floats
    constant_label: float | None
    constant: float
    classes: tuple[str, str]
    encoder: Encoder
    privacy: dict[str, Any] = field(default_factory=dict)

    def scores(
        self, data: pd.DataFrame | ArrayLike, messages: list[str] | None = None, fill: Mapping[str, float | str] | None = None
    ) -> Floats:
        """(n,) decision values; at 0 and above the second class is predicted. NaN for rows with gaps.

        Args:
            data: rows with the columns that the model was trained on.
            messages: receives what was clipped, unknown or missing in them.
            fill: values for gaps by column, beside those that the model knows.

        Raises:
            InvalidInput: a column is missing or holds what the model cannot read, or no row is without gaps.
        """
        lost: list[Lost] = []
        values, gaps = self.encoder.read(own.table(data), lost, fill)
        notes: list[str] = [] if messages is None else messages
        notes += [one.sentence for one in lost]
        open_ = np.logical_or.reduce(gaps)
        if open_.all():
            worst = self.encoder.columns[int(np.argmax([gap.sum() for gap in gaps]))].name
            raise InvalidInput(worst, "has gaps, and no row is without one", "Fill them: the model knows no value for gaps here.")
        if open_.any():
            where = ", ".join(f"{c.name} ({gap.sum():,})" for c, gap in zip(self.encoder.columns, gaps, strict=True) if gap.any())
            notes.append(f"{open_.sum():,} of {len(open_):,} rows have gaps and no prediction: {where}.")
        out, whole = np.full(len(open_), np.nan), np.flatnonzero(~open_)
        size = max(1, _ENTRIES // (len(self.encoder.names) + 1))
        for part in (whole[start : start + size] for start in range(0, len(whole), size)):
            out[part] = self._scored(self.encoder.dense([one[part] for one in values]))
        return out

    def _scored(self, x: Floats) -> Floats:
        if self.constant_label is not None:
            return np.full(len(x), self.constant_label)
        rows = Rows(add_intercept(x, self.constant), np.ones(len(x)))
        return np.asarray(get_model(self.model).scores(self.theta[None], rows)[:, 0])

    def predict(
        self, data: pd.DataFrame | ArrayLike, messages: list[str] | None = None, fill: Mapping[str, float | str] | None = None
    ) -> NDArray[Any]:
        """(n,) predicted labels in words, None for rows with gaps; see `scores`."""
        return self.labels(self.scores(data, messages, fill))

    def labels(self, scores: Floats) -> NDArray[Any]:
        """(n,) labels in words of decision values; None for NaN."""
        words = np.array(self.classes, dtype=object)[(scores >= 0).astype(int)]
        words[np.isnan(scores)] = None
        return words

    def probabilities(self, scores: Floats) -> Floats:
        """(n, 2) probabilities of the classes of decision values; NaN for NaN.

        Raises:
            InvalidInput: the model gives none.
        """
        loss = getattr(get_model(self.model), "loss", None)
        second = None if loss is None or self.constant_label is not None else loss.probability(scores)
        if second is None:
            raise InvalidInput("proba", "this model predicts labels and gives no probabilities", "Leave it out.")
        return np.column_stack([1 - second, second])

    def to_json(self) -> str:
        """The file's content."""
        values = {
            "format": FORMAT,
            "model": self.model,
            "classes": list(self.classes),
            "constant": self.constant,
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
        if (
            not isinstance(classes, list)
            or len(classes) != 2
            or not all(isinstance(c, str) and len(c) <= LONGEST for c in classes)
        ):
            raise InvalidInput("classes", f"must be two texts, got {show(classes)}", _DAMAGED)
        if classes[0] == classes[1]:
            raise InvalidInput("classes", f"must differ, got {show(classes)}", _DAMAGED)
        label = values.get("constant_label")
        if label is not None and number("constant_label", label, fix=_DAMAGED) not in (-1, 1):
            raise InvalidInput("constant_label", f"must be -1 or 1, got {show(label)}", _DAMAGED)
        privacy, constant = values.get("privacy"), values.get("constant")
        if constant is None:  # a file of an earlier version, which knew (x, 1)/sqrt 2 alone
            constant = float(check_bool("intercept", values.get("intercept")))
        constant = check_range("constant", constant, 0.0, 1.0)
        made, model = Encoder.from_dict(encoder), str(values.get("model"))
        needed = get_model(model).setting(10, len(made.names) + (constant > 0), 1.0).m
        if len(theta) != needed:  # before they are read one by one
            raise InvalidInput("theta", f"has {len(theta):,} numbers where {needed:,} are needed", _DAMAGED)
        check_text(FILE, json.dumps(values | {"theta": []}, ensure_ascii=False))
        return cls(
            model=model,
            theta=np.array([check_range("theta", value, -_LARGEST, _LARGEST) for value in theta]),
            constant_label=None if label is None else float(label),
            constant=constant,
            classes=(classes[0], classes[1]),
            encoder=made,
            privacy=privacy if isinstance(privacy, dict) else {},
        )


def load_model(path: str | os.PathLike[str]) -> ReleasedModel:
    """The model in a folder that `dpviz release` wrote, or in its file `model.json`.

    Raises:
        InvalidInput: there is none, or its file is damaged.
    """
    file = parse_path("path", path)
    if os.path.isdir(file):
        file = file / FILE
    if not os.path.isfile(file):  # a pipe or a device would be read for ever
        raise InvalidInput(FILE, "cannot be read: it is not there, or is no file", f"Check the path {str(file)!r}.")
    try:
        if file.stat().st_size > _MOST:
            raise InvalidInput(FILE, f"is larger than {_MOST / 1e6:.0f} MB", _DAMAGED)
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(FILE, f"cannot be read: {error.strerror}", f"Check the path {str(file)!r}.") from error
    return ReleasedModel.from_json(content)
