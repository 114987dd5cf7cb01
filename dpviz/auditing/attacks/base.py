"""The interface of a membership attack: what an attacker has, and the score that it gives each row of each target model.

Key terms:
    signal: ln(p / (1 - p)) of the probability p that a model gives a row's own label (Carlini et al. 2022, section IV.C); for two
        classes the margin y f(x), as p = 1/(1 + e^(-y f(x))).
    member: a row that a model was trained on.
    shadow models: models that the attacker trained itself on random halves of the rows, so that it knows their members.
    target models: models that are attacked; who their members are is known to the judge alone (`judging.py`).
    population: rows of the same kind that no model was trained on.

Finds all membership attacks: every file of this folder may declare one.

Means and variances of each row's signal over shadow models: what both forms of LiRA share.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpviz.auditing.attacks as room
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import check_choice

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Shadows:
    """The attacker's K shadow models.

    Attributes:
        signals: (K, n) of the rows in question.
        member: (K, n) which of them each model was trained on.
        population: (K, p) signals of the population.
    """

    signals: Floats
    member: Flags
    population: Floats

    def __len__(self) -> int:
        return len(self.signals)


@dataclass(frozen=True, eq=False)
class Targets:
    """The attacker's view of T target models and of the rows in question, without their members.

    Attributes:
        signals: (T, n) of the rows in question.
        population: (T, p) signals of the population.
        rows: (n, k) features and label of the rows in question.
        population_rows: (p, k) the same of the population.
    """

    signals: Floats
    population: Floats
    rows: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    population_rows: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def __len__(self) -> int:
        return len(self.signals)

    def first(self, count: int) -> Targets:
        """The first targets."""
        return Targets(self.signals[:count], self.population[:count], self.rows, self.population_rows)


class MembershipAttack(ABC):
    """An attack. A new one is one file of this folder with one subclass that has an `id`.

    Attributes:
        id: kebab-case, used in commands, files and tables.
        label: short name for people.
        citation: authors, venue, year and which of their attacks is followed.
        formula: LaTeX of the score.
        idea: one sentence.
        most_targets: how many targets it is tried on at most, where one costs much; 0 for all.
    """

    id: ClassVar[str]
    label: ClassVar[str]
    citation: ClassVar[str]
    formula: ClassVar[str]
    idea: ClassVar[str]
    most_targets: ClassVar[int] = 0

    @abstractmethod
    def score(self, targets: Targets, shadows: Shadows, monitor: Monitor = ignore) -> Floats:
        """(T, n) scores, large where a row looks like a member; finite."""


@cache
def _all() -> dict[str, MembershipAttack]:
    for info in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{room.__name__}.{info.name}")
    declared = [cls for cls in MembershipAttack.__subclasses__() if cls.__module__.startswith(room.__name__)]
    return {cls.id: cls() for cls in sorted(declared, key=lambda cls: str(cls.id))}


def list_attacks() -> dict[str, MembershipAttack]:
    """All membership attacks by id.

    >>> list_attacks()["rmia"].label
    'RMIA'
    """
    return dict(_all())


def get_attack(name: str) -> MembershipAttack:
    """A membership attack by id.

    Raises:
        InvalidInput: no such attack.
    """
    return _all()[check_choice("attack", name, _all())]


FEW = 64  # shadow models, of both kinds together, below which one variance serves all rows, as in LeakPro's `carlini` variance
_LEAST = 1e-12  # of a variance, in parts of the mean square of all signals: where models do not differ at all


class RowGaussians(NamedTuple):
    """Means and variances (n,) of a row's signal."""

    mean: Floats
    variance: Floats


def row_gaussians(shadows: Shadows, members: bool) -> RowGaussians:
    """The signal of each row over the shadow models that were, or were not, trained on it.

    A row's variance is its own where there are `FEW` models, and else the mean over the rows: margins of an overfitted
    network are 4 for some members and 90 for others, and one variance for all rows hides those that differ. A row with
    fewer than two models of the kind has the mean over the rows.
    """
    counted = shadows.member if members else ~shadows.member
    count = counted.sum(axis=0)
    mean = _mean(shadows.signals, counted, count)
    spread = (np.where(counted, shadows.signals - mean, 0.0) ** 2).sum(axis=0)
    pooled = spread.sum() / max(1, count.sum() - np.count_nonzero(count))
    variance = np.where((count > 1) & (len(shadows) >= FEW), spread / np.maximum(count - 1, 1), pooled)
    floor = _LEAST * max(float(np.mean(np.square(shadows.signals, dtype=float))), 1e-300)
    return RowGaussians(mean, np.maximum(variance, floor))


def separation(shadows: Shadows) -> Floats:
    """(n,) how many standard deviations larger a row's signal is under shadow models that were trained on it."""
    inside, outside = row_gaussians(shadows, True), row_gaussians(shadows, False)
    return np.asarray((inside.mean - outside.mean) / np.sqrt((inside.variance + outside.variance) / 2))


def _mean(signals: Floats, counted: Flags, count: np.ndarray) -> Floats:
    total = np.where(counted, signals, 0.0).sum(axis=0, dtype=float)
    return np.where(count > 0, total / np.maximum(count, 1), signals.mean(axis=0, dtype=float))
