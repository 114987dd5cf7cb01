"""Releases the best model of a private search over settings: `dpviz.private_search`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput, check_choice, check_instance, check_range
from dpviz.datasets import Dataset
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import ResolvedRun, resolve
from dpviz.experiments.run.run import run as measured
from dpviz.experiments.run.settings import PRIVATE
from dpviz.experiments.run.setup import all_rows_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps import grid as tuning
from dpviz.mechanisms import Fit, Training, protection
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.preparing.ranges import PUBLIC_KINDS
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.accounting.repeated_selection import KINDS, repetitions
from dpviz.privacy.budget import Budget, row_budget
from dpviz.privacy.private_ranges import shares, total_budget
from dpviz.releasing.grid import Published, publish
from dpviz.releasing.ranges import add_range_cost, declare_privately, name_method, parse_ranges, undeclared_columns
from dpviz.releasing.training import Release, add_conditions, choose_secretly, encoder_of, model_of
from dpviz.spending.ledger import Ledger
from dpviz.spending.of_run import entry_of
from dpviz.spending.private_search import Candidate, Plan, plan, search

MOST_SETTINGS = 200


def settings_of(spec: RunSpec, values: Mapping[str, Sequence[Any]]) -> list[RunSpec]:
    """All combinations of the values, as runs.

    Args:
        values: by name: hyperparameters of the mechanism, or "lam".

    Raises:
        InvalidInput: a name or a value that the run cannot have, no value, or more than `MOST_SETTINGS` combinations.

    >>> [run.lam for run in settings_of(RunSpec(mechanism="output-gaussian"), {"lam": [0.1, 0.01]})]
    [0.1, 0.01]
    """
    for name, some in check_instance("values", values, Mapping).items():
        check_choice("grid", name, tuning.declared_knobs(spec))
        if len(check_instance("grid", some, Sequence)) == 0:
            raise InvalidInput("grid", f"{name} has no value", "Give at least one.")
    count = int(np.prod([len(some) for some in values.values()])) if values else 0
    if not 1 <= count <= MOST_SETTINGS:
        raise InvalidInput("grid", f"holds {count:,} settings", f"Give 1 to {MOST_SETTINGS}.")
    return [tuning.apply(spec, dict(zip(values, some, strict=True))) for some in itertools.product(*values.values())]


def default_values(spec: RunSpec) -> dict[str, list[Any]]:
    """Five values each of the method's first hyperparameter and of lambda, around those that public facts give.

    >>> default_values(RunSpec("teaching", mechanism="output-gaussian", lam=0.01))
    {'lam': [0.000625, 0.0025, 0.01, 0.04, 0.16]}
    """
    names = tuning.first_pair(spec) or ("lam",)
    return {name: list(dict.fromkeys(tuning.values(spec, name, 5))) for name in names}


@choose_secretly
def private_search(
    spec: RunSpec,
    values: Mapping[str, Sequence[Any]],
    *,
    mean_runs: float = 10.0,
    distribution: str = "logarithmic",
    held_out: float = 0.2,
    all_rows: bool = False,
    ranges_from_data: bool = False,
    private_ranges: bool = False,
    ledger: Ledger | None = None,
    call: str = "dpviz.private_search",
    monitor: Monitor = ignore,
) -> Release:
    """Releases the best of a random number of private models with random settings; its epsilon pays for the choice, too.

    Args:
        spec: the run; its epsilon and delta are the total. Its seeds are not used. An automatic method is that of few rows.
        values: the settings to choose from, see `settings_of`. They must be fixed before looking at the rows.
        mean_runs: how many models are trained on average.
        distribution: of the number of runs, one of `KINDS`.
        held_out: share of the rows that models are scored on and not trained on, 0.05 to 0.5.
        all_rows: use all rows and not the run's training part.
        ranges_from_data, private_ranges: as for `dpviz.release`; ranges are found once, before the search.
        ledger, call: the search is entered, as made by `call`, before it begins, and refused where it would pass the limit.
        monitor: receives progress; raises to cancel. What was spent stays spent.

    Raises:
        InvalidInput: the run does not fit what is there, or its method cannot be searched privately.
    """
    check_choice("distribution", distribution, KINDS)
    share = check_range("held_out", held_out, 0.05, 0.5)
    spec, private_ranges, every = parse_ranges(name_method(spec), private_ranges)
    run = resolve(spec)
    encoder = None if private_ranges else encoder_of(setup_for(run.spec).dataset, ranges_from_data)
    if private_ranges:
        undeclared_columns(setup_for(run.spec).dataset, every)  # what cannot be mended is said before anything is spent
    tried = _Tried.prepare(run.spec, values, all_rows, share)
    whole = row_budget(run.spec.epsilon, run.spec.delta, len(tried.problems[0].rows))
    of_ranges, rest = shares(whole) if private_ranges else (None, whole)
    spent, total = _after_preparations(tried.dataset, rest)
    distributed, source = repetitions(distribution, mean_runs), random.SystemRandom()
    made = plan(tried.candidates, distributed, total, tried.dataset.person_rows)
    if ledger is not None:
        made.enter(ledger, call, total_budget(of_ranges, spent) or spent, *_supposed(made, tried.dataset, of_ranges))
    if of_ranges is not None:  # the number of features follows from the categories that were found
        tried = _Tried.prepare(declare_privately(run.spec, tried.dataset, of_ranges, source, every), values, all_rows, share)
        made = plan(tried.candidates, distributed, total, tried.dataset.person_rows)
    encoder = encoder or encoder_of(tried.dataset, ranges_from_data)
    index, best = search(made, lambda k: tried.train(k, made, source), tried.right, source, monitor)
    if best is None:
        raise InvalidInput("grid", "no model of the search can be published", "Choose larger values of lam, or a smaller ε.")
    cal = add_range_cost(made.calibration(index), rest, spent, " and ".join(one.what for one in tried.dataset.preparations))
    cal = add_conditions(add_range_cost(cal, whole, of_ranges), tried.dataset, best[1].exact)
    fit, published = best
    chosen, n = tried.settle(index, made.each), tried.candidates[index].setting.n
    released = model_of(chosen, tried.dataset, encoder, cal, n, fit, published)
    of = (released, chosen.spec, cal, tried.dataset, n, published.exact, published.step)
    return Release(*of, searched=len(made.calibrations), each=made.each, of_ranges=of_ranges)


@dataclass(frozen=True, eq=False)
class Compared:
    """One private search beside the defaults and beside trying every setting.

    Attributes:
        release: what the search gives.
        each: what each of its models is calibrated for.
        accuracy: its test accuracy in [0, 1]; not private.
        default: mean test accuracy of the run's own settings at the same epsilon, over its noise draws; not private.
        naive: the total epsilon of training every setting once at that epsilon, scores apart; infinite where no finite one holds.
    """

    release: Release
    each: Budget
    accuracy: float
    default: float
    naive: float


def compare_search(spec: RunSpec, values: Mapping[str, Sequence[Any]], monitor: Monitor = ignore) -> Compared:
    """A private search of the values, and what it is compared with.

    Raises:
        InvalidInput: see `private_search`.
    """
    from_data = spec.ranges != PRIVATE
    made = private_search(replace(spec, seed=RunSpec.seed), values, ranges_from_data=from_data, monitor=monitor)
    own = measured(spec)
    model, test = own.setup.problem.model, own.setup.test
    label = made.model.constant_label
    right = model.measure(made.model.theta[None], test)[1][0] if label is None else (test.y == label).mean()
    entry = entry_of(own.spec.build(), own.setup.problem.setting, own.calibration)
    count = int(np.prod([len(some) for some in values.values()]))
    naive = total_epsilon([entry.release] * count, own.calibration.budget.delta)
    return Compared(made, made.each or own.calibration.budget, float(right), float(own.accuracy.mean()), naive)


def _after_preparations(dataset: Dataset, total: Budget) -> tuple[Budget | None, Budget]:
    """(the cost of what prepared the rows, None where nothing did; what it leaves of the total)."""
    if not dataset.preparations:
        return None, total
    spent = protection.preparation_budget(dataset.preparations, total.delta)
    return spent, Budget(total.epsilon - spent.epsilon, total.delta - spent.delta)


def _supposed(made: Plan, dataset: Dataset, of_ranges: Budget | None) -> tuple[str, ...]:
    """The conditions of a search, as far as they are known before training."""
    supposed = add_conditions(made.calibration(0), dataset, exact=False).conditions
    return supposed if of_ranges is None else (*supposed, PUBLIC_KINDS)


def split_positions(n: int, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(positions to train on, positions to score on) of n rows, which do not depend on what is in the rows."""
    order = np.random.default_rng(seed).permutation(n)
    cut = n - max(1, round(share * n))
    return np.sort(order[:cut]), np.sort(order[cut:])


