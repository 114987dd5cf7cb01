"""Committed verdicts on claims and whole figures: of this version, and of the budget and form that were audited."""

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import mostly_long
from support_pages import opened, settled, text
from support_shell import Shell

import dpviz
from benchmarks import figures
from dpviz.cli.main import main
from dpviz.common.version import engine_version
from dpviz.experiments.run.setup import calibration_of
from dpviz.papers import saved
from dpviz.papers.claims import Finding, Outcome, Picture, Verdict, check, list_claims
from dpviz.papers.claims.audits import CLAIMED, DELTA
from dpviz.papers.figures import catalogue
from dpviz.privacy.budget import Budget, Status
from dpviz.reporting import words

#: claims that are tested in seconds, of formulas, rules and an audit; before a release `dpviz list claims --save` tests all
QUICK = ("dbdp-noise-rate", "numerical-tighter", "permutation-saves", "dbdp-fewer-noised", "dbdp-pi-private")


def test_every_claim_has_a_saved_verdict_with_a_date() -> None:
    kept = saved.load()
    assert set(kept.findings) == set(list_claims())
    assert kept.day <= date.today()
    for name, found in kept.findings.items():
        assert found.claim.id == name
        assert found.verdict.because
        assert not found.full


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"panel": "p", "series": "s", "mechanism": "", "x": ["a", "b"], "y": [1 / 3, math.nan], "low": 0.0, "high": math.inf}
    )
    verdict = Verdict(
        Outcome.ONLY_IF,
        "because",
        "rule",
        (("what", "1"),),
        "it rains",
        table,
        Picture("x", "y", limit=1.0, limit_label="l"),
        "s",
    )
    claim = next(iter(list_claims().values()))
    path = tmp_path / "verdicts.json"
    saved.save_claims([Finding(claim, verdict, "command", False, 0, 1.26, "engine")], path, date(2026, 1, 2))
    kept = saved.load(path)
    back = kept.findings[claim.id]
    assert kept.version == saved.version()
    assert kept.day == date(2026, 1, 2)
    assert (back.verdict.outcome, back.verdict.condition) == (Outcome.ONLY_IF, "it rains")
    assert (back.verdict.numbers, back.verdict.picture) == (verdict.numbers, verdict.picture)
    assert back.command == f"dpviz list claims --test {claim.id}"
    pd.testing.assert_frame_equal(back.verdict.table, table, rtol=1e-5)


def test_verdicts_of_other_code_and_of_claims_that_are_gone_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    content = json.loads(saved.FILE.read_text("utf-8"))
    path.write_text(json.dumps(content | {"version": "0.0+other", "claims": [*content["claims"], {"id": "gone"}]}), "utf-8")
    kept = saved.load(path)
    assert kept.release == "0.0"
    assert set(kept.findings) == set(list_claims())
    assert saved.load(tmp_path / "none").findings == {}


def test_only_the_usual_test_of_all_claims_is_saved() -> None:
    assert main(["list", "claims", "--test=dbdp-noise-rate", "--save"]) == 2
    assert main(["list", "claims", "--save", "--seed", "3"]) == 2


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_saved_verdicts_are_those_of_this_version(name: str) -> None:
    """Where the code has changed since, some claims are tested again; `dpviz list claims --save` renews verdicts."""
    kept = saved.load()
    if kept.version == saved.version():
        pytest.skip("saved by this version")
    verdict, before = check(name).verdict, kept.findings[name].verdict
    assert (verdict.outcome, verdict.condition) == (before.outcome, before.condition)


FIGURE = catalogue.PANELS["pidp-1-adult-lr"][0]
ONE_AND_TWO = (("adult-lr",), ("adult-lr", "bank-lr"))
AHEAD = "PIDP-SGD raises the accuracy on most datasets."


def panel(dataset: str, lead: float) -> pd.DataFrame:
    """A sweep in which PIDP-SGD is ahead of all others by `lead`."""
    epsilons, rng = (0.01, 0.1, 3.0), np.random.default_rng(0)
    rows = [
        (m, e, s, 0.7 + 0.05 * k + lead * (m == "pidp-sgd") + 1e-4 * rng.standard_normal())
        for m in FIGURE.methods
        for k, e in enumerate(epsilons)
        for s in range(5)
    ]
    table = pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "accuracy"])
    fixed = {"expected_accuracy": np.nan, "optimality_gap": 0.1, "objective": 0.5, "non_private_accuracy": 0.95}
    return table.assign(dataset=dataset, model="logistic", majority_accuracy=0.6, **fixed)


def ahead(**leads: float) -> saved.FigureVerdict:
    tables = {f"pidp-1-{name.replace('_', '-')}": panel(name, lead) for name, lead in leads.items()}
    return next(one for one in saved.judge_whole(FIGURE, tables) if one.text == AHEAD)


def test_a_sentence_about_most_datasets_is_judged_on_all_panels() -> None:
    found = ahead(adult_lr=0.05, bank_lr=0.05, kddcup99_lr=-0.05)
    assert found.verdict.outcome is Outcome.ONLY_IF, "the figure's start is not public"
    assert found.panels == ("kddcup99-lr", "adult-lr", "bank-lr"), "in the order of the figure"
    assert found.datasets == ("kddcup99_lr", "adult_lr", "bank_lr")
    assert found.verdict.because.startswith("Fails in 1 of 3, holds in 2 of 3.")
    assert ahead(adult_lr=0.05, bank_lr=-0.05, kddcup99_lr=-0.05).verdict.outcome is Outcome.FAILS
    assert ahead(adult_lr=-0.05).verdict.outcome is Outcome.CANNOT_TELL, "one dataset refutes nothing about most"
    assert saved.judge_whole(FIGURE, {"dbdp-1-adult-lr": panel("adult", 0.1)}) == []


