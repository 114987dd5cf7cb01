"""The experiments of four papers as settings: one entry per figure, and what the paper says that it shows.

What a paper leaves open is left open here and said so. Where a dataset is not on this machine, the nearest is offered.
The papers themselves are in `dpviz.papers.sources`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pandas as pd

from dpviz.common.digits import three
from dpviz.common.validate import InvalidInput
from dpviz.datasets import rows_of
from dpviz.datasets.base import train_size
from dpviz.mechanisms import ChoosesStart, get_mechanism, list_mechanisms
from dpviz.mechanisms.knobs import Knob
from dpviz.models import MODELS, get_model
from dpviz.papers import sets
from dpviz.papers.checks import Check
from dpviz.papers.sentences import STARTED
from dpviz.papers.sources import PAPERS, Paper
from dpviz.papers.times import TimeCheck
from dpviz.papers.verdict import Verdict
from dpviz.privacy.budget import default_delta

#: what a page shows before anyone has chosen, besides the method at hand
FIRST_VIEW = ("rsgd-ar", "objective-tight", "dp-gd", "dp-sgd", "output-gaussian")
FIRST_MANY = 4
#: where a setting of a figure comes from
GIVEN = "the paper gives it"
SILENT = "the paper gives no value: the automatic rule is used"
OURS = "dpviz's choice; the notes say where the paper differs"
#: the settings of a run that all methods of a figure share, with their words
SHARED = {"lam": "Regularisation λ", "row_scaling": "Row scaling"}


@dataclass(frozen=True)
class Statement:
    """A paper's statement about its figure.

    Attributes:
        text: close to its words.
        check: the rule that it became; a claim about the same thing has the same one.
        claim: id of that claim, "" for none.
        starts: id of the mechanism whose published start is the non-private model, where that decides; "" for none.
    """

    text: str
    check: Check | TimeCheck
    claim: str = ""
    starts: str = ""

    @property
    def meaning(self) -> str:
        """The meaning of the statement, as it is checked."""
        return self.check.rule

    def judge(self, table: pd.DataFrame, methods: Mapping[str, Mapping[str, Any]]) -> Verdict:
        """The verdict on a computed table; it names the start where the sentence holds from the non-private model.

        Args:
            methods: mechanism id to the knobs that the table was computed with.
        """
        verdict = self.check(table)
        if self.starts not in methods:
            return verdict
        built = get_mechanism(self.starts).from_params(dict(methods[self.starts]))
        return verdict.only_if(STARTED) if isinstance(built, ChoosesStart) and not built.public_start else verdict


@dataclass(frozen=True)
class Panel:
    """One dataset and model of a figure.

    Attributes:
        title: as the paper has it.
        dataset: the dataset that is meant.
        nearest: what is taken where that is not on this machine, in order.
        rows: number of rows in the paper.
        model: "logistic", "svm" or "mlp".
        delta: where the paper gives one.
        features: encoded features in the paper; 0 where it does not say.
        instead: where it stands, if not in the figure.
    """

    title: str
    dataset: str
    nearest: tuple[str, ...]
    rows: int
    model: str
    delta: float | None = None
    features: int = 0
    instead: str = ""


@dataclass(frozen=True)
class Method:
    """A method of a figure.

    Attributes:
        name: what the paper calls it.
        knobs: hyperparameters as the paper gives them; "1/sqrt(n)" is computed from the training rows.
        fixed: hyperparameters whose default is what the paper has.
    """

    name: str
    knobs: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The part that all figures have.

    Attributes:
        paper: key of `PAPERS`.
        number, section: where it stands.
        methods: by mechanism id.
        given: further settings, as the paper gives them.
        differs: what is different here, and why.
        statements: what the paper says that it shows.
        lam: regularisation.
    """

    paper: str
    number: str
    section: str
    methods: Mapping[str, Method]
    given: tuple[str, ...]
    differs: tuple[str, ...]
    statements: tuple[Statement, ...]
    lam: float = 1e-3

    @property
    def source(self) -> Paper:
        """The paper."""
        return PAPERS[self.paper]

    @property
    def knobs(self) -> dict[str, Mapping[str, Any]]:
        """Mechanism id to hyperparameters."""
        return {name: method.knobs for name, method in self.methods.items()}


