"""`dpviz sweep`: a whole figure from the shell, with the app's settings file, numbers and checkpoint."""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, metrics, output, own_file
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    import pandas as pd

    from dpviz.experiments.run.metrics import Metric
    from dpviz.experiments.sweeps.cells import CellStore
    from dpviz.experiments.sweeps.sweep import SweepSpec

FORMATS = (".csv", ".parquet")
_SEVERAL = "mechanism", "epsilon"  # fields of which a sweep has several

HELP = "train many mechanisms at many budgets, resume where it stopped, and save one table"
DESCRIPTION = "Finished parts are kept in the cache that the app uses too; a second call goes on where the first stopped."


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument(
        "spec",
        nargs="?",
        metavar="SPEC.toml|TABLE.csv",
        help="settings, as the app saves them, or a table of your own (- reads it from standard input); options below win",
    )
    own_file.add(parser)
    parser.rest.add_argument("--spec", dest="spec_file", metavar="SPEC.toml", help="the same, as an option")
    parser.add_argument("--mechanisms", metavar="ID,ID", help="what to compare (dpviz list mechanisms)")
    parser.add_argument("--set", action="append", default=[], metavar="ID.KNOB=VALUE", help="a knob; may be repeated")
    parser.add_argument("--epsilons", metavar="E,E|LOW:HIGH:N", help="budgets: a list, or N of them with equal ratios")
    parser.add_settings(without=_SEVERAL)
    parser.rest.add_argument(
        "--repeats", metavar="N", help="all folds (--folds) of N permutations, or N 80/20 splits, each with noise of its own"
    )
    metrics.add(
        parser, "print the means of this measure too, for example roc-auc, or all; the table always holds all; may be repeated"
    )
    output.add_place(parser, "a .csv or .parquet file (default: CSV on standard output)")
    parser.add_argument("--jobs", default="1", metavar="N", help="cells computed at once; -1 for one per processor")
    parser.rest.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster that computes the cells")
    parser.rest.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep finished cells (in DPVIZ_CACHE, or ~/.cache/dpviz)"
    )


def run(options: argparse.Namespace) -> int:
    """Computes and saves. Returns 0, or 1 where a part could not be computed."""
    from dpviz.experiments.sweeps.cells import CellStore

    out = output.place(options, FORMATS)
    wanted = metrics.chosen_metrics(options.metric)
    spec = spec_of(options)
    if wanted:
        spec = replace(spec, metrics=[*spec.metrics, *(metric.id for metric in wanted)])
    jobs = _jobs(options.jobs)
    store = None if options.no_cache else CellStore.personal()
    compute = _computed if options.repeats is None else _cross_validated
    table, missing = compute(spec, options, store, jobs, wanted)
    if len(table):
        _save(table, out, kept=store is not None, quiet=options.json)
    if options.json:
        lost = [{"epsilon": epsilon, "problem": " ".join(str(p).split())} for epsilon, p in missing]
        settings = {f.name: getattr(spec, f.name) for f in fields(spec)} | {"mechanisms": spec.named}
        rows = {"rows": table} if out is None else {"out": out}  # a file holds them
        answers.document({"sweep": settings, "missing": lost} | rows, "sweep")
    return 1 if missing or not len(table) else 0


