"""Sensitivity over the number of rows, the regularisation and the hyperparameters: bounds, slopes, and what is observed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.observed import KINDS, ObservedSensitivity, observed_sensitivity, sensitivity_over_n
from dpviz.experiments.sweeps.curves import loglog_slope
from dpviz.mechanisms import BoundsSensitivity, Mechanism, protection
from dpviz.mechanisms.knobs import Number
from dpviz.models import Setting, get_model

_A_VISIT = "each visit of a row adds the same"
#: the slope that one formula gives where contraction has not set in, by what is varied: n, lam, or the unit of a knob
REFERENCES = {
    "n": (-1.0, "one of n rows"),
    "lam": (-1.0, "the minimiser changes by a multiple of 1/λ"),
    "rows": (-1.0, _A_VISIT),
    "1/L": (1.0, _A_VISIT),
    "2/(L+μ)": (1.0, _A_VISIT),
    "1/√n": (1.0, _A_VISIT),
}


@dataclass(frozen=True, eq=False)
class Axis:
    """One quantity that the sensitivity is drawn over.

    Attributes:
        name: "n", "lam", or the name of a knob.
        title: of the axis.
        grid: (K,) rising values.
        value: this run's.
        reference: (slope, why) that one formula gives; None where there is none.
    """

    name: str
    title: str
    grid: Floats
    value: float
    reference: tuple[float, str] | None


def axis(spec: RunSpec, name: str) -> Axis:
    """The axis "n", "lam" or a knob, with a grid around this run's value."""
    setting, mechanism = setting_of(spec), spec.build()
    if name == "n":
        sizes = np.unique(np.geomspace(300, 500_000, 25).round())
        return Axis("n", "number of rows n", sizes, float(setting.n), REFERENCES["n"])
    if name == "lam":
        return Axis("lam", "regularisation λ", np.geomspace(min(1e-5, setting.lam), 1.0, 31), setting.lam, REFERENCES["lam"])
    knob = mechanism.knobs()[name]
    value = float(protection.knob_value(mechanism, name, setting, resolve(spec).budget))
    grid = knob.curve(value, most=setting.n if isinstance(knob, Number) and knob.share_of_rows else np.inf)
    return Axis(name, knob.label, grid, value, REFERENCES.get(knob.unit))


def axes(spec: RunSpec) -> dict[str, str]:
    """Title by name of everything that changes the sensitivity of a run: n, lambda and knobs on a logarithmic scale."""
    titles = {"n": "number of rows n", "lam": "regularisation λ"}
    for name in [name for name, knob in spec.build().knobs().items() if knob.has_curve]:
        drawn = axis(spec, name)
        ends = [bounds_at(spec, name, float(drawn.grid[k])) for k in (0, -1)]
        if any(abs(value - ends[1].get(label, np.nan)) > 1e-12 for label, value in ends[0].items()):
            titles[name] = drawn.title
    return titles


def changed_setting(spec: RunSpec, name: str, value: float) -> tuple[Mechanism, Setting]:
    """The run's mechanism and public facts with one quantity changed; batches keep their share of the rows over n.

    Automatic knobs keep the values that they have in the run.
    """
    model, setting, budget = get_model(spec.model), setting_of(spec), resolve(spec).budget
    mechanism = protection.settle(spec.build(), setting, budget, int(value) if name == "n" else 0)
    if name == "n":
        return mechanism, replace(setting, n=int(value))
    if name == "lam":
        kept = {each: getattr(setting, each) for each in ("person_rows", "weighted", "preparations")}
        return mechanism, replace(model.setting(setting.n, setting.d, float(value)), **kept)
    return replace(mechanism, **{name: value}), setting


def bounds_at(spec: RunSpec, name: str, value: float) -> dict[str, float]:
    """Every known worst case by label, or the one in use; empty where the mechanism refuses the value."""
    mechanism, setting = changed_setting(spec, name, value)
    try:
        if isinstance(mechanism, BoundsSensitivity):
            return {b.label: b.value for b in protection.sensitivity_bounds(mechanism, setting)}
        return {"in use": protection.calibrate(mechanism, setting, resolve(spec).budget).sensitivity}
    except InvalidInput:
        return {}


