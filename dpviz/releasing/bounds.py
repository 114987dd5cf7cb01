"""Accuracy by the ranges of number columns: declared, read from the rows, found privately, too narrow and too wide.

Narrow bounds clip rows: all models lose by that, private or not (bias). Wide bounds leave the rows a small part of the unit ball,
so that differences between them are small beside the noise and the regularisation that keeps it small.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.norms import add_intercept
from dpviz.common.progress import Monitor, ignore
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoder import NUMBER, Encoder
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import automatic_lam, dataset_of, resolve, split_of
from dpviz.experiments.run.settings import AS_DECLARED, LEAST_LAM
from dpviz.experiments.run.setup import class_weights, rows_in
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.answers import Answer
from dpviz.mechanisms import Training, protection
from dpviz.mechanisms.persons import budget_of_row
from dpviz.models import get_model
from dpviz.models.problem import Problem
from dpviz.preparing.ranges import numbers_of, replace_ranges
from dpviz.privacy.budget import Budget
from dpviz.privacy.private_ranges import private_ranges, shares
from dpviz.releasing.ranges import texts_of

#: widths of all ranges, in widths of what the rows hold
WIDTHS = tuple(2.0**k for k in range(-4, 5))


@dataclass(frozen=True, eq=False)
class Compared:
    """A run with other ranges of its number columns; all of it is computed from private rows.

    Attributes:
        kinds: one row for each of "declared" (where the table declares some), "read" and "private" ranges (where some were
            found): kind, read (number of columns whose range or categories were read from the rows, not covered by epsilon),
            and the columns of `widths`, the width a geometric mean over columns.
        widths: one row for each width: width (1: from the smallest to the largest value of the rows, otherwise the upper bound is
            so many times as far from the smallest), clipped (share of values of number columns outside), accuracy (mean test
            accuracy over noise draws), spread (standard deviation), non_private (test accuracy of the non-private optimum with
            hardly any regularisation; NaN for networks).
        refusal: why no private ranges were found, "" where they were.
        whole, of_ranges, of_model: the budgets of the run, of private ranges, and of the model beside them.
    """

    kinds: pd.DataFrame
    widths: pd.DataFrame
    refusal: str
    whole: Budget
    of_ranges: Budget
    of_model: Budget


def compare(spec: RunSpec, widths: Sequence[float] = WIDTHS, monitor: Monitor = ignore) -> Compared:
    """The run with declared ranges, with those of its rows, with private ones for a tenth of its budget, and with other widths.

    Private ranges are found anew for each noise draw. Categories are found with them where they were read from the rows.

    Args:
        widths: see `Compared.widths`.
        monitor: receives progress; raises to cancel.

    Raises:
        InvalidInput: the run does not fit what is there, or its rows have no ranges.

    >>> made = compare(RunSpec("census-2000", mechanism="output-gaussian", seeds=2), widths=(1.0,))
    >>> made.kinds["kind"].tolist(), made.of_model
    (['declared', 'read', 'private'], Budget(epsilon=0.9, delta=9e-06))
    """
    trial = _Trial.prepare(spec)
    streams, budget, read = spawn(spec.seed, spec.seeds), trial.budget, trial.dataset.looked_at
    of_ranges, of_model = shares(budget)
    count = len(widths) + 2 + spec.seeds
    done = iter(range(1, count + 1))

    def measured(encoder: Encoder, of: Budget, some: list[np.random.SeedSequence]) -> _Measured:
        found = trial.measure(encoder, of, some)
        monitor(next(done) / count)
        return found

    kinds = []
    if not set(trial.numbers) <= set(read):
        kinds.append(("declared", len(read), *_in_short([measured(trial.encoder, budget, streams)])))
    kinds.append(("read", len({*read, *trial.numbers}), *_in_short([measured(trial.stretch(1.0), budget, streams)])))
    refusal = ""
    try:
        found = [trial.find_privately(of_ranges, random.Random(f"ranges {spec.seed} {k}")) for k in range(spec.seeds)]
    except InvalidInput as problem:
        refusal = f"{problem.cause}. {problem.fix}"
    else:
        each = [measured(one, of_model, [stream]) for one, stream in zip(found, streams, strict=True)]
        kinds.append(("private", 0, *_in_short(each)))
    measures = ["width", "clipped", "accuracy", "spread", "non_private"]
    rows = [(width, *_in_short([measured(trial.stretch(width), budget, streams)])[1:]) for width in widths]
    return Compared(
        pd.DataFrame(kinds, columns=["kind", "read", *measures]),
        pd.DataFrame(rows, columns=measures),
        refusal,
        budget,
        of_ranges,
        of_model,
    )


def best_width(spec: RunSpec, options: Mapping[str, float]) -> Answer:
    """The width of all ranges with the highest mean accuracy; also those within two standard errors of it.

    Args:
        options: widths by their names.
    """
    made = compare(spec, tuple(options.values()))
    table = made.widths.assign(name=list(options), error=made.widths["spread"].fillna(0) / spec.seeds**0.5)
    best = table.loc[table["accuracy"].idxmax()]
    near = table[best["accuracy"] - table["accuracy"] <= 2 * np.hypot(table["error"], best["error"])]
    shown = [(f"width {name}", 100 * value, name == best["name"]) for name, value in zip(options, table["accuracy"], strict=True)]
    private = made.kinds[made.kinds["kind"] == "private"]
    shown += [
        (f"private ranges, width {width:.2g} on average", 100 * value, False)
        for width, value in zip(private["width"], private["accuracy"], strict=True)
    ]
    evidence = pd.DataFrame(shown, columns=["name", "value", "chosen"])
    return Answer(str(best["name"]), np.nan, np.nan, tuple(near["name"]), evidence, "test accuracy in percent")


#: (width, share of values clipped, (streams,) test accuracies, non-private test accuracy)
_Measured = tuple[float, float, Floats, float]


def _in_short(found: Sequence[_Measured]) -> tuple[float, ...]:
    """Width, clipped, accuracy, spread and non-private accuracy over some encoders."""
    width, clipped, non_private = (float(np.mean([one[k] for one in found])) for k in (0, 1, 3))
    accuracies = np.concatenate([one[2] for one in found])
    spread = float(accuracies.std(ddof=1)) if len(accuracies) > 1 else float("nan")
    return width, clipped, float(accuracies.mean()), spread, non_private


@dataclass(frozen=True, eq=False)
class _Trial:
    """A run whose rows can be encoded again.

    Attributes:
        spec: the run.
        budget: of it.
        dataset: its rows.
        encoder: of the dataset.
        numbers: (n,) values of the columns of numbers, by name.
    """

    spec: RunSpec
    budget: Budget
    dataset: Dataset
    encoder: Encoder
    numbers: dict[str, Floats]

    @classmethod
    def prepare(cls, spec: RunSpec) -> _Trial:
        run = resolve(replace(spec, ranges=AS_DECLARED))  # the kinds are compared whichever the run has
        dataset = dataset_of(run.spec)
        return cls(run.spec, run.budget, dataset, *numbers_of(dataset))

    def stretch(self, width: float) -> Encoder:
        """The encoder whose ranges reach from the smallest value so many times as far as the largest one."""
        ends = {name: (float(np.nanmin(v)), float(np.nanmax(v))) for name, v in self.numbers.items()}
        return replace_ranges(
            self.encoder, {name: (low, high + (width - 1) * (high - low)) for name, (low, high) in ends.items()}, {}
        )

    def width(self, encoder: Encoder) -> float:
        """The width of an encoder's ranges, geometric mean over columns that vary."""
        ratios = [
            (c.high - c.low) / np.ptp(self.numbers[c.name])
            for c in encoder.columns
            if c.kind == NUMBER and np.ptp(self.numbers[c.name]) > 0
        ]
        return float(np.exp(np.mean(np.log(ratios))))

    def find_privately(self, budget: Budget, source: random.Random) -> Encoder:
        """The encoder with private ranges, and private categories where they were read from the rows."""
        names = [c.name for c in self.encoder.columns if c.kind != NUMBER and c.name in self.dataset.looked_at]
        for_row = budget_of_row(budget, self.dataset.person_rows)
        found = private_ranges(self.numbers, for_row, source, categories=texts_of(self.dataset.frame, names))
        return replace_ranges(self.encoder, found.ranges, found.categories)

    def measure(self, encoder: Encoder, budget: Budget, streams: list[np.random.SeedSequence]) -> _Measured:
        """Width, share clipped and accuracies of a run with this encoder."""
        spec, x = self.spec, encoder.rows(self.dataset.frame)
        dataset = replace(self.dataset, X=add_intercept(x, self.dataset.constant))
        split, model, built = split_of(spec, dataset), get_model(spec.model), spec.build()
        training, test = rows_in(dataset, split.train, class_weights(spec)), rows_in(dataset, split.test)
        lam = spec.lam or automatic_lam(built, spec.model, len(training), dataset.d, budget, dataset.person_rows)
        problem = Problem(training, model, lam)
        cal = protection.calibrate(built, problem.setting, budget)
        accuracies = train(built, Training(problem, [cal], streams, record=False), keep_diverged=True).accuracy(test)[0]
        non_private = float("nan")
        if problem.setting.linear:
            free = Problem(training, model, LEAST_LAM)
            non_private = float(model.measure(free.optimum[None], test)[1][0])
        ends = {c.name: (c.low, c.high) for c in encoder.columns}
        outside = [((v < ends[name][0]) | (v > ends[name][1])).mean() for name, v in self.numbers.items()]
        return self.width(encoder), float(np.mean(outside)), accuracies, non_private