def _computed(
    spec: SweepSpec, options: argparse.Namespace, store: CellStore | None, jobs: int, wanted: Sequence[Metric]
) -> tuple[pd.DataFrame, list[tuple[float, InvalidInput]]]:
    """(the table of a sweep, budgets that could not be computed and why); messages and means go to standard error."""
    import pandas as pd

    from dpviz.experiments.sweeps.cells import attempts, problems
    from dpviz.experiments.sweeps.cluster import ClusterLost
    from dpviz.experiments.sweeps.curves import summarise
    from dpviz.experiments.sweeps.sweep import sort_rows

    cells = spec.cells()
    tables, missing = [], []
    finished = 0
    try:
        with Bar() as bar, _backend(options.scheduler) as everywhere:
            for table in attempts(cells, store=store, n_jobs=-1 if everywhere else jobs, monitor=bar):
                missing += problems(table)
                finished += 1
                if len(table):
                    tables.append(table)
    except ClusterLost as lost:
        kept = f"They are kept. {lost.fix} {options.typed}" if store else "They are lost, because of --no-cache."
        raise InvalidInput("--scheduler", f"{lost.cause}; {finished} of {len(cells)} parts are finished", kept) from None
    for notice in store.notices if store else ():
        print(f"dpviz: {notice}", file=sys.stderr)
    for line in dict.fromkeys(f"dpviz: missing at ε = {epsilon:g}: {' '.join(str(p).split())}" for epsilon, p in missing):
        print(line, file=sys.stderr)
    if not tables:
        return pd.DataFrame(), missing
    table = sort_rows(pd.concat(tables, ignore_index=True), spec)
    for metric in wanted:
        non_private, majority = (float(table[f"{model}_{metric.column}"].iloc[0]) for model in ("non_private", "majority"))
        beside = f"non-private {_number(non_private)}; majority {_number(majority)}"
        for row in summarise(table, metric.column).itertuples():
            text = f"{row.mechanism} at epsilon = {row.epsilon:g}: {metric.within} {_number(row.mean)}; {beside}"
            print(text, file=sys.stderr)
    return table, missing


def _number(value: float) -> str:
    return "has no value" if math.isnan(value) else f"{value:.4f}"


def _cross_validated(
    spec: SweepSpec, options: argparse.Namespace, store: CellStore | None, jobs: int, wanted: Sequence[Metric]
) -> tuple[pd.DataFrame, list[tuple[float, InvalidInput]]]:
    """As `_computed`, on several splits: a budget that cannot be computed ends it. Means and both spreads are printed."""
    from dpviz.experiments.run.metrics import METRICS
    from dpviz.experiments.sweeps.folds import cross_validate, summarise_splits

    repeats = check_integer("--repeats", number_from_text("--repeats", options.repeats), 1, 1000)
    with Bar() as bar:
        table = cross_validate(spec, repeats, store=store, n_jobs=jobs, monitor=bar)
    for metric in wanted or (METRICS["accuracy"],):
        named = f"{metric.within} " if wanted else ""
        unit, digits = (100, 1) if metric.shares else (1, 4)
        for row in summarise_splits(table, spec.folds, metric.column).itertuples():
            numbers = (row.mean, row.standard_error, row.noise_sd, row.split_sd)
            mean, error, noise, split = (f"{unit * v:.{digits}f}" for v in numbers)
            print(
                f"{row.mechanism} at epsilon = {row.epsilon:g}: {named}{mean}{' %' if metric.shares else ''}, "
                f"standard error {error}; spread over noise {noise}, over {row.splits} splits {split}",
                file=sys.stderr,
            )
    return table, []


