"""`dpviz list claims`: the papers' claims, and tests of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers
from dpviz.cli.parser import Parser, refuse
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.papers.claims import Claim, Finding

#: options of tests, as attributes
OPTIONS = ("test", "full", "seed", "save")


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("--test", metavar="ID", help="claims: test one, or all")
    parser.add_argument("--full", action="store_true", help="more data sets, budgets and draws: minutes instead of seconds")
    parser.add_argument("--seed", help="seed of all randomness of a test (0)", metavar="N")
    parser.add_argument("--save", action="store_true", help="test all claims and keep the verdicts for the page Claims")


def run(options: argparse.Namespace) -> None:
    """Lists or tests."""
    from dpviz.papers import claims

    listed_claims = claims.list_claims()
    if options.save:
        _save(options)
    elif options.test is not None:
        _test(options, listed_claims if options.test == "all" else [options.test])
    else:
        refuse(options, ("full", "seed"), "belongs to --test")
        if options.json:
            answers.document({"claims": [_about(name, claim) for name, claim in listed_claims.items()]}, "list")
            return
        for name, claim in listed_claims.items():
            answers.print_wrapped(f"{name:30}{claim.paper:12}{claim.place}. {claim.meaning}", 42)


def _test(options: argparse.Namespace, names: Iterable[str]) -> None:
    from dpviz.papers import claims

    seed = check_integer("seed", number_from_text("seed", options.seed or "0"), 0, 2**32 - 1)
    tested = []
    for name in names:
        with Bar() as bar:
            finding = claims.check(name, full=options.full, seed=seed, monitor=bar)
        if options.json:
            tested.append(_values(name, finding))
        else:
            _show(name, finding)
    if options.json:
        answers.document({"full": options.full, "seed": seed, "claims": tested}, "list")


def _about(name: str, claim: Claim) -> dict[str, Any]:
    return {"id": name, "paper": claim.paper, "place": claim.place, "meaning": claim.meaning}


def _values(name: str, finding: Finding) -> dict[str, Any]:
    verdict = finding.verdict
    return _about(name, finding.claim) | {
        "result": verdict.headline,
        "numbers": [{"name": label, "value": value} for label, value in verdict.numbers],
        "why": verdict.because,
        "rule": verdict.rule,
        "seeds": verdict.seeds,
        "repeat": finding.command,
        "engine": finding.engine,
    }


def _show(name: str, finding: Finding) -> None:
    from dpviz.papers import claims

    claim, verdict = finding.claim, finding.verdict
    lines = [
        ("claim", f"{claim.meaning} ({claims.PAPERS[claim.paper].citation}, {claim.place})"),
        ("result", verdict.headline),
        *verdict.numbers,
        ("why", verdict.because),
        ("rule", verdict.rule),
        ("seeds", verdict.seeds),
        ("repeat", f"{finding.command}   ({finding.seconds:.1f} s, engine {finding.engine})"),
    ]
    print(f"== {name}")
    for label, value in lines:
        answers.line(label, value)


def _save(options: argparse.Namespace) -> None:
    from dpviz.papers import claims, saved

    refuse(options, ("test", "full", "seed", "json"), "cannot go with --save, which keeps the usual test of all claims")
    findings = []
    for name in claims.list_claims():
        finding = claims.check(name)
        print(f"{name:30}{finding.verdict.headline} ({finding.seconds:.1f} s)", flush=True)
        findings.append(finding)
    try:
        saved.save_claims(findings)
    except OSError as problem:
        raise InvalidInput("--save", f"cannot write {saved.FILE.name} ({problem.strerror})", "Run it in a checkout.") from None
    print(f"Saved {len(findings)} verdicts of version {saved.version()}.")
