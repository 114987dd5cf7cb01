"""Committed verdicts: of this version and of what was audited; published rates, and bounds with constants."""

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import assert_refused, mostly_long
from support_pages import opened, settled, text
from support_shell import Shell

import dpviz
from benchmarks import figures
from dpviz.cli.main import main
from dpviz.common.version import engine_version
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.studies import excess_risk, observed
from dpviz.experiments.sweeps.curves import loglog_slope
from dpviz.mechanisms import HasTrace, ReleasesGaussians
from dpviz.models import get_model
from dpviz.papers import rates, saved
from dpviz.papers.claims import Finding, Outcome, Picture, Verdict, check, list_claims
from dpviz.papers.claims.audits import CLAIMED, DELTA
from dpviz.papers.figures import catalogue
from dpviz.papers.rate_tables import ROWS
from dpviz.privacy.accounting import account, tables
from dpviz.privacy.accounting.events import scale_noise, single_step
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
        "because ε",
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
    assert "because ε" in path.read_text("utf-8"), "a person reads what changed"
    kept = saved.load(path)
    back = kept.findings[claim.id]
    assert kept.version == saved.version()
    assert kept.day == date(2026, 1, 2)
    assert (back.verdict.outcome, back.verdict.condition) == (Outcome.ONLY_IF, "it rains")
    assert (back.verdict.numbers, back.verdict.picture) == (verdict.numbers, verdict.picture)
    assert (back.command, back.engine) == (f"dpviz list claims --test {claim.id}", "engine")
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
    assert ahead(adult_lr=-0.05).verdict.outcome is Outcome.UNDECIDED, "one dataset refutes nothing about most"
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


@pytest.mark.parametrize("page", mostly_long(PAGES))
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
        said = shell(["calibrate", "--methods", "--dataset", "teaching", "--epsilon", epsilon])
        assert said.count("refuted by audit") == (3 if epsilon == "1" else 0)


FACTS = rates.Facts(n=45222, d=104, epsilon=0.5, delta=1e-5, L=0.251, mu=1e-3, steps=50)
SETTING = get_model("logistic").setting(39073, 108, 1e-3)
ALL = [(table, row) for table, rows in ROWS.items() for row in rows]


def row(table: str, start: str) -> rates.Row:
    """The first row of a method, or of a mechanism."""
    return next(r for r in ROWS[table] if r.method.startswith(start) or r.mechanism == start)


def test_rows_of_the_three_tables_are_about_known_mechanisms() -> None:
    known = {r.mechanism for _, r in ALL} - {""}
    assert known <= set(dpviz.list_mechanisms()) | {"cms-objective", "kst-objective"}


