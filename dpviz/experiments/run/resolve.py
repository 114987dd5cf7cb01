"""Resolving a run: `RunSpec` checked against the data, models and mechanisms that are there, with every default filled in.

A `RunSpec` is a plain value that can be made anywhere. Whether its dataset exists, how many rows that has and which delta
means something for them is known only here. All that trains a run, or stores what it gave, resolves it first.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from dpviz.common.limits import DEMO_LIMITS, most_in_demo
from dpviz.common.memory import Cache
from dpviz.common.paid import Paid
from dpviz.common.persons import choose_rows_by
from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput, check_instance
from dpviz.common.version import engine_version, foreign_code
from dpviz.datasets import Dataset, Split, canonical_name, load_dataset, rows_of
from dpviz.datasets.base import train_size
from dpviz.datasets.table.encoding import AUTOMATIC
from dpviz.experiments.run.settings import AS_DECLARED, PRIVATE, STANDARDISED
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Mechanism, list_mechanisms, protection, rules
from dpviz.mechanisms.knobs import Changes
from dpviz.mechanisms.registry import automatic_mechanism
from dpviz.models import get_model
from dpviz.preparing import get_preparation
from dpviz.preparing.base import Facts, Preparation
from dpviz.privacy.budget import Budget, check_delta, row_budget


@dataclass(frozen=True)
class ResolvedRun:
    """A run whose dataset is there, and whose budget and mechanism fit it.

    Attributes:
        spec: the run, its dataset under the catalogue's one spelling; an automatic delta is still None, an automatic lam 0.
        n_train: training rows, public: of the rows that are left when gaps are dealt with, 80 %, all folds but one, or what the
            publisher did not set aside.
        budget: (epsilon, delta), an automatic delta filled in.
        why: where the mechanism was automatic, its name and the reason.
    """

    spec: RunSpec
    n_train: int
    budget: Budget
    why: str = ""

    @property
    def request(self) -> RunSpec:
        """The run with its mechanism as it was asked for."""
        return replace(self.spec, mechanism=AUTOMATIC, params={}) if self.why else self.spec

    @property
    def of_method(self) -> Budget:
        """The part of the budget that preparations leave to the method; all of it where there are none."""
        dataset = dataset_of(self.spec)
        setting = get_model(self.spec.model).setting(self.n_train, dataset.d, self.base_lam)
        facts = replace(setting, person_rows=dataset.person_rows, preparations=dataset.preparations)
        return protection.method_budget(self.spec.build(), facts, self.budget)

    @cached_property
    def base_lam(self) -> float:
        """The regularisation of the model without noise, the same for every method and budget."""
        return self.spec.lam or rules.regularisation(self.n_train, dataset_of(self.spec).d)

    @cached_property
    def lam(self) -> float:
        """The regularisation: as set, or what the mechanism's rule gives for its budget where it is automatic."""
        if self.spec.lam:
            return self.spec.lam
        dataset = dataset_of(self.spec)
        built = self.spec.build()
        facts = self.n_train, dataset.d, self.budget, dataset.person_rows, dataset.preparations
        return automatic_lam(built, self.spec.model, *facts)

    def change_epsilon(self, epsilon: float) -> ResolvedRun:
        """This run at another value of epsilon, which changes its budget alone, and an automatic mechanism."""
        if self.why:
            return resolve(replace(self.request, epsilon=epsilon))
        spec = replace(self.spec, epsilon=epsilon)
        return ResolvedRun(spec, self.n_train, row_budget(spec.epsilon, spec.delta, self.n_train))

    def key(self) -> str:
        """Canonical JSON of all that decides the result: the spec with every knob, the data's hash, the engine.

        Two runs have the same key exactly if they give the same numbers; caches use it and nothing else.
        """
        built, dataset = self.spec.build(), dataset_of(self.spec)
        declared = dataset_of(replace(self.spec, ranges=AS_DECLARED, row_scaling="unit")) if self.spec.prepared else dataset
        values = self.spec.to_dict() | {
            "delta": self.budget.delta,
            "params": {name: getattr(built, name) for name in built.knobs()},
            "sha256": declared.sha256,
            "engine": engine_version() + foreign_code(type(built)),
            "fresh": _fresh.get() if dataset.preparations else None,
        }
        if self.spec.prepared:  # the rows follow from the numbers and the fields
            values["numbers"] = declared.numbers_sha256
        return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def fit_key(self) -> str:
        """Key of what depends on the rows and the non-private model alone; see the function `fit_key`."""
        fit, dataset = replace(self.spec.restrict(Changes.DATA, Changes.FIT), lam=self.lam), dataset_of(self.spec)
        if not fit.prepared and fit.row_scaling == AUTOMATIC:  # the choice is the same at every epsilon at which it is made
            fit = replace(fit, row_scaling=dataset.scaling)
        return ResolvedRun(fit, self.n_train, row_budget(fit.epsilon, fit.delta, self.n_train)).key() + str(dataset.preparations)


