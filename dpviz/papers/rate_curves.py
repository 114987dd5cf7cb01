"""Published rates of excess risk beside measured points: slopes, values, and lines through one point."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import mechanism_of, setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.excess_risk import Axis, Excess
from dpviz.experiments.sweeps.curves import loglog_slope
from dpviz.mechanisms import CountsSteps
from dpviz.models import get_model
from dpviz.papers import rates
from dpviz.papers.rate_tables import ROWS


def applies_to(spec: RunSpec) -> bool:
    """True where the rates say anything about a run's model: they need G, L and mu, which a network has none of."""
    return get_model(spec.model).convex


def facts_of(spec: RunSpec) -> rates.Facts:
    """The arguments of the rates at this run."""
    s = setting_of(spec)
    mechanism = mechanism_of(spec)
    # a method that takes no gradient steps of its own has no T in the sense of the tables
    steps = mechanism.step_count(s) if isinstance(mechanism, CountsSteps) else 50
    return rates.Facts(
        n=s.n,
        d=s.m,
        epsilon=spec.epsilon,
        delta=resolve(spec).budget.delta,
        G=s.G if np.inf > s.G else 1.0,
        L=s.L if s.beta < np.inf else 0.25 + s.lam,
        mu=s.lam,
        steps=steps,
    )


@dataclass(frozen=True, eq=False)
class RateCurve:
    """One published rate at the settings of measured points.

    Attributes:
        row: of the paper's table.
        table: title of the table.
        own: whether the row is about the run's mechanism.
        slope: fitted exponent over the axis.
        value: the rate at the middle point, O(·) taken as 1.
        scaled: (K,) the rate times the factor that leads it through the measured middle point.
    """

    row: rates.Row
    table: str
    own: bool
    slope: float
    value: float
    scaled: Floats


def rate_curves(spec: RunSpec, over: Axis, measured: Sequence[Excess]) -> list[RateCurve]:
    """Every published rate of excess empirical risk over the axis, the run's own mechanism first; none for networks."""
    if not applies_to(spec):
        return []
    base, middle = facts_of(spec), len(measured) // 2
    x, out = [over.of(e) for e in measured], []
    base = replace(base, inner=0, influential=0, radius=0.0)
    at = [replace(base, n=e.n, d=e.d, epsilon=e.epsilon, delta=e.delta, mu=e.lam, L=base.L - base.mu + e.lam) for e in measured]
    for table, entries in ROWS.items():
        for row in entries:
            if row.excess is None or row.excess.value is None:
                continue
            values = np.array([rates.value(row.excess, facts) for facts in at])
            scaled = values * measured[middle].mean / values[middle]
            own = row.mechanism == spec.mechanism
            title = rates.TABLES[table][0]
            out.append(RateCurve(row, title, own, loglog_slope(x, values)[0], float(values[middle]), scaled))
    return sorted(out, key=lambda curve: not curve.own)
