"""`dpviz calibrate`: the noise that a budget needs, from public facts alone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, one_run
from dpviz.cli.parser import Parser
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.mechanisms import Calibration, Mechanism
    from dpviz.mechanisms.attack import Attacker
    from dpviz.models import Setting

_MOST = 10**9

HELP = "the noise that a budget needs, without training"
DESCRIPTION = "With --n and --d no data is looked at; else the rows and features of the run's dataset are counted."


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("--n", metavar="ROWS", help="training rows, in the place of a dataset; with --d")
    parser.add_argument("--d", metavar="FEATURES", help="features, the intercept included; with --n")
    add_attacker(parser)


def add_attacker(parser: argparse.ArgumentParser) -> None:
    """Adds the option that takes the place of a budget."""
    parser.add_argument(
        "--attacker",
        metavar="TOLERATED",
        help="in the place of --epsilon, the strongest tolerated attacker: tpr=0.05@fpr=0.01, advantage=0.1 or accuracy=0.55",
    )


def attacker_of(options: argparse.Namespace) -> Attacker | None:
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
    """Prints the calibration."""
    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.run import public_setting
    from dpviz.experiments.run.setup import setting_of
    from dpviz.mechanisms import protection
    from dpviz.mechanisms.attack import epsilon_for
    from dpviz.privacy.budget import Budget, row_budget

    attacker = attacker_of(options)
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
        "reached": attacker.reached(mechanism, setting, cal),
        "epsilon_by_budget": alone,
        "noise_by_budget": noise,
    }
    return lines, values
