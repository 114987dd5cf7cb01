"""Trains one model to be released: fresh randomness of the operating system, no seed, parameters on a public grid."""

import io
import math
import os
import random
import secrets
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

import numpy as np

from dpviz.auditing import AuditResult, audit, worst_case
from dpviz.auditing.game import LEAST_RUNS, MAX_RUNS
from dpviz.common import files
from dpviz.common.persons import choose_rows_by
from dpviz.common.progress import Monitor, ignore, part
from dpviz.common.validate import InvalidInput, check_bool, check_instance, check_integer
from dpviz.common.version import __version__
from dpviz.datasets import Dataset, load_dataset
from dpviz.datasets.table.encoder import Encoder
from dpviz.datasets.table.encoding import AUTOMATIC
from dpviz.datasets.table.sidecar import declarations
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import ResolvedRun, automatic_lam, dataset_of, fresh_noise, resolve
from dpviz.experiments.run.settings import STANDARDISED
from dpviz.experiments.run.setup import all_rows_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Fit, Mechanism, Training, protection
from dpviz.mechanisms.calibration import REAL_NOISE, SECRET_RANDOMNESS
from dpviz.mechanisms.persons import privacy_unit
from dpviz.models import Setting, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Status, check_public_n, row_budget
from dpviz.privacy.private_ranges import shares
from dpviz.releasing.card import card
from dpviz.releasing.grid import Published, add_grid_slack, publish
from dpviz.releasing.model import CARD, FILE, ReleasedModel
from dpviz.releasing.ranges import add_range_cost, declare_privately, joint_entry, parse_ranges, undeclared_columns
from dpviz.spending.ledger import Entry, Ledger
from dpviz.spending.of_run import entry_of


