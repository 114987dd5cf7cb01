"""Published rates, bounds with constants, accountants for one release, and what training shows beside them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support import assert_refused

import dpviz
from dpviz.experiments.studies import excess_risk, observed
from dpviz.experiments.sweeps.curves import loglog_slope
from dpviz.mechanisms import HasTrace, ReleasesGaussians
from dpviz.models import get_model
from dpviz.papers import rates
from dpviz.papers.rate_tables import ROWS
from dpviz.privacy.accounting import account, tables
from dpviz.privacy.accounting.account import tightest
from dpviz.privacy.accounting.events import scale_noise, single_step
from dpviz.privacy.budget import Budget, Status

FACTS = rates.Facts(n=45222, d=104, epsilon=0.5, delta=1e-5, L=0.251, mu=1e-3, steps=50)
SETTING = get_model("logistic").setting(39073, 108, 1e-3)
ALL = [(table, row) for table, rows in ROWS.items() for row in rows]


def row(table: str, start: str) -> rates.Row:
    """The first row of a method, or of a mechanism."""
    return next(r for r in ROWS[table] if r.method.startswith(start) or r.mechanism == start)


def test_every_row_of_the_three_tables_is_there() -> None:
    assert {name: len(rows) for name, rows in ROWS.items()} == {"dbdp": 6, "input": 11, "pidp": 5}
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
    mechanism = dpviz.list_mechanisms()[name]().settled(SETTING, budget)
    released = mechanism.releases(SETTING)
    cal = mechanism.calibrate(SETTING, budget)
    found = tables.options(released, budget)
    assert min(abs(o.sigma / cal.noise_scale - 1) for o in found if math.isfinite(o.sigma) and o.status is Status.PROVED) < 1e-9
    assert single_step(released).sensitivity == pytest.approx(cal.sensitivity, rel=1e-12)
    event = scale_noise(released, cal.noise_scale)
    assert account.epsilon(event, tightest(event), budget.delta) <= epsilon * (1 + 1e-4)
    assert any(b.value == pytest.approx(cal.sensitivity, rel=1e-9) for b in mechanism.sensitivity_bounds(SETTING))
    if isinstance(mechanism, HasTrace):
        assert mechanism.sensitivity_trace(SETTING).value[-1].max() == pytest.approx(cal.sensitivity, rel=1e-9)


# observed


#: as many steps at every n: the rule takes more where there are more rows
FIXED = {"outpert-gd": {"steps": 200}} | {name: {"epochs": 20} for name in ("nsgd", "rsgd", "rsgd-ar")}


@pytest.mark.parametrize("name", ["output-gaussian", "outpert-gd", "nsgd", "rsgd", "rsgd-ar", "bolt-on-psgd"])
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