def test_each_kind_of_verdict_is_saved_without_the_other(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    verdicts = saved.judge_whole(FIGURE, {"pidp-1-adult-lr": panel("adult", 0.05)})
    finding = next(iter(saved.load().findings.values()))
    saved.save_figures([*verdicts, replace(verdicts[0], text="gone")], path)
    saved.save_claims([finding], path)
    for _ in range(2):
        kept = saved.load(path)
        assert [(one.text, one.verdict.headline, one.panels) for one in kept.figures] == [
            (one.text, one.verdict.headline, one.panels) for one in verdicts
        ]
        assert set(kept.findings) == {finding.claim.id}
        saved.save_figures(kept.figures, path)
    assert len(verdicts) == len(FIGURE.statements)


def test_verdicts_on_more_panels_stay() -> None:
    few, many = (saved.judge_whole(FIGURE, {f"pidp-1-{name}": panel(name, 0.05) for name in names}) for names in ONE_AND_TWO)
    assert saved.merge(few, many) == saved.merge(many, few) == many


def test_the_kept_ones_are_of_figures_that_are_there() -> None:
    for one in saved.load().figures:
        figure = next(figure for figure in catalogue.FIGURES if figure.id == one.figure)
        assert set(one.panels) <= {name for name, panel in figure.panels.items() if not panel.instead}
        assert len(one.panels) == len(one.datasets) > 0
        assert bool(one.verdict.condition) == (one.verdict.outcome is Outcome.ONLY_IF)


def test_kept_numbers_give_the_verdicts_of_the_whole_table(tmp_path: Path) -> None:
    name, table = "pidp-1-adult-lr", panel("d", 0.05)
    figures.keep(name, table.assign(other="not kept"), tmp_path)
    first = figures.numbers(name, "d", tmp_path).read_bytes()
    kept = figures.kept(tmp_path)
    assert set(kept) == {name, "pidp-2-adult-lr"}, "both figures show quantities of the same runs"
    of_kept, of_all = (saved.judge_whole(FIGURE, tables) for tables in (kept, {name: table}))
    assert [one.verdict.because for one in of_kept] == [one.verdict.because for one in of_all]
    figures.keep(name, kept[name], tmp_path)
    assert figures.numbers(name, "d", tmp_path).read_bytes() == first
    assert set(kept[name]["engine"]) == {engine_version()}


REFUTED = ("pidp-sgd", "dbdp-pi", "input-perturbation")


def found(mechanism: str, epsilon: float = 1.0, delta: float = DELTA, **params: object) -> saved.Refutation | None:
    spec = dpviz.RunSpec("teaching", mechanism=mechanism, epsilon=epsilon, delta=delta, params=params)
    return saved.refutation(spec.build(), calibration_of(spec))


@pytest.mark.parametrize("mechanism", REFUTED)
def test_it_holds_at_the_audited_budget_of_the_audited_form_only(mechanism: str) -> None:
    kept = saved.refutations()[mechanism]
    assert kept.budget == Budget(CLAIMED, DELTA)
    assert found(mechanism) == kept
    for epsilon, delta in ((0.1, DELTA), (10.0, DELTA), (1.001, DELTA), (1.0, 1e-6)):
        assert found(mechanism, epsilon, delta) is None
    assert found(mechanism, c=2.0) is None, "another form was not audited"


def test_what_is_proved_or_was_not_refuted_has_none() -> None:
    refuted = set(saved.refutations())
    assert refuted == set(REFUTED)
    assert refuted <= {name for claim in list_claims().values() if claim.privacy for name in claim.mechanisms}
    for mechanism in ("dp-gd", "objective-tight", "dbdp"):
        assert found(mechanism) is None


def test_badges_say_so_where_it_holds() -> None:
    for epsilon, expected in ((1.0, "✗ refuted by audit: ε = 1"), (10.0, "✎ paper's claim: ε = 10")):
        spec = dpviz.RunSpec("teaching", mechanism="pidp-sgd", epsilon=epsilon, delta=DELTA)
        cal = calibration_of(spec)
        assert words.guarantee(cal, spec.build()).startswith(expected)
        assert words.label(cal, spec.build())[2] == ("red" if epsilon == 1.0 else words.LABELS[Status.CLAIM][2])


PAGES = ("Sensitivity", "One_model", "Accounting", "Groups", "Trade-off")


@pytest.mark.parametrize("page", mostly_long(PAGES, "Sensitivity"))
def test_pages_with_a_badge_say_so(page: str) -> None:
    for epsilon in ("1", "10"):
        shown = opened(page, mechanism="pidp-sgd", epsilon=epsilon, methods="pidp-sgd,dp-gd")
        said = text(settled(shown)) + " ".join(str(badge.value) for badge in shown.get("badge") if hasattr(badge, "value"))
        said += " ".join(table.value.to_string() for table in shown.table)
        assert ("refuted" in said) == (epsilon == "1")


def test_the_shell_says_so(shell: Shell) -> None:
    for epsilon in ("1", "10"):
        command = f"calibrate --n 1000 --d 5 --mechanism dbdp-pi --epsilon {epsilon} --delta 1e-5"
        assert ("refuted" in shell(command.split())) == (epsilon == "1")
        told = shell.json([*command.split()])["guarantee"]["refuted"]
        if epsilon == "10":
            assert told is None
        else:
            assert (told["epsilon"], told["delta"]) == (CLAIMED, DELTA)
            assert told["day"] == str(saved.load().day)
    for epsilon in ("1", "10"):
        said = shell(["calibrate", "--methods", "--dataset", "teaching", "--epsilon", epsilon])
        assert said.count("refuted by audit") == (3 if epsilon == "1" else 0)