@dataclass(frozen=True, eq=False)
class Release:
    """One model and what belongs to it.

    Attributes:
        model: to be published.
        spec: the run that it is one replica of; its seeds were not used.
        calibration: how its noise was set; what this release supposes beyond is among its conditions.
        dataset: the rows that it was trained on, or a part of them.
        rows: how many of them, public.
        hardened: whether the noise was drawn exactly and added on the grid (`dpviz.releasing.grid`).
        grid: step of the grid that all parameters are multiples of, public.
        tried: settings that were tried on these rows before, None where not stated.
        audited: an audit of the method, None where none was made.
        searched: settings that a private search chose from, 0 where there was none.
        each: the budget that each model of a private search was calibrated for, None where there was none.
        of_ranges: what private ranges cost of the total, None where none were found.
    """

    model: ReleasedModel
    spec: RunSpec
    calibration: Calibration
    dataset: Dataset
    rows: int
    hardened: bool
    grid: float
    tried: int | None = None
    audited: AuditResult | None = None
    searched: int = 0
    each: Budget | None = None
    of_ranges: Budget | None = None

    @property
    def card(self) -> str:
        """The model card, in Markdown."""
        return card(self)

    def files(self) -> dict[str, bytes]:
        """Content of the files by name, the card first."""
        return {CARD: self.card.encode(), FILE: self.model.to_json().encode()}

    def to_zip(self) -> bytes:
        """The files in a ZIP archive."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.files().items():
                archive.writestr(zipfile.ZipInfo(name), content)  # without the time
        return out.getvalue()

    def save(self, folder: Path) -> None:
        """Writes a new folder with `model.json` and `card.md`, as a whole or not at all.

        Raises:
            InvalidInput: see `check_place`; or the folder cannot be written.
        """
        check_place(folder)
        try:
            files.write_folder(folder, self.files())
        except OSError as error:
            raise InvalidInput("out", f"cannot be written: {error.strerror}", "Name a folder that can be written.") from error


def check_place(folder: Path) -> None:
    """Checks that a new folder can be made for a model; nothing is overwritten.

    Raises:
        InvalidInput: it cannot.
    """
    try:
        os.lstat(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InvalidInput("out", f"cannot be written: {error.strerror}", "Name a folder that can be written.") from error
    else:
        raise InvalidInput("out", f"{str(folder)!r} is there already", "Name a new folder; a release is not overwritten.")
    above = folder.absolute().parent
    if not os.path.isdir(above):
        raise InvalidInput("out", f"the folder {str(above)!r} is not there", "Make it first, or name one that is there.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InvalidInput("out", f"{str(above)!r} cannot be written", "Name a folder that can be written.")


P = ParamSpec("P")
REFUTED = 0.999  # confidence of an audit that refuses a release: its noise is fixed, so that a wrong refusal would stay
_AUDIT = 0.9  # of the time of a release with an audit


def choose_secretly(make: Callable[Concatenate[RunSpec, P], Release]) -> Callable[Concatenate[RunSpec, P], Release]:
    """Releases take no seed: their noise, that of preparations and the rows that are kept of persons must be secret."""

    @wraps(make)
    def wrapper(spec: RunSpec, *rest: P.args, **how: P.kwargs) -> Release:
        refuse_seed(check_instance("spec", spec, RunSpec))
        for name in how.keys() & {"all_rows", "unproved", "ranges_from_data", "private_ranges"}:
            check_bool(name, how[name])
        if how.get("tried") is not None:
            check_integer("tried", how["tried"], 1, 10_000)
        if how.get("ledger") is not None:
            check_instance("ledger", how["ledger"], Ledger)
        with fresh_noise(), choose_rows_by(secrets.randbits(128)) if load_dataset(spec.dataset).person_rows else nullcontext():
            return make(spec, *rest, **how)

    return wrapper


@choose_secretly
def release(
    spec: RunSpec,
    *,
    all_rows: bool = False,
    unproved: bool = False,
    ranges_from_data: bool = False,
    private_ranges: bool = False,
    tried: int | None = None,
    audit_runs: int = 0,
    public_n: int | None = None,
    monitor: Monitor = ignore,
    ledger: Ledger | None = None,
    call: str = "dpviz.release",
) -> Release:
    """Trains one model of a run, to be published. Each call gives another model and spends the budget anew.

    Args:
        spec: the run, without a seed of noise; its number of noise draws is not used.
        all_rows: train on all rows and not on the run's training part.
        unproved: release although the budget that was asked for is not proved.
        ranges_from_data: release although ranges or categories were read from the rows, which the model then shows.
        private_ranges: find missing ranges and categories privately, for a tenth of ε (a spec with them: of all number columns).
        tried: how many settings were tried on these rows before, for the card.
        audit_runs: models trained on each of two synthetic datasets in an audit of the method, at least 40; 0 for none.
        public_n: under add-remove, a public number that stands for the number of rows (`dpviz.models.problem`); with `all_rows`.
        monitor: receives progress; raises to cancel.
        ledger: of these rows; the release is entered before it is trained, and refused where it would pass the limit.
        call: what the ledger's entry says made the release.

    Raises:
        InvalidInput: the run does not fit what is there, what is asked for needs one of the switches, or the audit refutes it.
        FloatingPointError: training or the audit diverges.
    """
    spec, private_ranges, every = parse_ranges(spec, private_ranges)
    declared = resolve(spec if public_n is None else _without_n(spec, check_integer("public_n", public_n, 2, 10**9), all_rows))
    dataset, problem = _rows_of(declared, all_rows, public_n)
    budget = row_budget(declared.spec.epsilon, declared.spec.delta, problem.n)
    encoder = None if private_ranges else encoder_of(dataset, ranges_from_data)  # errors before it spends
    of_ranges, of_model = _divided(budget, dataset, every) if private_ranges else (None, budget)
    run, built, dataset, problem, cal = _calibrated(declared, of_model, all_rows, public_n, settled=private_ranges)
    if not unproved:
        _require_proof(cal, of_model)
    if ledger is not None:
        entry = _entry(built, problem, add_conditions(cal, dataset, exact=False), of_ranges, call)
        ledger.check(entry, cal.neighbouring)  # before an audit, which can take long
    audited, listen = _audited(run, problem.setting, cal, audit_runs, monitor)
    if ledger is not None:
        ledger.spend(entry, cal.neighbouring)
    if of_ranges is not None:
        before = built, protection.row_setting(problem.setting)
        ranged = resolve(declare_privately(declared.spec, dataset, of_ranges, random.SystemRandom(), every))
        run, built, dataset, problem, cal = _calibrated(ranged, of_model, all_rows, public_n, settled=True)
        if (built, protection.row_setting(problem.setting)) != before:
            audited, listen = _audited(run, problem.setting, cal, audit_runs, monitor, entered=ledger is not None)
    fit = train(built, Training(problem, [cal], [np.random.SeedSequence()], record=False, monitor=listen)).fit
    made = publish(built, problem.setting, cal, fit, random.SystemRandom())
    cal = add_conditions(add_range_cost(cal, budget, of_ranges), dataset, made.exact)
    model = model_of(run, dataset, encoder or encoder_of(dataset, ranges_from_data), cal, problem.n, fit, made)
    return Release(model, run.spec, cal, dataset, problem.n, made.exact, made.step, tried, audited, of_ranges=of_ranges)


def _entry(built: Mechanism, problem: Problem, cal: Calibration, of_ranges: Budget | None, call: str) -> Entry:
    """The cost of a release with what it supposes, as far as that is known before training."""
    return entry_of(built, problem.setting, cal, call) if of_ranges is None else joint_entry(cal, of_ranges, call)


def _divided(budget: Budget, dataset: Dataset, every: bool) -> tuple[Budget, Budget]:
    """The budgets of private ranges and of the model, where the rows can have such ranges (`undeclared_columns`)."""
    undeclared_columns(dataset, every)
    return shares(budget)


def _calibrated(
    run: ResolvedRun, budget: Budget, all_rows: bool, public_n: int | None, settled: bool
) -> tuple[ResolvedRun, Mechanism, Dataset, Problem, Calibration]:
    """A run with its calibration at a budget; `settled` where automatic hyperparameters follow from that one, too."""
    if settled:
        run = resolve(replace(run.spec, epsilon=budget.epsilon, delta=budget.delta))
        built = protection.settle(run.spec.build(), _rows_of(run, all_rows, public_n)[1].setting, budget)
        run = resolve(replace(run.spec, params={name: getattr(built, name) for name in built.knobs()}))
    built, (dataset, problem) = run.spec.build(), _rows_of(run, all_rows, public_n)
    cal = add_grid_slack(built, protection.calibrate(built, problem.setting, budget), problem.setting.m)
    check_public_n(cal.neighbouring, public_n)
    return run, built, dataset, problem, cal


def _without_n(spec: RunSpec, n: int, all_rows: bool) -> RunSpec:
    """The run whose automatic delta and lambda follow from a public number `n` and not from the number of rows."""
    if not all_rows:
        cause = "needs all rows: which of them are in a part depends on their number, which add-remove makes private"
        raise InvalidInput("public_n", cause, "Train on all rows, not on 80 % of them.")
    if spec.row_scaling == AUTOMATIC:  # whose choice is for the number of rows
        spec = replace(spec, row_scaling=load_dataset(spec.dataset).automatic_scaling)
    dataset, budget = dataset_of(resolve(spec).spec), row_budget(spec.epsilon, spec.delta, n)
    lam = spec.lam or automatic_lam(spec.build(), spec.model, n, dataset.d, budget, dataset.person_rows)
    return replace(spec, lam=lam, delta=budget.delta)


def _rows_of(run: ResolvedRun, all_rows: bool, public_n: int | None) -> tuple[Dataset, Problem]:
    """(rows, problem of the training part, or of all)."""
    shared = setup_for(run.spec)
    if not all_rows:
        return shared.dataset, shared.problem
    return shared.dataset, Problem(all_rows_of(run.spec, shared.dataset), get_model(run.spec.model), run.lam, public_n or 0)


def refuse_seed(spec: RunSpec) -> None:
    """Refuses a seed of noise: an attacker who knows it can subtract the noise.

    Raises:
        InvalidInput: the run has one, or its rows are standardised.
    """
    if spec.row_scaling == STANDARDISED:
        cause = "means and spreads of features cannot be written to a model's file"
        raise InvalidInput("row_scaling", cause, "Choose another one, such as automatic.")
    if spec.seed != RunSpec.seed:
        cause = "an attacker who knows the seed of a model can subtract its noise, so a release draws from the operating system"
        raise InvalidInput("seed", cause, "Leave it out.")


def add_conditions(cal: Calibration, dataset: Dataset, exact: bool) -> Calibration:
    """The calibration with what this release supposes: real-valued noise where it is not exact, and what the rows decided."""
    more = [*([] if exact else [REAL_NOISE, SECRET_RANDOMNESS]), *(f"public: {what}" for what in dataset.taken_as_public)]
    return cal if cal.proved_budget is None or not more else cal.conditional(*cal.conditions, *more)


def encoder_of(dataset: Dataset, ranges_from_data: bool) -> Encoder:
    """The encoder of new rows, where the model may show it."""
    if dataset.encoder is None:
        raise InvalidInput("dataset", f"{dataset.name!r} cannot say how new rows become features", "Choose another dataset.")
    if dataset.looked_at and not ranges_from_data:
        some = ", ".join(dataset.looked_at[:3]) + (", ..." if len(dataset.looked_at) > 3 else "")
        cause = (
            f"the ranges or categories of {some} were read from the rows, which ε does not cover, and the model would show them"
        )
        fix: str = (
            f"Declare them where they are public knowledge, here with round ranges: {declarations(dataset)}. Or find them "
            "privately, or allow a release with ranges from the rows."
        )
        raise InvalidInput("ranges", cause, fix)
    return dataset.encoder


def _require_proof(cal: Calibration, asked: Budget) -> None:
    switch = "Choose a method with a proof, or publish a model whose guarantee is only claimed."
    if cal.proved_budget is None:
        message = "no privacy is promised at all" if cal.status is Status.NONE else f"{cal.claimed_budget} is only claimed"
        raise InvalidInput("mechanism", f"this model's guarantee has no proof: {message}", switch)
    within = cal.proved_budget.epsilon <= asked.epsilon * (1 + 1e-9) and cal.proved_budget.delta <= asked.delta * (1 + 1e-9)
    if not within:
        raise InvalidInput("epsilon", f"{asked} is asked for, and only {cal.proved_budget} is proved", switch)


def _audited(
    run: ResolvedRun, setting: Setting, cal: Calibration, runs: int, monitor: Monitor, *, entered: bool = False
) -> tuple[AuditResult | None, Monitor]:
    """(an audit on synthetic rows with the hyperparameters of the release, None where none is asked for; monitor of the rest).

    Args:
        entered: whether a ledger holds the release already, because its ranges were found.

    Raises:
        InvalidInput: it cannot be made, or it refutes the proved guarantee.
        FloatingPointError: outputs are not finite.
    """
    if check_integer("audit_runs", runs, 0, MAX_RUNS) == 0:
        return None, monitor
    if runs < LEAST_RUNS:
        raise InvalidInput("audit_runs", f"needs at least {LEAST_RUNS} models, got {runs}", "Give 1000, for example.")
    k, own = cal.person_rows, cal.method_budget or cal.budget
    n = max(min(100, math.ceil(1 / cal.budget.delta) - 1), k)  # few enough that delta is below 1/n
    built = protection.settle(run.spec.build(), setting, cal.budget, n)
    pair = worst_case(built, get_model(run.spec.model), own, n=n, lam=setting.lam, person_rows=k)
    audited = audit(built, pair.first, pair.second, own, runs, confidence=REFUTED, monitor=part(monitor, 0.0, _AUDIT))
    proved = audited.calibration.proved_budget
    if evidence := audited.evidence_against(proved):
        cause = f"an audit of {runs:,} models a side refutes {proved} by {evidence}, at {100 * REFUTED:g} % confidence"
        spent = " The ledger's entry stays: private ranges were found with its budget." if entered else ""
        raise InvalidInput("mechanism", cause, f"Publish none of its models; choose another method.{spent}")
    return audited, part(monitor, _AUDIT, 1 - _AUDIT)


def model_of(
    run: ResolvedRun, dataset: Dataset, encoder: Encoder, cal: Calibration, rows: int, fit: Fit, made: Published
) -> ReleasedModel:
    """The model of a fit as it leaves, with its guarantee; `rows` were trained on."""
    return ReleasedModel(
        model=run.spec.model,
        theta=made.theta,
        constant_label=None if fit.constant_label is None else float(fit.constant_label[0, 0]),
        constant=dataset.constant,
        classes=dataset.label_names,
        encoder=encoder,
        privacy=privacy_of(run, cal, rows, made),
    )


def privacy_of(run: ResolvedRun, cal: Calibration, rows: int, made: Published) -> dict[str, object]:
    """The privacy section of the model's file, for programs; the card says it for people."""
    built = run.spec.build()
    return {
        "dpviz": __version__,
        "mechanism": built.id,
        "hyperparameters": {name: getattr(built, name) for name in built.knobs()}
        | {"lam": run.lam, "class_weight": run.spec.class_weight},
        "claimed": cal.claimed_budget and asdict(cal.claimed_budget),
        "proved": cal.proved_budget and asdict(cal.proved_budget),
        "status": cal.status.value,
        "sentence": cal.sentence,
        "relation": cal.neighbouring.value,
        "unit": privacy_unit(cal.person_rows),
        "conditions": list(cal.conditions),
        "accountant": cal.accountant,
        "rows": rows,
        "hardened_sampler": made.exact,
        "grid": made.step,
    }
