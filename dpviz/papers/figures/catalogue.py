"""All figures of the papers, and the settings with which a panel is computed here.

Where a dataset is not on this machine, the nearest is offered.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpviz.common.digits import counted, three
from dpviz.common.validate import InvalidInput
from dpviz.datasets import rows_of
from dpviz.datasets.base import train_size
from dpviz.mechanisms import Knob, get_mechanism
from dpviz.models import get_model
from dpviz.papers import sets
from dpviz.papers.figures import chen, kang
from dpviz.papers.figures.base import Figure, Panel
from dpviz.privacy.budget import default_delta

FIGURES: tuple[Figure, ...] = (*chen.FIGURES, *kang.FIGURES)
#: every panel of every figure by "figure-panel"
PANELS: dict[str, tuple[Figure, Panel]] = {
    f"{figure.id}-{name}": (figure, panel) for figure in FIGURES for name, panel in figure.panels.items()
}
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
        figure: with the grid and the quantity that it shows.
        splits: how many 80/20 splits its verdicts are about.
        notes: what differs from the paper, one sentence each.
    """

    values: dict[str, Any]
    figure: Figure
    splits: int
    notes: tuple[str, ...]


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
    setting = get_model(panel.model).setting(n, 1, figure.lam)
    refusals = {name: why for name in figure.methods if (why := get_mechanism(name).refusal(setting))}
    notes += [f"{figure.methods[name].name} is left out: {why}." for name, why in refusals.items()]
    if panel.delta is None:
        notes.append(f"The paper gives no δ; {three(default_delta(n))} is used.")
    seeds, splits = (sets.SMALL_SEEDS, sets.SPLITS) if sets.is_small(dataset) else (figure.seeds, 1)
    chosen = {
        name: {
            knob: 1 / math.sqrt(n) if value == "1/sqrt(n)" else value
            for knob, value in {**sets.pinned_values(name), **method.knobs}.items()
        }
        for name, method in figure.methods.items()
        if name not in refusals
    }
    values = {
        "dataset": dataset,
        "model": panel.model,
        "mechanisms": chosen,
        "seeds": seeds,
        "delta": panel.delta,
        "lam": figure.lam,
        "row_scaling": "unit",
    }
    notes.append(f"Kept verdicts: {seeds} noise draws, each method's own, on {counted(splits, '80/20 split')}.")
    return Setup(values, figure, splits, tuple(notes))


def settings(panel_id: str) -> list[tuple[str, str, str, str]]:
    """(method as the paper calls it, hyperparameter, value, where the value comes from) of all that trains a panel's methods.

    Where the paper is silent, an automatic hyperparameter follows its rule of public facts, and others have their default.
    """
    figure, _ = PANELS[panel_id]
    shared = {"lam": f"{figure.lam:g}", "row_scaling": "unit length"}
    rows = [("all methods", SHARED[name], value, GIVEN if name in figure.fixed else OURS) for name, value in shared.items()]
    for name, method in figure.methods.items():
        cls, used = get_mechanism(name), {**sets.pinned_values(name), **method.knobs}
        for knob, declared in cls.knobs().items():
            given = knob in method.knobs or knob in method.fixed
            automatic = bool(declared.automatic) and not given and knob not in used
            value = str(declared.automatic) if automatic else _in_words(declared, used.get(knob, cls.defaults()[knob]))
            rows.append((method.name, str(declared.label), value, GIVEN if given else SILENT if automatic else OURS))
    return rows


def _in_words(declared: Knob, value: object) -> str:
    text = declared.in_words(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {getattr(declared, 'unit', '')}".rstrip()
