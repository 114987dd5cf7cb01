"""All figures of the papers, and the settings with which a panel is computed here.

Where a dataset is not on this machine, the nearest is offered.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpviz.common.digits import three
from dpviz.common.validate import InvalidInput
from dpviz.datasets import rows_of
from dpviz.datasets.base import train_size
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.knobs import Knob
from dpviz.models import MODELS, get_model
from dpviz.papers import sets
from dpviz.papers.figures import chen, kang
from dpviz.papers.figures.base import Figure, Panel
from dpviz.privacy.budget import default_delta

FIGURES: tuple[Figure, ...] = (*chen.FIGURES, *kang.FIGURES)
#: every panel of every figure by "figure-panel"
PANELS: dict[str, tuple[Figure, Panel]] = {
    f"{figure.id}-{name}": (figure, panel) for figure in FIGURES for name, panel in figure.panels.items()
}
#: rows below which a panel has more draws, on several splits: a single one decides too much there
SMALL, SMALL_SEEDS, SMALL_SPLITS = 2000, 100, 5
#: where a setting of a figure comes from
GIVEN = "the paper gives it"
SILENT = "the paper gives no value: the automatic rule is used"
OURS = "dpviz's choice; the notes say where the paper differs"
#: the settings of a run that all methods of a figure share, with their words
SHARED = {"lam": "Regularisation λ", "row_scaling": "Row scaling"}


@dataclass(frozen=True)
class Setup:
    """A panel of a figure, ready to be computed.

    Attributes:
        values: arguments of `dpviz.SweepSpec` but for the epsilons.
        splits: how many 80/20 splits its verdicts are about.
        low, high, points: the grid.
        shows: quantity.
        notes: what differs from the paper, one sentence each.
        unavailable: why it cannot be computed here, "" where it can.
    """

    values: dict[str, Any]
    low: float
    high: float
    points: int
    shows: str
    splits: int = 1
    notes: tuple[str, ...] = ()
    unavailable: str = ""


def setup(panel_id: str, uploads: Mapping[str, str] | None = None) -> Setup:
    """The settings of a panel, with what is missing on this machine replaced and named.

    Args:
        uploads: names of uploads that may be used, with the names of their files.

    Raises:
        InvalidInput: no such panel.
    """
    if panel_id not in PANELS:
        raise InvalidInput("figure", f"unknown figure {panel_id!r}", f"Choose one of: {', '.join(PANELS)}.")
    figure, panel = PANELS[panel_id]
    notes = list(figure.differs)
    dataset, own, problems = sets.choose((panel.dataset, *panel.nearest), uploads or {}, panel.rows, panel.features)
    notes[:0] = problems
    if own:
        notes.insert(0, f"{panel.title} is read from {own}.")
    elif dataset != panel.dataset:
        notes.insert(0, f"{panel.title} is not on this machine ({panel.dataset!r}); the nearest that is: {dataset!r}.")
    n = train_size(rows_of(dataset))
    if rows_of(dataset) != panel.rows:
        notes.append(f"The paper's set has {panel.rows:,} rows, this one {rows_of(dataset):,}.")
    if panel.features and (own or dataset == panel.dataset) and (features := sets.features_of(dataset)) != panel.features:
        notes.append(
            f"The paper's set has {panel.features} features, this one {features}: gaps and rare values are encoded otherwise."
        )
    model = panel.model
    if model not in MODELS:
        missing = f"There is no model {model!r} here."
        return Setup({}, figure.low, figure.high, figure.points, figure.shows, notes=tuple(notes), unavailable=missing)
    able = []
    for name, method in figure.methods.items():
        why = _refusal(name, model, n, figure.lam)
        if why is None:
            able.append(name)
        else:
            notes.append(f"{method.name} is left out: {why}.")
    unavailable = "" if able else "None of its methods can be run on this model."
    delta = panel.delta
    if delta is None:
        notes.append(f"The paper gives no δ; {three(default_delta(n))} is used.")
    elif delta >= 1 / n:
        delta = None
    seeds, splits = (SMALL_SEEDS, SMALL_SPLITS) if rows_of(dataset) < SMALL else (figure.seeds, 1)
    chosen = {name: with_rows({**sets.pinned_values(name), **knobs}, n) for name, knobs in figure.knobs.items() if name in able}
    values = {
        "dataset": dataset,
        "model": panel.model,
        "mechanisms": chosen,
        "seeds": seeds,
        "delta": delta,
        "lam": figure.lam,
        "row_scaling": "unit",
    }
    notes.append(f"Kept verdicts: {seeds} noise draws, each method's own, on {splits} 80/20 split{'' if splits == 1 else 's'}.")
    return Setup(values, figure.low, figure.high, figure.points, figure.shows, splits, tuple(notes), unavailable)


def settings(panel_id: str) -> list[tuple[str, str, str, str]]:
    """(method as the paper calls it, hyperparameter, value, where the value comes from) of all that trains a panel's methods.

    Where the paper is silent, an automatic hyperparameter follows its rule of public facts, and others have their default.
    """
    figure, _ = PANELS[panel_id]
    shared = {"lam": f"{figure.lam:g}", "row_scaling": "unit length"}
    rows = [("all methods", SHARED[name], value, GIVEN if name in figure.fixed else OURS) for name, value in shared.items()]
    for name, method in figure.methods.items():
        for knob, declared in list_mechanisms()[name].knobs().items() if name in list_mechanisms() else ():
            used = {**sets.pinned_values(name), **method.knobs}
            given = knob in method.knobs or knob in method.fixed
            automatic = bool(declared.automatic) and not given and knob not in used
            value = (
                str(declared.automatic)
                if automatic
                else _in_words(declared, used.get(knob, list_mechanisms()[name].defaults()[knob]))
            )
            rows.append((method.name, str(declared.label), value, GIVEN if given else SILENT if automatic else OURS))
    return rows


def _in_words(declared: Knob, value: object) -> str:
    text = declared.in_words(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {getattr(declared, 'unit', '')}".rstrip()


def _refusal(mechanism: str, model: str, n: int, lam: float) -> str | None:
    """The reason for which a method cannot be run on a model, or None."""
    cls = list_mechanisms().get(mechanism)
    return "it is not implemented here" if cls is None else cls.refusal(get_model(model).setting(n, 1, lam))


def with_rows(knobs: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Knobs for n training rows: "1/sqrt(n)" is replaced by its value."""
    return {name: 1 / math.sqrt(n) if value == "1/sqrt(n)" else value for name, value in knobs.items()}
