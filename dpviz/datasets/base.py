"""Datasets: labelled rows in the unit ball, with their source and preprocessing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.common.norms import add_intercept
from dpviz.common.paid import Paid
from dpviz.common.validate import InvalidInput, check_choice, check_integer, show
from dpviz.datasets.table.encoder import NUMBER, Encoder
from dpviz.datasets.table.encoding import CENTRED, INTERCEPT, SCALINGS, centre_numbers, constant_of, row_factors
from dpviz.datasets.table.lost import SCALING, Lost, caution, scaling_loss

TRAIN_SHARE = 0.8
FEW = 10  # rows of a class below which a caution is due
ALIKE = 0.99  # share of the squared length that is common to all rows, from which a caution is due
#: what `looked_at` says where the rows were divided by their largest norm
LARGEST = "the largest row norm"


@dataclass(frozen=True)
class Split:
    """Row ids of the training and the test part, each sorted and disjoint."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


@dataclass(frozen=True)
class Label:
    """The label of a person's table.

    Attributes:
        column: its name.
        positive, negative: words for its values that count as +1 and as -1.
        guessed: what was guessed: "column", "class", both or neither.
        why: why the column had to be guessed.
    """

    column: str
    positive: str
    negative: str
    guessed: tuple[str, ...] = ()
    why: str = ""

    @property
    def sentence(self) -> str:
        """All of it in words, with what was guessed."""
        column = f" (guessed, as the last column: {self.why})" if "column" in self.guessed else ""
        positive = " (guessed, as the second in alphabetical order)" if "class" in self.guessed else ""
        return f"{self.column}{column}; +1 is {self.positive}{positive}, -1 is {self.negative}"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled rows that are ready for training.

    Attributes:
        name: the catalogue name, which loads the same rows again.
        X: (n, d) float64, every row of norm at most 1; a last column "(intercept)" where there is one.
        y: (n,) float64 in {-1, +1}.
        feature_names: d names.
        frame: (n, columns) the readable rows, index = row id 0..n-1, last column the label in words.
        source: where the rows come from, with licence.
        label_names: words for -1 and +1.
        description: one sentence.
        facts: known truths, for example the best accuracy that any model can reach ("bayes_accuracy").
        plane: names of the two features to draw, where the set is two-dimensional.
        looked_at: features whose range or categories were read off the rows, not covered by epsilon; none where all that was
            declared in advance.
        taken_as_public: what the rows decided beside that and every guarantee takes as public: class labels that were read from
            them, the number of rows without gaps. It follows from how the table was to be read, not from its values.
        notes: what was done to the rows before, one sentence each.
        lost: rows, columns and values that the table lost before that, and what scaling took from the rows.
        norms: (n,) row norms before the rows were brought into the ball, the constant feature left out; None where they
            were in it from the start, so that no scaling changes them.
        scaling: how they were brought into the ball, one of `dpviz.datasets.table.encoding.SCALINGS`.
        beside: (n, columns) of the table that are not trained on, for groups; None where there are none.
        published_test: (n,) which rows are the test part that the publisher set aside; None where there is none.
        encoder: how readable rows become features, for new rows; None where that is not known.
        label: which column of a person's table is the label, and which value is +1; None for other sets.
        remarks: what a careful colleague would say about these rows and this label, one sentence each.
        persons: (n,) the person of each row, numbered in random order; None where epsilon is for a row.
        person_rows: rows of one person at most, public; 0 where epsilon is for a row.
        preparations: what a part of the run's budget paid for before training (`dpviz.preparing`).
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    frame: pd.DataFrame
    source: str
    label_names: tuple[str, str]
    description: str
    facts: dict[str, float] = field(default_factory=dict)
    plane: tuple[str, str] | None = None
    looked_at: tuple[str, ...] = ()
    taken_as_public: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lost: tuple[Lost, ...] = ()
    norms: NDArray[np.float64] | None = None
    scaling: str = "unit"
    encoder: Encoder | None = None
    beside: pd.DataFrame | None = None
    published_test: NDArray[np.bool_] | None = None
    label: Label | None = None
    remarks: tuple[str, ...] = ()
    persons: NDArray[np.intp] | None = None
    person_rows: int = 0
    preparations: tuple[Paid, ...] = ()

    def __post_init__(self) -> None:
        n, d = self.X.shape
        if self.y.shape != (n,) or len(self.frame) != n or len(self.feature_names) != d:
            raise InvalidInput(self.name, "rows, labels and names do not fit together", "Check the loader.")
        if n < 10:
            mine = self.label is not None  # a table of a person's own, whose name is random
            raise InvalidInput("table" if mine else self.name, f"has {n} rows", "At least 10 rows are needed.")
        if not np.isfinite(self.X).all():
            raise InvalidInput(self.name, "has values that are not finite", "Remove or replace them.")
        if not np.isin(self.y, (-1.0, 1.0)).all():
            raise InvalidInput(self.name, "has labels other than -1 and +1", "Choose which label is the positive one.")
        if abs(self.y.sum()) == n:
            raise InvalidInput(self.name, "has one class only", "Choose a target that takes two values.")
        if np.einsum("ij,ij->i", self.X, self.X).max() > 1.0 + 1e-9:
            raise InvalidInput(self.name, "has rows longer than 1", "Scale the rows into the unit ball.")
        for array in (self.X, self.y):
            array.setflags(write=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of features, the intercept included."""
        return self.X.shape[1]

    @property
    def intercept(self) -> bool:
        """True where the last column is the constant feature."""
        return self.feature_names[-1] == INTERCEPT

    @property
    def constant(self) -> float:
        """c of the constant feature, rows being (x, c)/sqrt(1 + c²); 0 where there is none."""
        return constant_of(self.scaling) if self.intercept else 0.0

    @property
    def declared(self) -> bool:
        """True where ranges and categories were declared in advance and not read from the rows."""
        return not self.looked_at

    @property
    def rare_class(self) -> tuple[str, ...]:
        """One sentence where a class has fewer than `FEW` rows, else none."""
        rare = int(min((self.y > 0).sum(), (self.y < 0).sum()))
        if rare >= FEW:
            return ()
        name = self.label_names[int((self.y > 0).sum() == rare)]
        belong = "belongs" if rare == 1 else "belong"
        return (
            f"Only {rare} of {self.n:,} rows {belong} to the class {show(name)}. The test part may "
            "hold none of them, and a model that never finds them still has a high accuracy.",
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions to show beside any number about these rows, one sentence each."""
        messages = list(self.rare_class)
        dropped = sum(one.count for one in self.lost if one.kind == "rows")
        if dropped:
            messages.append(f"{dropped:,} rows were left out. {self.n:,} remain; n counts the training rows among these.")
        return (*messages, *caution(self.lost))

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """One sentence where |mean row|^2 is above `ALIKE` of the mean |row|^2, else none; it is not private."""
        x = self.X[:, :-1] if self.intercept else self.X
        mean, squares = x.mean(axis=0), float(np.square(x).sum(axis=1).mean())
        if mean @ mean <= ALIKE * squares:
            return ()
        return (
            f"More than {100 * ALIKE:g} % of the squared length is the same for all rows, so a linear model sees little. Declare "
            "narrower ranges, or choose another row scaling, such as unit. This was read from the rows and is not private.",
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of names, rows and labels: two datasets that differ anywhere differ here."""
        digest = hashlib.sha256()
        digest.update(repr((self.feature_names, self.label_names, self.X.shape)).encode())
        digest.update(repr(self.person_rows).encode() if self.person_rows else b"")  # the noise depends on it
        digest.update(np.ascontiguousarray(self.X).data)
        digest.update(np.ascontiguousarray(self.y).data)
        return digest.hexdigest()

    @cached_property
    def numbers_sha256(self) -> str:
        """Hash of the columns of numbers as they are, in which private ranges are found: X holds them within other ranges."""
        digest = hashlib.sha256()
        for column in self.encoder.columns if self.encoder else ():
            if column.kind == NUMBER:
                digest.update(repr(column.name).encode())
                digest.update(np.ascontiguousarray(self.frame[column.name].to_numpy(float)).data)
        return digest.hexdigest()

    def rescale(self, scaling: str) -> Dataset:
        """The same rows, brought into the unit ball in another way; the rows as they are where they need none.

        Args:
            scaling: one of `dpviz.datasets.table.encoding.SCALINGS`.

        Raises:
            InvalidInput: an unknown way.
        """
        check_choice("scaling", scaling, SCALINGS)
        if self.norms is None or scaling == self.scaling:
            return self
        if self.scaling == CENTRED:
            return self._uncentred().rescale(scaling)
        if scaling == CENTRED:
            return self._centred()
        factors = self.row_factors(scaling) / self.row_factors(self.scaling)
        X = self.X * factors[:, None]
        if self.intercept:
            X[:, -1] = self.X[:, -1]
        notes, looked_at = list(self.notes), self.looked_at
        if scaling == "clip":
            longer = int((self.norms > 1).sum())
            notes.append(f"{longer:,} of {self.n:,} rows had a norm above 1 and were clipped to 1; the others kept theirs.")
        if scaling == "largest":
            notes.append(f"All rows were divided by the largest norm, {self.norms.max():.4g}, which was read from the rows.")
            looked_at = (*looked_at, LARGEST)
        encoder = self.encoder and self.encoder.rescale(scaling, float(self.norms.max()))
        made = replace(self, X=X, scaling=scaling, notes=tuple(notes), looked_at=looked_at, encoder=encoder)
        return made._with_scaling_loss()

    def _before(self) -> NDArray[np.float64]:
        """(n, features) the rows before their factors, without the constant feature."""
        x = self.X[:, : self.d - self.intercept] * np.hypot(1.0, self.constant)
        x /= self.row_factors(self.scaling)[:, None]  # in place, here and below: tables may be large
        return x

    def _with(self, x: NDArray[np.float64], norms_before: NDArray[np.float64], scaling: str, notes: tuple[str, ...]) -> Dataset:
        """The same rows as `x` before their factors, with these norms, in another scaling; changes `x`."""
        x *= row_factors(norms_before, scaling, self.frame.shape[1] - 1)[:, None]
        encoder = self.encoder and self.encoder.rescale(scaling, 1.0)
        x = add_intercept(x, constant_of(scaling) if self.intercept else 0.0)
        made = replace(self, X=x, norms=norms_before, scaling=scaling, notes=notes, encoder=encoder)
        return made._with_scaling_loss()

    def _centred(self) -> Dataset:
        if self.encoder is None:
            raise InvalidInput(
                "row_scaling", f"{self.name!r} does not know which of its columns are numbers with a range", "Choose another."
            )
        x = self._before()
        x[:, self.encoder.numbers] = centre_numbers(x[:, self.encoder.numbers], np.array(True))
        norms_before = norms.row_norms(x)
        longer = int((norms_before > np.sqrt(self.frame.shape[1] - 1) / 2).sum())
        note = (
            f"Numbers are in [−1, 1]; {longer:,} of {self.n:,} rows had a norm above 1 after division by √k/2 and were clipped."
        )
        return self._with(x, norms_before, CENTRED, (*self.notes, note))

    def _uncentred(self) -> Dataset:
        """The rows of a centred set at unit length."""
        assert self.encoder is not None
        x = self._before()
        x = np.where(self.encoder.numbers, (x + 1.0) / 2.0, x)
        return self._with(x, norms.row_norms(x), "unit", self.notes[:-1])

    @property
    def automatic_scaling(self) -> str:
        """The scaling of a run that leaves it automatic: centred where it is known which columns are numbers with a range.

        That looks at no row: ranges are declared, or were read from the rows for [0, 1] already (`looked_at`).
        """
        return CENTRED if self.norms is not None and self.encoder is not None else "unit"

    def _with_scaling_loss(self) -> Dataset:
        """The same with what this scaling takes from the rows among `lost`."""
        if self.norms is None:
            return self
        others = tuple(one for one in self.lost if one.kind != SCALING)
        x = self.X[:, :-1] if self.intercept else self.X
        lost = (*others, *scaling_loss(x, self.row_factors(self.scaling), self.scaling))
        return self if lost == self.lost else replace(self, lost=lost)

    def row_factors(self, scaling: str) -> NDArray[np.float64]:
        """(n,) factors that bring the rows, as they were before, into the ball; ones where they were in it."""
        if self.norms is None:
            return np.ones(self.n)
        return row_factors(self.norms, scaling, self.frame.shape[1] - 1)

    def split(self, seed: int = 0, folds: int = 0, published: bool = False) -> Split:
        """A seeded 80/20 split by row id, n_train = floor(0.8 n); or one fold of a k-fold cross validation; or the publisher's.

        Args:
            seed: of the permutation; with folds, split `seed` is fold seed mod k of permutation seed // k.
            folds: k, 0 for the 80/20 split. All k test parts have ceil(n/k) rows, so that n_train is the same; where k does
                not divide n, a few rows are in two of them.
            published: the split that the rows were published with, whatever the seed; without folds.

        Raises:
            InvalidInput: one part holds one class only, or there is no published split.
        """
        if published:
            return self._published()
        check_integer("split_seed", seed, 0, 2**32 - 1)
        order = self._order(np.random.default_rng(seed // folds if folds else seed))
        cut = train_size(self.n, folds)
        if folds:
            order = np.roll(order, -((seed % folds + 1) * self.n // folds))  # the fold's rows come last
        split = self._by_person(order[:cut], order[cut:])
        if abs(self.y[split.train].sum()) == cut:
            raise InvalidInput(
                "split_seed", f"with {seed} the training part of {self.name!r} has one class only", "Choose another split_seed."
            )
        return split

    def _order(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """A random order of the rows, in which those of one person stand together."""
        if self.persons is None:
            return rng.permutation(self.n)
        return np.argsort(rng.permutation(int(self.persons.max()) + 1)[self.persons], kind="stable")

    def _by_person(self, train: NDArray[np.intp], test: NDArray[np.intp]) -> Split:
        """The two parts; rows of persons who are trained on leave the test part, so that n_train stays as it is."""
        if self.persons is not None:
            test = test[~np.isin(self.persons[test], self.persons[train])]
        if not len(test):
            raise InvalidInput("person", f"too few persons in {self.name!r} for a test part", "Keep fewer rows of each.")
        return Split(np.sort(train), np.sort(test))

    def train_size(self, folds: int = 0, published: bool = False) -> int:
        """Training rows of `split`; where there is no published split, those without it."""
        if published and self.published_test is not None:
            return int((~self.published_test).sum())
        return train_size(self.n, folds)

    def _published(self) -> Split:
        if self.published_test is None:
            fix = 'Leave it off. The set "adult" has one where adult.data and adult.test are in the data folder.'
            raise InvalidInput("published_split", f"{self.name!r} comes without a test part of its own", fix)
        return self._by_person(np.flatnonzero(~self.published_test), np.flatnonzero(self.published_test))


def train_size(n: int, folds: int = 0) -> int:
    """Training rows out of n: floor(0.8 n), or all but the ceil(n/k) rows of a fold.

    >>> train_size(100), train_size(100, folds=10)
    (80, 90)
    """
    return n - -(-n // folds) if folds else int(TRAIN_SHARE * n + 1e-9)


def build(
    *,
    name: str,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    feature_names: list[str],
    frame: pd.DataFrame,
    intercept: bool,
    norms: NDArray[np.float64] | None = None,
    **words: Any,
) -> Dataset:
    """A `Dataset` from rows in the unit ball, with the constant feature added where it is wanted.

    Args:
        norms: (n,) norms that the rows had before they were given unit length; None where they were in the ball.
    """
    if intercept:
        x, feature_names = add_intercept(x, 1.0), [*feature_names, INTERCEPT]
    made = Dataset(
        name=name,
        X=np.ascontiguousarray(x, dtype=np.float64),
        y=np.asarray(y, dtype=np.float64),
        feature_names=tuple(feature_names),
        frame=frame.reset_index(drop=True),
        norms=norms,
        **words,
    )
    return made._with_scaling_loss()
