"""`dpviz calibrate`: the noise that a budget needs, from public facts alone."""

from __future__ import annotations

import argparse
from typing import Any

from dpviz.cli import answers, one_run
from dpviz.common.validate import InvalidInput, number_from_text, whole

_MOST = 10**9


def add(commands: Any) -> None:
    """Adds the subcommand to a parser's subparsers."""
    made = commands.add_parser(
        "calibrate",
        help="the noise that a budget needs, without training",
        description="With --n and --d no data is looked at; else the rows and features of the run's dataset are counted.",
    )
    one_run.add(made)
    made.add_argument("--n", metavar="ROWS", help="training rows, in the place of a dataset; with --d")
    made.add_argument("--d", metavar="FEATURES", help="features, the intercept included; with --n")
    answers.add(made)
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Prints the calibration. Returns 0."""
    import dpviz
    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.setup import setting_of

    facts: dict[str, Any]
    if options.n is None and options.d is None:
        spec = one_run.run_spec(options)
        setting = setting_of(spec)
        cal = spec.build().calibrate(setting, resolve(spec).budget)
        facts = {"dataset": resolve(spec).spec.dataset, "n": setting.n, "d": setting.d}
        shown = f"{one_run.shown(spec.dataset, options)}, {setting.n:,} training rows, {setting.d:,} features"
    else:
        if options.n is None or options.d is None:
            raise InvalidInput("--n", "and --d go together", "Give both: training rows, and features with the intercept.")
        if options.dataset is not None or (options.file is not None and not one_run.is_link(options.file)):
            raise InvalidInput("--n", "cannot go with a dataset", "Give a dataset, or --n and --d.")
        spec = one_run.run_spec(options)
        n, d = (whole(f"--{k}", number_from_text(f"--{k}", getattr(options, k)), 1, _MOST) for k in ("n", "d"))
        cal = dpviz.calibrate(
            spec.mechanism, n=n, d=d, epsilon=spec.epsilon, delta=spec.delta, lam=spec.lam, model=spec.model, **spec.params
        )
        facts = {"dataset": None, "n": n, "d": d}
        shown = f"none looked at, {n:,} training rows, {d:,} features"
    chosen = {"mechanism": spec.mechanism, "model": spec.model, "lam": spec.lam, "params": dict(spec.params)}
    answers.give(
        options,
        [
            ("dataset", shown),
            ("mechanism", f"{spec.mechanism} on {spec.model}"),
            *answers.guarantee_lines(cal, spec.build()),
            ("sensitivity from", cal.sensitivity_source),
            *answers.remarks(cal),
        ],
        facts | chosen | {"guarantee": answers.guarantee(cal, spec.build())},
    )
    return 0