@lru_cache(maxsize=512)
def automatic_lam(
    mechanism: Mechanism, model: str, n: int, d: int, budget: Budget, person_rows: int = 0, preparations: tuple[Paid, ...] = ()
) -> float:
    """The regularisation by the mechanism's rule, from public facts.

    Where the mechanism refuses the budget it is that of the model without noise: the calibration of the run says what is wrong.

    Args:
        n: training rows.
        d: features, the intercept included.
        person_rows, preparations: see `Setting`.
    """
    facts = get_model(model).setting(n, d, rules.regularisation(n, d))
    setting = replace(facts, person_rows=person_rows, preparations=preparations)
    try:
        return protection.automatic_lam(mechanism, setting, budget)
    except InvalidInput:
        return setting.lam


#: preparations by the field of a run that asks for them
_ASKED = {("ranges", PRIVATE): "ranges", ("row_scaling", AUTOMATIC): "scaling", ("row_scaling", STANDARDISED): "standardisation"}

_kept: Cache[Dataset] = Cache("prepared rows", 1 << 29, lambda made: made.X.nbytes + 1)


def preparations_of(spec: RunSpec, facts: Facts) -> tuple[tuple[Preparation, ...], tuple[str, ...]]:
    """(what is prepared, why standardisation is not where a run asks for it), from public facts alone."""
    asked = [get_preparation(name) for (field, value), name in _ASKED.items() if getattr(spec, field) == value]
    refusals = [each.refusal(facts) for each in asked]
    made = tuple(each for each, refusal in zip(asked, refusals, strict=True) if not refusal)
    return made, tuple(refusal for refusal in refusals if refusal and spec.row_scaling == STANDARDISED)


def dataset_of(spec: RunSpec) -> Dataset:
    """The rows of a run, with the constant feature and in the scaling that it asks for, after its preparations.

    Where persons have more rows than are kept, the split seed decides which. Preparations looked at the training rows with noise
    that follows from the run's seed, so that a link repeats it; within `fresh_noise` it is drawn from the operating system.
    All noise draws of a run share its preparations: their spread does not show what other noise on them would change.

    Raises:
        InvalidInput: they are not there or cannot be read, or cannot be prepared.
    """
    scaling = "unit" if spec.ranges == PRIVATE else AUTOMATIC if spec.row_scaling == STANDARDISED else spec.row_scaling
    how: dict[str, Any] = {"intercept": spec.intercept, "scaling": scaling}
    dataset = load_dataset(spec.dataset, **how)
    if dataset.person_rows and spec.split_seed:
        with choose_rows_by(spec.split_seed):
            dataset = load_dataset(spec.dataset, **how)
    if not spec.prepared and spec.row_scaling != AUTOMATIC:
        return dataset
    n = len(dataset.split(published=True).train) if spec.published_split else train_size(dataset.n, spec.folds)
    total = row_budget(spec.epsilon, spec.delta, n)
    preparations, refused = preparations_of(spec, Facts.collect(dataset, n, total))
    if not preparations and not spec.prepared:
        return dataset
    fresh = _fresh.get()

    def make(_: Monitor) -> Dataset:
        train, made = split_of(spec, dataset).train, dataset
        for each in preparations:
            source = random.Random(f"{each.id} {spec.seed}") if fresh is None else random.SystemRandom()
            made = each.prepare(made, train, total, source)
        if spec.ranges == PRIVATE and {each.id for each in preparations} == {"ranges"}:
            made = made.rescale(made.automatic_scaling if spec.row_scaling in (AUTOMATIC, STANDARDISED) else spec.row_scaling)
        return replace(made, remarks=(*made.remarks, *refused)) if refused else made

    names = [each.id for each in preparations]
    key = dataset.sha256, dataset.numbers_sha256, spec.restrict(Changes.DATA), spec.seed, tuple(names), fresh
    return _kept.compute(key, make, owner=dataset.name)


#: within `fresh_noise`, what names its preparations
_fresh: ContextVar[str | None] = ContextVar("fresh", default=None)


@contextmanager
def fresh_noise() -> Iterator[None]:
    """Preparations within draw their noise from the operating system, once for each run, as models that are published need it."""
    token = _fresh.set(secrets.token_hex(16))
    try:
        yield
    finally:
        _fresh.reset(token)


def split_of(spec: RunSpec, dataset: Dataset) -> Split:
    """The training and the test rows of a run."""
    return dataset.split(spec.split_seed, spec.folds, spec.published_split)


def fit_key(spec: RunSpec) -> str:
    """Key of what depends on the rows and the non-private model alone: no mechanism, budget or noise seed.

    A mechanism and a budget matter as far as they decide an automatic regularisation.

    >>> fit_key(RunSpec(epsilon=2.0, seed=5)) == fit_key(RunSpec()) != fit_key(RunSpec(lam=0.1))
    True
    """
    return resolve(spec).fit_key()


