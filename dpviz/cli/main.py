"""The command line: `dpviz` starts the app; `dpviz run`, `dpviz sweep` and the lists do without it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpviz.cli import metrics, one_run, output, release, report, sweep
from dpviz.common.fingerprint import __version__
from dpviz.common.validate import InvalidInput, number_from_text, whole

if TYPE_CHECKING:
    from dpviz.experiments.metrics import Metric
    from dpviz.experiments.run import Result

_PACKAGE = Path(__file__).resolve().parents[1]


COMMANDS = ("app", "run", "sweep", "release", "predict", "report", "datasets", "fetch", "mechanisms", "claims")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point.

    Returns:
        0; 2 after one line on bad input; 1 where the output cannot be written, or a part of a sweep is missing; 141 where the
        reader of the output has gone.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in (*COMMANDS, "-h", "--help", "--version"):
        given = ["app", *given]
    if given[0] == "app":
        return _command(given)
    try:
        with output.guarded():
            return _command(given)
    except output.OutputFailed as failed:
        if isinstance(failed.__cause__, BrokenPipeError):
            return output.READER_GONE
        reason = failed.__cause__.strerror if isinstance(failed.__cause__, OSError) else failed
        with suppress(OSError):
            print(f"dpviz: output: cannot be written ({reason}). Send it to another place.", file=sys.stderr)
        return output.FAILED


def _command(given: list[str]) -> int:
    options = parser().parse_args(given)
    options.typed = shlex.join(["dpviz", *given])
    try:
        return int(options.command(options))
    except InvalidInput as problem:
        print(f"dpviz: {' '.join(str(problem).split())}", file=sys.stderr)
        return 2


def app_script() -> Path:
    """app.py of the checkout that this package runs from, or the copy that an installed wheel carries.

    Raises:
        InvalidInput: neither is there.
    """
    for script in (_PACKAGE / "_app" / "app.py", _PACKAGE.parent / "app.py"):
        if script.is_file() and (script.parent / ".streamlit" / "config.toml").is_file():
            return script
    raise InvalidInput("app", "app.py was not found beside the package", "Install dpviz again, or run it from a checkout.")


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    made = argparse.ArgumentParser(prog="dpviz", description="See, tune and audit differentially private ERM.")
    made.add_argument("--version", action="version", version=f"dpviz {__version__}")
    commands = made.add_subparsers(required=True, metavar="{" + ",".join(COMMANDS) + "}")

    app = commands.add_parser("app", help="start the app in the browser (the default)")
    app.add_argument("--port", type=_port, default=None, help="port to listen on (8501, or the next free one)")
    app.add_argument("--host", default=None, help="address to listen on (127.0.0.1: this machine only; 0.0.0.0: everybody)")
    app.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name to answer to, as behind a proxy"
    )
    app.add_argument("--no-browser", action="store_true", help="do not open a browser window")
    app.set_defaults(command=_app)

    run = commands.add_parser("run", help="train once and print the numbers")
    one_run.add(run)
    run.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="ID",
        help="a measure of usefulness beside accuracy, for example roc-auc, or all; may be repeated",
    )
    run.set_defaults(command=_run)

    sweep.add(commands)
    release.add(commands)
    report.add(commands)
    datasets = commands.add_parser("datasets", help="list the datasets, or show how one was prepared")
    datasets.add_argument(
        "name", nargs="?", help="a dataset: its size, what was read from its rows, and what was lost on the way"
    )
    datasets.set_defaults(command=_datasets)
    fetch = commands.add_parser("fetch", help="download a dataset once")
    fetch.add_argument("name", help="one of those that `dpviz datasets` lists as not downloaded")
    fetch.set_defaults(command=_fetch)
    commands.add_parser("mechanisms", help="list the mechanisms and their knobs").set_defaults(command=_mechanisms)

    claims = commands.add_parser("claims", help="list the papers' claims, or test one of them (or all)")
    claims.add_argument("claim", nargs="?", metavar="ID", help="a claim's id, or 'all'; without it they are listed")
    claims.add_argument("--full", action="store_true", help="more data sets, budgets and draws: minutes instead of seconds")
    claims.add_argument("--seed", default="0", help="seed of all randomness", metavar="VALUE")
    claims.add_argument("--save", action="store_true", help="test all claims and keep the verdicts for the page Paper claims")
    claims.set_defaults(command=_claims)
    return made


def _port(text: str) -> int:
    try:
        return whole("--port", number_from_text("--port", text), 1, 65535)
    except InvalidInput as problem:
        raise argparse.ArgumentTypeError(f"{problem.cause}. {problem.fix}") from None


def _app(options: argparse.Namespace) -> int:
    script = app_script()
    from dpviz.dashboard.shell.server import serve  # slow to import, and not needed by the other commands

    serve(script, options.port, options.host, browser=not options.no_browser, allowed=options.allow_host)
    return 0


def _run(options: argparse.Namespace) -> int:
    import dpviz

    spec = one_run.run_spec(options)
    chosen = metrics.chosen(options.metric)
    result = dpviz.run(spec)
    rare = _rare(result)
    if rare and not chosen:
        chosen = metrics.chosen(["balanced-accuracy"])
    spec, cal = result.spec, result.calibration
    draws = f"over {spec.seeds} noise draws"
    expected = result.expected_accuracy
    lines = [
        ("dataset", f"{one_run.shown(spec.dataset, options)}, {result.setup.problem.n} training rows"),
        ("mechanism", f"{spec.mechanism} on {spec.model}"),
        ("budget asked for", str(result.budget)),
        ("guarantee", f"{cal.status.value}; proved: {cal.proved_budget or 'nothing'}; {cal.neighbouring.value}"),
        ("accountant", cal.accountant),
        ("noise", f"{cal.noise_family}, scale {cal.noise_scale:.6g} on {cal.query}; sensitivity {cal.sensitivity:.6g}"),
        ("test accuracy", f"{result.accuracy.mean():.4f} (standard deviation {result.accuracy.std():.4f} {draws})"),
        *([("expected accuracy", f"{expected:.4f} (closed form)")] if expected is not None else []),
        ("non-private", f"{result.non_private.accuracy:.4f}"),
        ("majority", f"{result.majority.accuracy:.4f}"),
        *((metric.id.replace("-", " "), _measured(result, metric)) for metric in chosen),
        ("optimality gap", f"{result.optimality_gap.mean():.6g}"),
        *_guessing(result),
        *rare,
        *[("only if", condition) for condition in cal.conditions],
        *[("note", note) for note in cal.notes],
    ]
    for name, value in lines:
        print(f"{name + ':':19}{value}")
    return 0


def _guessing(result: Result) -> list[tuple[str, str]]:
    """A line where the model is no better than the majority label: the cause and what would help."""
    from dpviz.experiments.cost import split_cost
    from dpviz.experiments.no_better import LEAST, no_better

    spec = result.spec
    if spec.mechanism == "majority" or result.accuracy.mean() > result.majority.accuracy + LEAST:
        return []
    poor = no_better(split_cost(spec, result.accuracy, result.calibration), spec.mechanism, spec.params)
    return [] if poor is None else [("no better", f"than the majority label. {poor.fix}")]


def _rare(result: Result) -> list[tuple[str, str]]:
    """A line where one class is so rare that accuracy says little."""
    from dpviz.experiments.metrics import default_metric, rarer_share

    y = result.setup.dataset.y
    if default_metric(y) == "accuracy":
        return []
    share = 100 * rarer_share(y)
    return [("note", f"the rarer class has {share:.1f} % of the rows, so the majority label alone is right {100 - share:.1f} %")]


def _measured(result: Result, metric: Metric) -> str:
    """A metric of the private models, the non-private one and the majority label, in words where it has no value."""
    values, base = result.metrics[metric.column], result.setup.baselines[metric.column]
    if values.isna().any():
        private = "no value (this method or model gives no scores of this kind, or the test rows have one class)"
    else:
        private = f"{values.mean():.4f} (standard deviation {values.std(ddof=0):.4f})"
    beside = [f"{name} {'no value' if value != value else f'{value:.4f}'}" for name, value in base.items()]
    return f"{private}; {'; '.join(beside)}; {'higher' if metric.higher_is_better else 'lower'} is better"


def _fetch(options: argparse.Namespace) -> int:
    from dpviz.common.validate import one_of
    from dpviz.datasets.sources.remote import REMOTE, download

    name = one_of("name", options.name, REMOTE)
    shown = sys.stderr.isatty()

    def progress(done: int) -> None:
        if shown:
            print(f"\r{done / 1e6:.1f} MB of about {REMOTE[name].megabytes} MB", end="", file=sys.stderr, flush=True)

    try:
        download(name, progress)
    finally:
        if shown:
            print(file=sys.stderr)
    print(f"{name}: {REMOTE[name].variant} is on this machine now.")
    return 0


def _prepared(name: str) -> list[str]:
    """How a dataset was prepared, one line for each thing that was done, read from the rows, or lost."""
    from dpviz.datasets import load_dataset

    dataset = load_dataset(name)
    label = " or ".join(dataset.label_names)
    return [
        f"{name}: {dataset.n:,} rows, {dataset.d:,} features; label: {label}",
        f"source: {dataset.source}",
        f"read from the rows, outside every epsilon: {', '.join(dataset.looked_at) or 'nothing'}",
        *(f"prepared: {note}" for note in dataset.notes),
        *(f"not trained on: {one.sentence}" for one in dataset.lost),
    ]


def _datasets(options: argparse.Namespace) -> int:
    from dpviz.datasets import list_datasets, rows_of
    from dpviz.datasets.sources.remote import REMOTE, downloaded

    if options.name is not None:
        print("\n".join(_prepared(options.name)))
        return 0
    for name in list_datasets():
        try:
            print(f"{name:23}{rows_of(name):>9,} rows")
        except InvalidInput as problem:
            print(f"{name:23} cannot be used: {' '.join(str(problem).split())}")
    print(f"{'census-N':23} any N from 100 to 1,000,000, synthetic")
    for name, remote in REMOTE.items():
        if not downloaded(name):
            print(f"{name:23}{remote.rows:>9,} rows, not downloaded (about {remote.megabytes} MB): dpviz fetch {name}")
    return 0


def _mechanisms(options: argparse.Namespace) -> int:
    from dpviz.mechanisms import list_mechanisms

    for name, cls in list_mechanisms().items():
        print(f"{name:22}{cls.family:11}{cls.label}. {cls.guarantee}")
        for knob_name, knob in cls.knobs().items():
            default = knob.text(cls.defaults()[knob_name])
            print(f"{'':22}--set {knob_name}={default}  ({knob.describe()}) {knob.help}")
    return 0


def _claims(options: argparse.Namespace) -> int:
    from dpviz.papers import claims

    known = claims.list_claims()
    if options.save:
        return _save_claims(options)
    if options.claim is None:
        for name, claim in known.items():
            print(f"{name:30}{claim.paper:12}{claim.place}. {claim.meaning}")
        return 0
    for name in known if options.claim == "all" else [options.claim]:
        found = claims.check(name, full=options.full, seed=_seed(options.seed))
        claim, verdict = found.claim, found.verdict
        lines = [
            ("claim", f"{claim.meaning} ({claims.PAPERS[claim.paper].citation}, {claim.place})"),
            ("result", verdict.headline),
            *verdict.numbers,
            ("why", verdict.because),
            ("rule", verdict.rule),
            ("seeds", verdict.seeds),
            ("repeat", f"{found.command}   ({found.seconds:.1f} s, engine {found.engine})"),
        ]
        print(f"== {name}")
        for label, value in lines:
            print(f"{label + ':':19}{value}")
    return 0


def _save_claims(options: argparse.Namespace) -> int:
    from dpviz.papers import claims, saved

    if options.claim not in (None, "all") or options.full or options.seed != "0":
        raise InvalidInput("--save", "saves the usual test of all claims", "Leave the claim, --full and --seed out.")
    findings = []
    for name in claims.list_claims():
        found = claims.check(name)
        print(f"{name:30}{found.verdict.headline} ({found.seconds:.1f} s)", flush=True)
        findings.append(found)
    try:
        saved.save(findings)
    except OSError as problem:
        raise InvalidInput("--save", f"cannot write {saved.FILE.name} ({problem.strerror})", "Run it in a checkout.") from None
    print(f"Saved {len(findings)} verdicts of version {saved.version()}.")
    return 0


def _seed(text: str) -> int:
    return whole("seed", number_from_text("seed", text), 0, 2**32 - 1)