def used_sensitivity(spec: RunSpec, rows: int) -> float:
    """The sensitivity that the noise is scaled to, with another number of rows; NaN where there is none."""
    mechanism, setting = changed_setting(spec, "n", rows)
    try:
        return protection.calibrate(mechanism, setting, resolve(spec).budget).sensitivity
    except InvalidInput:
        return np.nan


def bounds(spec: RunSpec, over: Axis, monitor: Monitor = ignore) -> pd.DataFrame:
    """Worst-case sensitivities over an axis: one column per bound, then the axis under its name; NaN where there is none."""
    rows = []
    for k, value in enumerate(over.grid):
        monitor(k / len(over.grid))
        rows.append(bounds_at(spec, over.name, float(value)))
    return pd.DataFrame(rows).assign(**{over.name: over.grid})


@dataclass(frozen=True)
class Slopes:
    """Exponents of a power law fitted to a curve: on all of it, on its six smallest and on its six largest values."""

    fitted: float
    smallest: float
    largest: float


def slopes(x: ArrayLike, y: ArrayLike, ends: int = 6) -> Slopes:
    """Least squares on logarithms; NaN where fewer than two points are above 0.

    >>> x = np.arange(1.0, 13.0)
    >>> found = slopes(x, np.r_[1 / x[:6], 1 / x[6:] ** 2])
    >>> round(found.smallest, 9), round(found.largest, 9)
    (-1.0, -2.0)
    """
    a, b = np.asarray(x, float), np.asarray(y, float)
    return Slopes(loglog_slope(a, b)[0], loglog_slope(a[:ends], b[:ends])[0], loglog_slope(a[-ends:], b[-ends:])[0])


def reference(over: Axis, y: ArrayLike) -> Floats | None:
    """(K,) line of the axis' reference slope through the curve at this run's value; None where there is none to draw."""
    curve = np.asarray(y, float)
    if over.reference is None or not np.isfinite(curve).any():
        return None
    distance = np.abs(np.log(over.grid / over.value)) + np.where(np.isfinite(curve), 0, np.inf)
    k = int(np.nanargmin(distance))
    return np.asarray(curve[k] * (over.grid / over.grid[k]) ** over.reference[0], float)


def observe(
    spec: RunSpec, over: Axis, sizes: Sequence[int], pairs: int = 4, *, monitor: Monitor = ignore
) -> list[tuple[float, ObservedSensitivity]]:
    """Retrains on neighbouring datasets at a few values of an axis.

    Args:
        sizes: people in the synthetic censuses that are trained on over n; other axes take five values of the grid.
    """
    if over.name == "n":
        return [(float(n), observed) for n, observed in sensitivity_over_n(spec, sizes, pairs, monitor=monitor)]
    values = [float(over.grid[k]) for k in np.unique(np.linspace(0, len(over.grid) - 1, 5).round().astype(int))]
    out = []
    for value, inside in track(monitor, values):
        mechanism, _ = changed_setting(spec, over.name, value)
        problem = setup_for(replace(spec, lam=value) if over.name == "lam" else spec).problem
        try:
            out.append((value, observed_sensitivity(problem, mechanism, pairs, seed=spec.seed, monitor=inside)))
        except InvalidInput:  # this value means nothing for this mechanism: no point is drawn there
            continue
    return out


def observed_table(observations: Sequence[tuple[float, ObservedSensitivity]]) -> pd.DataFrame:
    """Largest change of the query: columns x and every kind of neighbour in `observed.KINDS`; NaN where there is none."""
    rows = [{"x": x, **{kind: observed.largest(kind) for kind in KINDS}} for x, observed in observations]
    return pd.DataFrame(rows, columns=["x", *KINDS])