def resolve(spec: RunSpec, problems: list[InvalidInput] | None = None) -> ResolvedRun:
    """The run with its defaults filled in, checked against what is there.

    Args:
        spec: any run.
        problems: where given, what does not fit is reported here and replaced: the dataset, the split, the mechanism and the
            model by the defaults of `RunSpec`, delta by the automatic one, private ranges by declared
            ones. Otherwise the first problem raises.

    Raises:
        InvalidInput: the dataset is not there or cannot be read, it has no published split, delta is not below 1/n, rows
            cannot be prepared, or the mechanism refuses the model.

    >>> resolve(RunSpec("census")).spec.dataset
    'census-10000'
    >>> resolve(RunSpec("iris")).budget
    Budget(epsilon=1.0, delta=1e-05)
    """
    check_instance("spec", spec, RunSpec)

    def instead(problem: InvalidInput, **defaults: Any) -> RunSpec:
        if problems is None:
            raise problem
        problems.append(problem.bare())
        return replace(spec, **defaults)

    if spec.seeds > most_in_demo("seeds"):
        spec = instead(_too_many("seeds", f"{spec.seeds:,} are asked for", DEMO_LIMITS.seeds), seeds=RunSpec.seeds)
    try:
        spec, n = _with_rows(spec)
    except InvalidInput as problem:
        spec, n = _with_rows(instead(problem, dataset=RunSpec.dataset))
    if spec.published_split:
        try:
            n = _published_rows(spec)
        except InvalidInput as problem:
            spec = instead(problem, published_split=False)
    try:
        check_delta(spec.delta, n)
    except InvalidInput as problem:
        spec = instead(problem, delta=None)
    if spec.prepared:
        try:
            dataset_of(spec)
        except InvalidInput as problem:
            spec = instead(problem, ranges=AS_DECLARED, row_scaling=RunSpec.row_scaling)
    spec, why = _with_mechanism(spec, n, lenient=problems is not None)
    facts = get_model(spec.model).setting(n, 1, spec.lam or 1.0)
    refusal = spec.build().refusal(replace(facts, weighted=True))
    if spec.class_weight != 1 and refusal and not spec.build().refusal(facts):
        taking = ", ".join(f"{cls.label} ({name})" for name, cls in list_mechanisms().items() if cls.weighted)
        fix = f"Set the weight of class +1 to 1, or choose a linear model and one of {taking}."
        spec = instead(InvalidInput("class_weight", refusal, fix), class_weight=1.0)
    for defaults in ({"mechanism": automatic_mechanism(facts, 0.0)[0], "params": {}}, {"model": RunSpec.model}):
        refusal = spec.build().refusal(get_model(spec.model).setting(n, 1, spec.lam or 1.0))
        if refusal:
            refused = InvalidInput("mechanism", refusal, "Choose another mechanism or another model.")
            spec = instead(refused, **defaults)
    return ResolvedRun(spec, n, row_budget(spec.epsilon, spec.delta, n), why)


def _with_mechanism(spec: RunSpec, n: int, lenient: bool) -> tuple[RunSpec, str]:
    """(the run with an automatic mechanism named, why; "" where it is not automatic).

    Args:
        n: training rows.
        lenient: whether rows that cannot be read are none of its business.
    """
    if spec.mechanism != AUTOMATIC:
        return spec, ""
    d, persons = 1, 0
    try:
        dataset = dataset_of(spec)
        d, persons = dataset.d, dataset.person_rows
    except InvalidInput:
        if not lenient:
            raise
    shape = get_model(spec.model).setting(n, d, spec.lam or 1.0)
    facts = replace(shape, person_rows=persons, weighted=shape.linear and spec.class_weight != 1)
    name, why = automatic_mechanism(facts, spec.epsilon)
    return replace(spec, mechanism=name), why


def _published_rows(spec: RunSpec) -> int:
    """Training rows of the published split."""
    if spec.folds:
        raise InvalidInput("published_split", "cannot go with folds", "Give 0 folds, or leave the published split off.")
    return len(load_dataset(spec.dataset).split(published=True).train)


def _with_rows(spec: RunSpec) -> tuple[RunSpec, int]:
    """The run with its dataset's canonical name, and its number of training rows."""
    name = canonical_name(spec.dataset)
    rows = rows_of(name)
    if rows > most_in_demo("rows"):
        raise _too_many("dataset", f"{name} has {rows:,} rows", DEMO_LIMITS.rows)
    return replace(spec, dataset=name) if name != spec.dataset else spec, train_size(rows, spec.folds)


def _too_many(field: str, what: str, most: int) -> InvalidInput:
    cause = f"{what}, and this demonstration takes at most {most:,}"
    return InvalidInput(field, cause, "Choose fewer, or install dpviz on your own machine.")
