"""A grid over two settings of one run, as cells: each setting of the grid is trained at the same epsilon."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.validate import InvalidInput, check_choice
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps.cells import Cell
from dpviz.experiments.sweeps.curves import closed_form
from dpviz.mechanisms import protection, rules
from dpviz.mechanisms.knobs import Choice, Knob, Number, Switch
from dpviz.mechanisms.published import NoiseConstant

#: useful values lie further apart than those of other settings: a rare class may need a hundredth of the default
LAM = Number(label="Regularisation λ", help=SETTINGS["lam"].help, low=1e-8, high=1.0, log=True, ratio=4.0, automatic=rules.LAM)
STEPS = 7
SEEDS = 5


@dataclass(frozen=True)
class Grid:
    """Two settings and their values.

    Attributes:
        names: of the settings; "lam" is the regularisation.
        values: of each setting, rising where they are numbers.
        cells: (setting index of the first, of the second, cell), coarse picture first; impossible settings are left out.
        refused: what was left out, and why.
    """

    names: tuple[str, str]
    values: tuple[tuple[Any, ...], tuple[Any, ...]]
    cells: tuple[tuple[int, int, Cell], ...]
    refused: tuple[InvalidInput, ...]

    def means(self, tables: dict[int, pd.DataFrame], quantity: str) -> NDArray[np.float64]:
        """(values of the second, values of the first) means over the draws, NaN where nothing is known."""
        out = np.full((len(self.values[1]), len(self.values[0])), np.nan)
        for k, table in tables.items():
            if len(table):
                i, j, _ = self.cells[k]
                closed = closed_form(table, quantity)
                out[j, i] = float(table[quantity].mean()) if closed is None else closed
        return out

    def draws(self, tables: dict[int, pd.DataFrame], quantity: str, i: int, j: int) -> NDArray[np.float64]:
        """(S,) values of each draw at a place in the grid; empty where nothing is known."""
        matches = [tables[k] for k, (a, b, _) in enumerate(self.cells) if (a, b) == (i, j) and len(tables.get(k, ()))]
        return matches[0][quantity].to_numpy(float) if matches else np.empty(0)

    def settings_at(self, i: int, j: int) -> dict[str, Any]:
        """The two settings of a place in the grid."""
        return {self.names[0]: self.values[0][i], self.names[1]: self.values[1][j]}


def declared_knobs(spec: RunSpec) -> dict[str, Knob]:
    """Settings that can be tuned: the regularisation, and the mechanism's hyperparameters but for some.

    Choices and switches (neighbouring relation, accountant, published or exact noise) and constants that a publication leaves
    open decide what is guaranteed. Trying them for accuracy would choose the weakest guarantee.

    >>> list(declared_knobs(RunSpec(mechanism="objective-tight")))
    ['curvature_share', 'lam']
    """
    own = spec.build().knobs().items()
    return {**{name: knob for name, knob in own if not isinstance(knob, Choice | Switch | NoiseConstant)}, "lam": LAM}


def first_pair(spec: RunSpec) -> tuple[str, str] | None:
    """Two settings to begin a search with, None where there are not two: one of the method, and λ.

    Of automatic settings the last one: methods declare their step sizes after the number of steps, and only rows can
    tell how far it may be above what is stable for all rows.
    """
    own = {name: knob for name, knob in declared_knobs(spec).items() if name != "lam"}
    if not own:
        return None
    # the clip norm's rule follows from the loss alone
    automatic = [name for name, knob in own.items() if knob.automatic and name != "clip_norm"]
    return (automatic[-1] if automatic else next(iter(own))), "lam"


def present_value(spec: RunSpec, name: str) -> Any:
    """The value that a setting has."""
    return spec.lam if name == "lam" else getattr(spec.build(), name)


def values(spec: RunSpec, name: str, steps: int = STEPS) -> tuple[Any, ...]:
    """Values of a setting to try, with the present one among them; automatic stands where its value would."""
    now = present_value(spec, name)
    in_force = (
        resolve(spec).lam if name == "lam" else protection.knob_value(spec.build(), name, setting_of(spec), resolve(spec).budget)
    )
    return tuple(now if value == in_force else value for value in declared_knobs(spec)[name].candidates(in_force, steps))


def grid(spec: RunSpec, first: str, second: str, steps: int = STEPS, seeds: int = SEEDS, metrics: tuple[str, ...] = ()) -> Grid:
    """The cells of a grid.

    Args:
        spec: the run around whose settings the grid is laid; its epsilon and data are kept.
        first, second: two different names of `declared_knobs`.
        seeds: noise draws of each cell, at most those of the spec.
        metrics: further metrics that the tables hold, with levels of their own.

    Raises:
        InvalidInput: unknown or equal names.
    """
    knobs = declared_knobs(spec)
    for name in (first, second):
        check_choice("tune", name, knobs)
    if first == second:
        raise InvalidInput("tune", "needs two different settings", f"Choose two of: {', '.join(knobs)}.")
    both = (values(spec, first, steps), values(spec, second, steps))
    return lay(spec, (first, second), both, seeds, metrics)


def lay(
    spec: RunSpec,
    names: tuple[str, str],
    both: tuple[tuple[Any, ...], tuple[Any, ...]],
    seeds: int = SEEDS,
    metrics: tuple[str, ...] = (),
) -> Grid:
    """A grid over given values of two settings."""
    cells, refused = [], []
    places = [(i, j) for i in range(len(both[0])) for j in range(len(both[1]))]
    for i, j in sorted(places, key=lambda place: ((place[0] % 2) + (place[1] % 2), place)):
        values = {names[0]: both[0][i], names[1]: both[1][j]}
        try:
            changed = apply(spec, values)
        except InvalidInput as problem:
            refused.append(problem)
            continue
        cells.append((i, j, Cell(changed, (spec.epsilon,), range(min(seeds, spec.seeds)), metrics)))
    return Grid(names, both, tuple(cells), tuple(refused))


def apply(spec: RunSpec, changes: dict[str, Any]) -> RunSpec:
    """The run with other settings."""
    params = {**spec.params, **{name: value for name, value in changes.items() if name != "lam"}}
    return replace(spec, params=params, lam=changes.get("lam", spec.lam))
