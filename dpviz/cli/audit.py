"""`dpviz audit`: an attacker guesses which of two neighbouring datasets a run's model was trained on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, membership, one_run
from dpviz.cli.parser import Parser, refuse
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_choice, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.auditing import AuditResult
    from dpviz.mechanisms import Mechanism

#: attributes of a result that the JSON document has by the same name
_PLAIN = ("runs", "seed", "confidence", "score", "guessed_right", "epsilon_lower", "verdict", "warnings")

#: options of the game, as attributes
_GAME = ("pair", "row", "other", "runs", "score", "confidence")

HELP = "attack a run: how often an attacker guesses right, and the epsilon that this shows"
DESCRIPTION = (
    "An audit can refute a guarantee and never confirms one. The run's seed is that of the game. With "
    "--person all rows of one person differ. The attacked models have the run's hyperparameters, automatic ones too. "
    "--membership trains shadow models on random halves of the rows and attacks other models like them; it names exposed rows, "
    "so its answer is not private."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("--pair", metavar="KIND", help="worst-case, without, most-influential, label-flip or two-rows")
    parser.add_argument(
        "--row",
        metavar="ID",
        help="a training row, for the pairs without, label-flip and two-rows; with --person all rows of its person",
    )
    parser.rest.add_argument("--other", metavar="ID", help="the training row that takes its place, for the pair two-rows")
    parser.add_argument("--runs", metavar="N", help="models trained on each dataset, 40 to 1,000,000 (1000)")
    parser.rest.add_argument("--score", metavar="NAME", help="what the attacker computes (auto)")
    parser.rest.add_argument("--confidence", metavar="SHARE", help="of each bound (0.95)")
    parser.add_argument(
        "--membership", action="store_true", help="attack ordinary rows: members found at few false alarms, and which"
    )
    membership.add(parser.rest)


def run(options: argparse.Namespace) -> None:
    """Plays the game, or attacks ordinary rows, and prints what that shows."""
    if options.membership:
        refuse(options, _GAME, "cannot go with --membership")
        membership.run(options)
    else:
        refuse(options, membership.OPTIONS, "belongs to --membership")
        _play(options)


def _play(options: argparse.Namespace) -> None:
    from dpviz.auditing.runs import CHOSEN, KINDS, WORST, watch_run
    from dpviz.experiments.run.resolve import resolve

    spec = one_run.run_spec(options)
    kind = check_choice("--pair", one_run.option_value(options, "pair") or WORST, KINDS)
    for name, kinds in CHOSEN.items():
        if getattr(options, name) is not None and kind not in kinds:
            raise InvalidInput(f"--{name}", f"is not used by the pair {kind}", f"Choose --pair {' or '.join(kinds)}.")
    row, other = (_row(name, one_run.option_value(options, name)) for name in ("row", "other"))
    runs = check_integer("--runs", number_from_text("--runs", one_run.option_value(options, "runs") or "1000"), 40, 1_000_000)
    confidence = number_from_text("--confidence", options.confidence or "0.95")
    if not 0 < confidence < 1:
        raise InvalidInput("--confidence", f"must lie between 0 and 1, got {confidence:g}", "For example: 0.95.")
    with Bar() as bar:
        game = watch_run(spec, kind, row, other, runs, score=options.score or "auto", confidence=confidence, monitor=bar, looks=1)
        *_, (pair, result) = game
    values = {"run": answers.run(resolve(spec)), "pair": kind, "pair_in_words": pair.why}
    answers.give(options, _lines(result, values), values | _values(result, spec.build()))


def _row(name: str, text: str | None) -> int | None:
    return None if text is None else check_integer(f"--{name}", number_from_text(f"--{name}", text), 0, 2**31)


def _values(result: AuditResult, mechanism: Mechanism) -> dict[str, Any]:
    low, high = result.guessed_right_limits
    return {
        "guarantee": answers.guarantee(result.calibration, mechanism),
        **{name: getattr(result, name) for name in _PLAIN},
        "guessed_right_low": low,
        "guessed_right_high": high,
        "guessed_right_allowed": result.allowed,
        "epsilon_ceiling": result.ceiling,
        "epsilon_lower_gaussian": result.gaussian_epsilon_lower,
        "epsilon_lower_measured_noise": result.measured_epsilon_lower,
        "against_claimed": result.evidence_against(result.calibration.claimed_budget) or None,
        "against_proved": result.evidence_against(result.calibration.proved_budget) or None,
    }


def _lines(result: AuditResult, about: dict[str, Any]) -> list[tuple[str, object]]:
    cal, (low, high) = result.calibration, result.guessed_right_limits
    gaussian, measured = result.gaussian_epsilon_lower, result.measured_epsilon_lower
    claimed = f"claimed: {cal.claimed_budget or 'nothing'}; proved: {cal.proved_budget or 'nothing'} ({cal.sentence})"
    allowed = (
        "" if result.allowed is None else f"; what is {'proved' if cal.proved_budget else 'claimed'} allows {result.allowed:.4f}"
    )
    return [
        ("mechanism", f"{result.mechanism} on {about['run']['model']}"),
        ("pair", about["pair_in_words"]),
        ("guarantee", claimed),
        ("attacker", result.score),
        ("guesses right", f"{result.guessed_right:.4f} ({result.confidence:.0%} limits {low:.4f} to {high:.4f}){allowed}"),
        (
            "epsilon, at least",
            f"{result.epsilon_lower:.4g}, free of assumptions ({result.runs:,} runs can show {result.ceiling:.4g})",
        ),
        *([("if Gaussian", f"at least {gaussian:.4g}. {result.assumption}")] if gaussian is not None else []),
        *([("by measured noise", f"at least {measured:.4g}")] if measured is not None else []),
        ("verdict", result.verdict),
        *[("warning", warning) for warning in result.warnings],
    ]