@pytest.mark.parametrize(
    ("table", "method", "quantity", "expected"),
    [
        # written out by hand with n = 45222, p = 104, eps = .5, delta = 1e-5, L = .251, mu = 1e-3, T = 50
        ("dbdp", "Abadi", "noise", 50 * 11.512925464970229 / (45222 * 0.5) ** 2),
        ("dbdp", "Wu", "excess", (1 + math.log(45222)) / 45222 + 104 / (45222 * 0.5)),
        ("dbdp", "Wang et al. 2019", "excess", math.sqrt(104 * 11.512925464970229) / (45222 * 0.5)),
        ("dbdp", "Song", "noise", 1 / 0.5),
        ("dbdp", "Wu", "noise", math.log(1.25e5) / (45222 * 0.5) ** 2),
        ("dbdp", "Wang et al. 2019", "noise", 50 * (11.512925464970229 + 0.5) / (45222 * 0.5) ** 2),
        ("dbdp", "DBDP-ERM, performance", "noise", 50 * 11.512925464970229 / (45222 * 0.5) ** 2),
        ("dbdp", "DBDP-ERM, performance", "excess", 104 * 11.512925464970229 * math.log(45222) / (45222 * 0.5) ** 2),
        ("input", "Kifer", "noise", (0.5 + math.log(4e10)) / 0.25),
        ("input", "Bassily", "excess", 104 * math.log(45222 / 1e-5) ** 2 * 11.512925464970229 / (45222 * 1e-3 * 0.25)),
        ("input", "Fukuchi", "noise", (math.log(16e5) + 0.5) / (45222 * 0.25)),
        ("input", "Fukuchi", "excess", 104 * (math.log(16e5) + 0.5) / (0.251 * 45222 * 0.5)),
        ("input", "Bassily", "noise", 45222**2 * math.log(45222 / 1e-5) * 11.512925464970229 / 0.25),
        ("input", "Zhang", "noise", 252**2 * math.log(2e5) / (45222 * 0.251 * 0.5) ** 2),
        ("input", "Zhang", "excess", 0.251 * 104 * 11.512925464970229 / (45222 * 0.5 * 1e-3) ** 2),
        ("input", "Wang et al. 2017, DP-SVRG", "noise", 50 * 251 * 11.512925464970229 / (45222 * 0.5) ** 2),
        ("input", "Chaudhuri et al. 2011, output", "noise", 45222 * 1e-3 * 0.5),
        ("input", "Duchi", "excess", 104 / (0.5 * math.sqrt(45222))),
        ("input", "Input perturbation", "noise", 50 * 11.512925464970229 / (45222 * 45221 * math.sqrt(1e-3) * 0.25)),
        ("pidp", "Feldman et al. 2020, strongly", "population", 104 / (45222 * 0.5) ** 2 + 1 / 45222),
        ("pidp", "Bassily", "population", math.sqrt(104) / (45222 * 0.5) + 45222**-0.5),
        ("pidp", "DP-SGD", "population", math.sqrt(104) / (45222**1.5 * 0.5) + 104**1.5 / (45222**2.5 * 0.125)),
        ("pidp", "PIDP", "population", 4522 * 104 / (45222**2.5 * 0.25) + 45222**-1.5),
        ("pidp", "PIDP", "excess", 4522 / 45222 * 104 * 11.512925464970229 * math.log(45222) / (45222 * 0.5) ** 2),
    ],
)
def test_rates_are_the_printed_formulas(table: str, method: str, quantity: str, expected: float) -> None:
    assert rates.value(getattr(row(table, method), quantity), FACTS) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("method", "epsilon", "expected"),
    [("DP-SGD", 0.01, 104 / 452.22**2 + 1 / 45222), ("PIDP", 0.1, 4522 * 104 / (45222**3 * 0.01) + 1 / 45222)],
)
def test_at_a_small_epsilon_another_term_is_the_smallest(method: str, epsilon: float, expected: float) -> None:
    assert rates.value(row("pidp", method).population, replace(FACTS, epsilon=epsilon)) == pytest.approx(expected, rel=1e-12)


# accountants


def accounted() -> list[str]:
    made = {name: cls() for name, cls in dpviz.list_mechanisms().items() if cls.refusal(SETTING) is None}
    return [
        n for n, mechanism in made.items() if isinstance(mechanism, ReleasesGaussians) and mechanism.releases(SETTING) is not None
    ]


def test_all_methods_with_gaussian_noise_of_one_kind_are_accounted_for() -> None:
    assert {"output-gaussian", "nsgd", "rsgd", "rsgd-ar", "bolt-on-psgd", "outpert-gd", "dp-gd", "dp-sgd"} <= set(accounted())


@pytest.mark.parametrize("name", accounted())
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_noise_in_use_is_one_of_the_options(name: str, epsilon: float) -> None:
    budget = Budget(epsilon, 1e-6)
    mechanism = dpviz.list_mechanisms()[name]().settle(SETTING, budget)
    released = mechanism.releases(SETTING)
    cal = mechanism.calibrate(SETTING, budget)
    found = tables.options(released, budget)
    assert min(abs(o.sigma / cal.noise_scale - 1) for o in found if math.isfinite(o.sigma) and o.status is Status.PROVED) < 1e-9
    assert single_step(released).sensitivity == pytest.approx(cal.sensitivity, rel=1e-12)
    event = scale_noise(released, cal.noise_scale)
    assert account.epsilon(event, account.tightest(event), budget.delta) <= epsilon * (1 + 1e-4)
    assert any(b.value == pytest.approx(cal.sensitivity, rel=1e-9) for b in mechanism.sensitivity_bounds(SETTING))
    if isinstance(mechanism, HasTrace):
        assert mechanism.sensitivity_trace(SETTING).value[-1].max() == pytest.approx(cal.sensitivity, rel=1e-9)


# observed


#: as many steps at every n: the rule takes more where there are more rows
FIXED = {"outpert-gd": {"steps": 200}} | {name: {"epochs": 20} for name in ("nsgd", "rsgd", "rsgd-ar")}


@pytest.mark.parametrize(
    "name", mostly_long(["output-gaussian", "outpert-gd", "nsgd", "rsgd", "rsgd-ar", "bolt-on-psgd"], "output-gaussian", "nsgd")
)
def test_observed_sensitivity_of_output_methods_falls_as_one_over_n(name: str) -> None:
    spec = dpviz.RunSpec(dataset="census-4000", mechanism=name, lam=1e-2, params=dict(FIXED.get(name, {})))
    found = observed.sensitivity_over_n(spec, (500, 1000, 2000, 4000), 3)
    slope, _ = loglog_slope([n for n, _ in found], [m.largest() for _, m in found])
    assert slope == pytest.approx(-1, abs=0.05)
    theory, _ = loglog_slope([n for n, _ in found], [m.bound for _, m in found])
    assert theory == pytest.approx(-1, abs=0.02)