@dataclass(frozen=True, eq=False)
class _Tried:
    """The settings of a search with what they are trained and scored on.

    Attributes:
        runs: one for each setting.
        dataset: the rows.
        candidates: likewise.
        problems: likewise; those of equal regularisation are the same.
        scoring: the rows that models are scored on.
    """

    runs: tuple[RunSpec, ...]
    dataset: Dataset
    candidates: tuple[Candidate, ...]
    problems: tuple[Problem, ...]
    scoring: Rows

    @classmethod
    def prepare(cls, spec: RunSpec, values: Mapping[str, Sequence[Any]], all_rows: bool, share: float) -> _Tried:
        """All settings of the values, on one part of the run's training rows or of all rows."""
        runs, shared = settings_of(spec, values), setup_for(spec)
        of = all_rows_of(spec, shared.dataset) if all_rows else shared.problem.rows
        # for a row, also where the total is for a person: `plan` takes care of it
        rows = Rows(of.X, of.y, class_weights=of.class_weights, looked_at=of.looked_at)
        training, scoring = map(rows.take, split_positions(len(rows), share, spec.split_seed))
        model = get_model(spec.model)
        lams = [resolve(each).lam for each in runs]
        by_lam = {lam: Problem(training, model, lam) for lam in set(lams)}
        problems = tuple(by_lam[lam] for lam in lams)
        candidates = tuple(Candidate(each.build(), p.setting) for each, p in zip(runs, problems, strict=True))
        return cls(tuple(runs), shared.dataset, candidates, problems, scoring)

    def train(self, index: int, made: Plan, source: random.Random) -> tuple[Fit, Published] | None:
        """A new model with one setting; None where it is too large to be published, a run that scores nothing."""
        problem, cal, mechanism = self.problems[index], made.calibrations[index], self.candidates[index].mechanism
        stream = np.random.SeedSequence()  # entropy of the operating system
        fit = train(mechanism, Training(problem, [cal], [stream], record=False)).fit
        try:
            return fit, publish(mechanism, problem.setting, cal, fit, source)
        except InvalidInput:
            return None

    def settle(self, index: int, each: Budget) -> ResolvedRun:
        """The run with one setting: automatic hyperparameters followed from the budget of one run, and not from the total."""
        candidate = self.candidates[index]
        built = protection.settle(candidate.mechanism, candidate.setting, each)
        return resolve(replace(self.runs[index], params={name: getattr(built, name) for name in built.knobs()}))

    def right(self, trained: tuple[Fit, Published] | None) -> int:
        """Number of scoring rows that a model predicts right."""
        if trained is None:
            return 0
        fit, published = trained
        if fit.constant_label is not None:
            return int((self.scoring.y == fit.constant_label[0, 0]).sum())
        share = self.problems[0].model.measure(published.theta[None], self.scoring)[1][0]
        return round(float(share) * len(self.scoring))