@dataclass(frozen=True, kw_only=True)
class Figure(Experiment):
    """A figure over epsilon.

    Attributes:
        id: short name, used in addresses.
        shows: the quantity on its vertical axis.
        panels: datasets and models, by short name.
        low, high: range of epsilon.
        seeds: repeats here.
        points: budgets here.
        fixed: settings that all methods share and the paper gives.
    """

    id: str
    shows: str
    panels: Mapping[str, Panel]
    high: float
    low: float = 0.01
    seeds: int = 10
    points: int = 7
    fixed: tuple[str, ...] = ()

    def where(self, panel: Panel) -> str:
        """The place of a panel in the paper."""
        return panel.instead or self.number


@dataclass(frozen=True, kw_only=True)
class Times(Experiment):
    """A figure of processing times over the number of rows.

    Attributes:
        dataset: the paper's set, of which random rows are taken.
        instead: what is taken where that is not on this machine.
        rows: how many.
    """

    dataset: str
    instead: str
    rows: tuple[int, ...]
    delta: float
    epsilon: float = 1.0


@dataclass(frozen=True)
class Setup:
    """A panel of a figure, ready to be computed.

    Attributes:
        values: arguments of `dpviz.SweepSpec` but for the epsilons.
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
    notes: tuple[str, ...] = field(default=())
    unavailable: str = ""


def first_view(able: Sequence[str], present: str) -> tuple[str, ...]:
    """Methods to begin with: a few that are worth comparing, and the one at hand, in the order of `able`."""
    chosen = [name for name in FIRST_VIEW if name in able][:FIRST_MANY]
    mechanisms = tuple(name for name in able if name in chosen or name == present)
    return mechanisms or tuple(able[:1])


def setup(panel_id: str, uploads: Mapping[str, str] | None = None) -> Setup:
    """The settings of a panel, with what is missing on this machine replaced and named.

    Args:
        uploads: names of uploads that may be used, with the names of their files.

    Raises:
        InvalidInput: no such panel.
    """
    if panel_id not in panels():
        raise InvalidInput("figure", f"unknown figure {panel_id!r}", f"Choose one of: {', '.join(panels())}.")
    figure, panel = panels()[panel_id]
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
        return Setup({}, figure.low, figure.high, figure.points, figure.shows, tuple(notes), f"There is no model {model!r} here.")
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
    chosen = {name: with_rows({**sets.pinned(name), **knobs}, n) for name, knobs in figure.knobs.items() if name in able}
    values = {
        "dataset": dataset,
        "model": panel.model,
        "mechanisms": chosen,
        "seeds": figure.seeds,
        "delta": delta,
        "lam": figure.lam,
        "row_scaling": "unit",
    }
    return Setup(values, figure.low, figure.high, figure.points, figure.shows, tuple(notes), unavailable)


def settings(panel_id: str) -> list[tuple[str, str, str, str]]:
    """(method as the paper calls it, hyperparameter, value, where the value comes from) of all that trains a panel's methods.

    Where the paper is silent, an automatic hyperparameter follows its rule of public facts, and others have their default.
    """
    figure, _ = panels()[panel_id]
    shared = {"lam": f"{figure.lam:g}", "row_scaling": "unit length"}
    rows = [("all methods", SHARED[name], value, GIVEN if name in figure.fixed else OURS) for name, value in shared.items()]
    for name, method in figure.methods.items():
        for knob, declared in list_mechanisms()[name].knobs().items() if name in list_mechanisms() else ():
            used = {**sets.pinned(name), **method.knobs}
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


@cache
def panels() -> dict[str, tuple[Figure, Panel]]:
    """Every panel of every figure by "figure-panel"."""
    from dpviz.papers.figures.catalogue import FIGURES

    return {f"{figure.id}-{name}": (figure, panel) for figure in FIGURES for name, panel in figure.panels.items()}


def figures() -> tuple[Figure, ...]:
    """All figures."""
    return tuple({figure.id: figure for figure, _ in panels().values()}.values())


def times() -> Times:
    """The figure of processing times."""
    from dpviz.papers.figures.catalogue import TIMES

    return TIMES


def judge(
    figure: Experiment, table: pd.DataFrame, methods: Mapping[str, Mapping[str, Any]] | None = None
) -> list[tuple[Statement, Verdict]]:
    """Each statement of a figure with its verdict on a computed table.

    Args:
        methods: mechanism id to the knobs that the table was computed with, the figure's by default.
    """
    params = figure.knobs if methods is None else methods
    return [(one, one.judge(table, params)) for one in figure.statements]
