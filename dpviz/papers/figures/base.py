"""The parts of a paper's figure as data: panels, methods and statements.

What a paper leaves open is left open here and said so. The papers themselves are in `dpviz.papers.sources`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dpviz.mechanisms import ChoosesStart, get_mechanism
from dpviz.papers.checks import Check
from dpviz.papers.sentences import STARTED
from dpviz.papers.sources import PAPERS, Paper
from dpviz.papers.verdict import Verdict


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
    check: Check
    claim: str = ""
    starts: str = ""

    def judge(self, table: pd.DataFrame, methods: Mapping[str, Mapping[str, Any]]) -> Verdict:
        """The verdict on a computed table; it names the start where the sentence holds from the non-private model.

        Args:
            methods: mechanism id to the knobs that the table was computed with.
        """
        verdict = self.check(table)
        if self.starts not in methods:
            return verdict
        built = get_mechanism(self.starts).from_params(dict(methods[self.starts]))
        return verdict.add_condition(STARTED) if isinstance(built, ChoosesStart) and not built.public_start else verdict


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
class Figure:
    """A figure over epsilon.

    Attributes:
        id: short name, used in addresses.
        paper: key of `PAPERS`.
        number, section: where it stands.
        shows: the quantity on its vertical axis.
        panels: datasets and models, by short name.
        methods: by mechanism id.
        low, high: range of epsilon.
        given: further settings, as the paper gives them.
        differs: what is different here, and why.
        statements: what the paper says that it shows.
        seeds: repeats here.
        points: budgets here.
        fixed: settings that all methods share and the paper gives.
        lam: regularisation.
    """

    id: str
    paper: str
    number: str
    section: str
    shows: str
    panels: Mapping[str, Panel]
    methods: Mapping[str, Method]
    high: float
    given: tuple[str, ...]
    differs: tuple[str, ...]
    statements: tuple[Statement, ...]
    low: float = 0.01
    seeds: int = 10
    points: int = 7
    fixed: tuple[str, ...] = ()
    lam: float = 1e-3

    @property
    def source(self) -> Paper:
        """The paper."""
        return PAPERS[self.paper]

    @property
    def knobs(self) -> dict[str, Mapping[str, Any]]:
        """Mechanism id to hyperparameters."""
        return {name: method.knobs for name, method in self.methods.items()}

    def place_of(self, panel: Panel) -> str:
        """The place of a panel in the paper."""
        return panel.instead or self.number

    def judge(
        self, table: pd.DataFrame, methods: Mapping[str, Mapping[str, Any]] | None = None
    ) -> list[tuple[Statement, Verdict]]:
        """Each statement with its verdict on a computed table.

        Args:
            methods: mechanism id to the knobs that the table was computed with, the figure's by default.
        """
        return [(one, one.judge(table, self.knobs if methods is None else methods)) for one in self.statements]
