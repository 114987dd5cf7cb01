"""`dpviz calibrate`: the noise that a budget needs, by one method, by all of them, or by all accountants."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dpviz.cli import accountants, answers, methods, metrics, one_run
from dpviz.cli.parser import Parser, refuse
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.mechanisms import Calibration, Mechanism
    from dpviz.mechanisms.attack import Attacker
    from dpviz.models import Setting

_MOST = 10**9

HELP = "the noise that a budget needs, and how far each method and accountant is proved"
DESCRIPTION = (
    "With --n and --d no data is looked at; else the rows and features of the run's dataset are counted. Only --methods with "
    "--metric trains."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("--n", metavar="ROWS", help="training rows, instead of a dataset; with --d")
    parser.add_argument("--d", metavar="FEATURES", help="features, the intercept included; with --n")
    parser.add_argument(
        "--attacker",
        metavar="TOLERATED",
        help="instead of --epsilon, the strongest tolerated attacker: tpr=0.05@fpr=0.01, advantage=0.1 or accuracy=0.55",
    )
    parser.add_argument("--accountants", action="store_true", help="the noise that every accountant needs, and the best attack")
    parser.rest.add_argument("--published", action="store_true", help="accountants: also every method's published noise")
    parser.add_argument("--methods", action="store_true", help="how far every method is proved at this budget")
    metrics.add(parser.rest, "methods: train each, and print what it achieves beside, for example accuracy; may be repeated")


def _attacker(options: argparse.Namespace) -> Attacker | None:
    """The tolerated attacker; None where a budget is given.

    Raises:
        InvalidInput: it cannot be read, or a budget is given too.
    """
    from dpviz.mechanisms.attack import Attacker

    if options.attacker is None:
        return None
    if options.epsilon is not None:
        raise InvalidInput("--attacker", "cannot go with --epsilon", "Give one of them.")
    return Attacker.parse(options.attacker)


def run(options: argparse.Namespace) -> None:
    """Prints the calibration, the accountants or the methods."""
    attacker = _attacker(options)
    if not options.accountants:
        refuse(options, ("published",), "belongs to --accountants")
    if not options.methods:
        refuse(options, ("metric",), "belongs to --methods")
    if options.accountants:
        refuse(options, ("methods", "n", "d", "attacker"), "cannot go with --accountants")
        accountants.run(options)
    elif options.methods:
        refuse(options, ("n", "d"), "cannot go with --methods")
        methods.run(options, attacker)
    else:
        _calibrate(options, attacker)


def _calibrate(options: argparse.Namespace, attacker: Attacker | None) -> None:
    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.run import public_setting
    from dpviz.experiments.run.setup import setting_of
    from dpviz.mechanisms import protection
    from dpviz.mechanisms.attack import epsilon_for
    from dpviz.privacy.budget import Budget, row_budget

    public = options.n is not None or options.d is not None
    if public and (options.n is None or options.d is None):
        raise InvalidInput("--n", "and --d go together", "Give both: training rows, and features with the intercept.")
    if public and (options.dataset is not None or (options.file is not None and not one_run.is_link(options.file))):
        raise InvalidInput("--n", "cannot go with a dataset", "Give a dataset, or --n and --d.")
    spec = one_run.run_spec(options)
    built = spec.build()
    if public:
        if spec.class_weight != 1:
            raise InvalidInput("--class-weight", "cannot go with --n and --d, which have no rows to weigh", "Give a dataset.")
        n, d = (check_integer(f"--{k}", number_from_text(f"--{k}", getattr(options, k)), 1, _MOST) for k in ("n", "d"))
        setting, budget = public_setting(spec, n, d), row_budget(spec.epsilon, spec.delta, n)
        name, shown = None, "none looked at"
    else:
        setting, budget = setting_of(spec), resolve(spec).budget
        name, shown = resolve(spec).spec.dataset, one_run.display_name(spec.dataset, options)
    if attacker is not None:
        budget = Budget(epsilon_for(attacker, built, setting, budget.delta), budget.delta)
    cal = protection.calibrate(built, setting, budget)
    facts: dict[str, Any] = {"dataset": name, "n": setting.n, "d": setting.d}
    found, beyond = ([], {}) if attacker is None else _attacked(attacker, built, setting, cal)
    chosen = {
        "mechanism": spec.mechanism,
        "model": spec.model,
        "lam": spec.lam if attacker is None else setting.lam,
        "params": dict(spec.params),
    }
    answers.give(
        options,
        [
            ("dataset", f"{shown}, {setting.n:,} training rows, {setting.d:,} features" + " with the intercept" * spec.intercept),
            ("mechanism", f"{spec.mechanism} on {spec.model}"),
            *found,
            *answers.guarantee_lines(cal, built),
            ("sensitivity from", cal.sensitivity_source),
            *answers.remarks(cal),
        ],
        facts | chosen | ({} if attacker is None else {"attacker": beyond}) | {"guarantee": answers.guarantee(cal, built)},
    )


def _attacked(
    attacker: Attacker, mechanism: Mechanism, setting: Setting, cal: Calibration
) -> tuple[list[tuple[str, object]], dict[str, Any]]:
    """The tolerated attacker beside what (epsilon, delta) alone would need, for people and as values."""
    from dpviz.mechanisms import protection
    from dpviz.mechanisms.attack import MEASURES, epsilon_by_budget
    from dpviz.privacy.budget import Budget

    alone = epsilon_by_budget(attacker, cal.budget.delta)
    noise = protection.calibrate(mechanism, setting, Budget(alone, cal.budget.delta)).noise_scale
    times = noise / cal.noise_scale if cal.noise_scale > 0 else float("nan")
    lines: list[tuple[str, object]] = [
        ("l2 regularisation", f"{setting.lam:.4g}"),
        ("attacker", f"{attacker}: {MEASURES[attacker.measure]}; no attacker is better at the noise below"),
        ("by (ε, δ) alone", f"ε = {alone:.4g} would be needed, with {times:.3g} times as much noise"),
    ]
    values = {
        "measure": attacker.measure,
        "most": attacker.most,
        "at_fpr": attacker.at_fpr if attacker.measure == "tpr" else None,
        "reached": attacker.largest_reach(mechanism, setting, cal),
        "epsilon_by_budget": alone,
        "noise_by_budget": noise,
    }
    return lines, values