def spec_of(options: argparse.Namespace) -> SweepSpec:
    """The sweep that a file and options stand for; options win.

    Raises:
        InvalidInput: for the first bad value, naming it.
    """
    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.settings import SETTINGS
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.experiments.sweeps.sweep import SweepSpec
    from dpviz.mechanisms import get_knob

    first = options.spec
    table = None if first is None or first.lower().endswith(".toml") else first
    if first and not table and options.spec_file:
        raise InvalidInput("--spec", "two files of settings are given", "Give one.")
    file = options.spec_file if table else first or options.spec_file
    options.dataset = own_file.dataset_name(options, table)
    base = SweepSpec.from_toml(file) if file else None
    values: dict[str, Any] = {f.name: getattr(base, f.name) for f in fields(SweepSpec)} if base else {}
    if base is not None and options.dataset is not None and options.delta is None:
        values.pop("delta")  # it belongs to the other dataset's number of rows
    texts = {name: value for name in SETTINGS if name not in _SEVERAL and (value := getattr(options, name)) is not None}
    read = RunSpec.from_query(texts)
    values |= {name: getattr(read, name) for name in texts}
    named: dict[str, dict[str, Any]] = base.named if base else {name: {} for name in SweepSpec.mechanisms}
    if options.mechanisms is not None:
        named = {name: named.get(name, {}) for name in filter(None, options.mechanisms.split(","))}
    for item in options.set:
        name, equals, value = item.partition("=")
        mechanism, dot, knob = name.partition(".")
        if not equals or not dot:
            raise InvalidInput("--set", f"needs ID.KNOB=VALUE, got {item!r}", "For example: --set dp-gd.steps=20.")
        declared = get_knob(mechanism, knob, "--set")
        if mechanism not in named:
            raise InvalidInput("--set", f"{mechanism!r} is not in this sweep", f"It has: {', '.join(named)}.")
        named[mechanism] = {**named[mechanism], knob: declared.parse(knob, value)}
    values["mechanisms"] = named
    if options.epsilons is not None:
        values["epsilons"] = _epsilons(options.epsilons)
    sweep = SweepSpec(**values)
    answers.announce(options, sweep.dataset, sys.stderr if options.out is None else sys.stdout)
    for one in sweep.runs():
        resolve(one)
    return sweep


def _epsilons(text: str) -> list[float]:
    """Budgets of a list E,E, or of a range LOW:HIGH:N with equal ratios."""
    from dpviz.experiments.sweeps.curves import grid

    parts = text.split(":" if ":" in text else ",")
    numbers = [number_from_text("epsilons", part) for part in parts if part]
    if ":" not in text:
        return numbers
    if len(numbers) != 3 or not 0 < numbers[0] < numbers[1]:
        raise InvalidInput("epsilons", f"needs LOW:HIGH:N with 0 < LOW < HIGH, got {text!r}", "For example: 0.1:10:9.")
    return list(grid(numbers[0], numbers[1], check_integer("epsilons", numbers[2], 2, 1000)))


def _jobs(text: str) -> int:
    number = number_from_text("--jobs", text)
    return -1 if number == -1 else check_integer("--jobs", number, 1, 1024)


def _save(table: pd.DataFrame, target: Path | None, *, kept: bool, quiet: bool = False) -> None:
    """Writes the table to its file, or to standard output unless that is to stay quiet."""
    table.attrs = {}
    if target is None:
        if not quiet:
            print(table.to_csv(index=False), end="")
        return
    buffer = io.BytesIO()
    if target.suffix.lower() == ".csv":
        table.to_csv(buffer, index=False)
    else:
        table.to_parquet(buffer, index=False)
    again = "Finished cells are kept; call it again." if kept else "Nothing was kept, because of --no-cache."
    output.save(target, buffer.getvalue(), again)


@contextlib.contextmanager
def _backend(scheduler: str | None) -> Iterator[bool]:
    """Makes joblib use processes, or a cluster; yields whether all workers of a cluster are to be used."""
    from joblib import parallel_config

    if scheduler is None:
        # a tracker process of joblib tidies up after workers that were killed, and would say so beside our one line
        os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
        with parallel_config(backend="loky"):
            yield False
        return
    with _client(scheduler) as client, parallel_config(backend="dask", client=client):
        yield True


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    """A connection to a Dask scheduler whose workers have this very engine.

    Raises:
        InvalidInput: Dask is not installed, the scheduler does not answer, or its workers cannot be used.
    """
    import logging

    from dpviz.experiments.sweeps.cluster import check_workers

    try:
        from distributed import Client
    except ImportError as error:
        raise InvalidInput("--scheduler", "needs Dask, which is not installed", "pip install distributed.") from error
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):  # some have a level of their own
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):  # what breaks a connection is said below, in one line
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=10, set_as_default=True)
    except (OSError, ValueError) as error:
        raise InvalidInput("--scheduler", f"{scheduler} does not answer", "Check the address and that it runs.") from error
    try:
        check_workers(client, scheduler)
        yield client
    finally:
        client.close()