def test_excess_risk_of_descent_falls_as_n_squared_where_noise_decides() -> None:
    spec = dpviz.RunSpec(dataset="census-4000", mechanism="dp-gd", lam=0.05, params={"steps": 100, "clip_norm": 1.0}, seeds=20)
    found = excess_risk.excess_over_n(spec, (1000, 4000, 16000))
    slope, _ = loglog_slope([e.n for e in found], [e.mean for e in found])
    assert slope == pytest.approx(-2, abs=0.05)
    for e in found:
        theory = spec.build().excess_theory(get_model("logistic").setting(e.n, e.d, 0.05), e.noise_scale, e.start, e.eigenvalues)
        assert e.mean <= theory["bound"]
        assert e.mean == pytest.approx(theory["near the minimum"], rel=0.25)
    # control: where the start is not forgotten the slope is not -2
    short = excess_risk.excess_over_n(replace(spec, lam=1e-3, params={"steps": 20}), (1000, 16000))
    assert loglog_slope([e.n for e in short], [e.mean for e in short])[0] > -1


def test_excess_risk_over_dimension_and_epsilon() -> None:
    spec = dpviz.RunSpec(dataset="census-2000", mechanism="dp-gd", lam=0.05, params={"steps": 100, "clip_norm": 1.0}, seeds=20)
    wide = excess_risk.excess_over_d(spec, (27, 108, 432))
    assert loglog_slope([e.d for e in wide], [e.mean for e in wide])[0] == pytest.approx(1, abs=0.1)
    assert all(np.allclose(e.start, wide[0].start) for e in wide), "the data stays the same"
    assert_refused(excess_risk.excess_over_d, spec, (3,), match="features")


@pytest.mark.parametrize("mechanism", ["objective-tight", "output-gaussian", "dp-gd"])
def test_excess_risk_and_its_formulas_have_the_regularisation_of_each_budget(mechanism: str) -> None:
    spec = dpviz.RunSpec("breast-cancer", mechanism=mechanism, seeds=3)
    budgets = (0.1, 1.0, 10.0)
    runs = [dpviz.run(replace(spec, epsilon=epsilon)) for epsilon in budgets]
    for here in (spec, replace(spec, epsilon=0.1)):
        found = excess_risk.excess_over_epsilon(here, budgets)
        for one, run, formula in zip(found, runs, excess_risk.theory(here, found), strict=True):
            assert one.gap == pytest.approx(run.optimality_gap, rel=1e-6, abs=1e-12)
            assert one.lam == run.setup.problem.lam
            assert formula == excess_risk.theory(run.spec, [one])[0]
            assert not formula or one.mean <= formula["bound"], "a bound is one at each budget"
    assert len({one.lam for one in found}) == (1 if mechanism == "dp-gd" else 3), "two of them have a rule for each budget"


def test_conditions_belong_to_the_theorems_that_state_them() -> None:
    """DBDP's Theorem 2 has epsilon < c1 T/n^2; its Theorem 1, like those of PIDP, states no range of epsilon."""
    facts = rates.Facts(n=10_000, d=20, epsilon=1e-3, delta=1e-8, steps=50)
    assert not any("c₁q²T" in reason for reason in row("dbdp", "dbdp").broken(facts)), "50/10,000 is above 1e-3"
    assert any("c₁T/n²" in reason for reason in row("dbdp", "dbdp-pi").broken(facts))
    for table, mechanism, stated in (("dbdp", "dbdp", False), ("dbdp", "dbdp-pi", True), ("pidp", "pidp-sgd", False)):
        left_out = any("for every ε > 0" in remark for remark in row(table, mechanism).remarks)
        assert left_out is not stated
    excess = row("input", "input-perturbation").excess
    assert "perturbed objective" in excess.unit


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("quantity", rates.QUANTITIES)
def test_rows_that_apply_stand_first_in_rising_order(table: str, quantity: str) -> None:
    ordered = rates.evaluate(ROWS[table], replace(FACTS, epsilon=0.02), quantity)
    numbers = [getattr(one, quantity) for one in ordered]
    places = [(math.isnan(number), bool(one.broken)) for number, one in zip(numbers, ordered, strict=True)]
    assert places == sorted(places)
    for place in set(places):
        group = [number for number, here in zip(numbers, places, strict=True) if here == place and not here[0]]
        assert group == sorted(group)
    assert {one.row for one in ordered} == set(ROWS[table])
