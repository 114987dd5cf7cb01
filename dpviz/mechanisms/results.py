"""Results of training: `Fit` (trained replicas), `NoiseRecord` (what happened to every row), `RuleView`, `OutputNoise`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.privacy.noise import Noise


@dataclass(frozen=True)
class OutputNoise:
    """The distribution of the released parameters, where it is known: centre + scale x a standard draw.

    Attributes:
        centre: (m,) shared, or (S, m) per seed: the parameters before noise; with E in front where budgets train apart.
        scale: (E,) noise scales.
        family: of the standard draw.
        apart: whether every budget has a centre of its own.
    """

    centre: Floats
    scale: Floats
    family: Noise
    apart: bool = False

    def select(self, e: int) -> OutputNoise:
        """The distribution at budget e alone, whose centre is (m,) or (S, m)."""
        centre = self.centre[e] if self.apart else self.centre
        return OutputNoise(centre, self.scale[e : e + 1], self.family)

    def first(self, budgets: int) -> OutputNoise:
        """The distributions at the first budgets."""
        centre = self.centre[:budgets] if self.apart else self.centre
        return dataclasses.replace(self, centre=centre, scale=self.scale[:budgets])


@dataclass(frozen=True)
class NoiseRecord:
    """The noise and clipping that each training row received.

    Arrays broadcast to (E, S, n) unless stated; None where it has no meaning.

    Attributes:
        visits: how often the row was used in an update.
        times_noised: how often noise was put on this very row or on its own gradient step.
        noise_norm: total norm of the noise that was put on this row.
        passed: how often a rule let the row train without noise.
        rule_margin: signed distance to the rule's threshold; above 0 the row needed noise.
        timeline: (E, S, rounds) number of rows that received noise, or that `timeline_counts`, per round.
        gradient_energy: sum over the steps of the squared norm of the row's clipped gradient.
        clipped: share of the row's gradients that were clipped; NaN for a row that was never used.
        path: (E, S', T, m) released iterates at which the T gradients were taken, of the first S' seeds.
        where: where the noise went, in words.
        timeline_counts: what the timeline counts, in words.
    """

    where: str
    timeline_counts: str = "rows that received noise"
    visits: NDArray[Any] | None = None
    times_noised: NDArray[Any] | None = None
    noise_norm: NDArray[Any] | None = None
    passed: NDArray[Any] | None = None
    rule_margin: NDArray[Any] | None = None
    timeline: NDArray[Any] | None = None
    gradient_energy: NDArray[Any] | None = None
    clipped: NDArray[Any] | None = None
    path: NDArray[Any] | None = None

    def select(self, e: int) -> NoiseRecord:
        """The record of budget e alone: every array has length 1 on the first axis."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        cut: dict[str, Any] = {k: v[e : e + 1] for k, v in values.items() if isinstance(v, np.ndarray) and v.shape[0] > 1}
        return dataclasses.replace(self, **cut)


@dataclass(frozen=True)
class RuleView:
    """A rule that decides which rows receive noise, looked at for every training row before the first step.

    A row passes without noise where low <= statistic <= high. Not private: it is computed from the rows.

    Attributes:
        name: "as written" or "as intended".
        words: the rule in one sentence.
        formula: the same in LaTeX.
        statistic_label: what the statistic is, in words.
        statistic: (n,) by position in the training rows, may be infinite.
        low, high: the thresholds, -inf or inf where a side is open.
        passes: (n,) whether each row passes; where the rule draws noise itself, without that noise.
        used: whether the run follows this rule.
        log10_pass: (n,) log10 of the probability that the row passes, over the rule's own noise; None where it has none.
        notes: remarks for people.
    """

    name: str
    words: str
    formula: str
    statistic_label: str
    statistic: Floats
    low: float
    high: float
    passes: NDArray[np.bool_]
    used: bool
    log10_pass: Floats | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """Trained replicas.

    Attributes:
        theta: (E, S, m) released parameters, E budgets and S seeds.
        record: what happened to the rows.
        distribution: of theta given the data, where it is known in closed form.
        constant_label: (E, S) labels in {-1, +1} where the release is a label and not a model.
    """

    theta: Floats
    record: NoiseRecord
    distribution: OutputNoise | None = None
    constant_label: Floats | None = None

    def first(self, budgets: int) -> Fit:
        """The replicas of the first budgets; the record still has all."""
        return dataclasses.replace(
            self,
            theta=self.theta[:budgets],
            distribution=None if self.distribution is None else self.distribution.first(budgets),
            constant_label=None if self.constant_label is None else self.constant_label[:budgets],
        )
