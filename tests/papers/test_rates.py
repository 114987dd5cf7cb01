"""Published rates, bounds with constants, accountants for one release, and what training shows beside them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.experiments.studies import excess_risk, observed
from dpviz.experiments.sweeps.curves import loglog_slope
from dpviz.mechanisms import HasTrace, ReleasesGaussians
from dpviz.models import get_model
from dpviz.papers import rates
from dpviz.papers.rate_tables import ROWS
from dpviz.privacy import utility_bounds
from dpviz.privacy.accounting import account, curves, side_by_side
from dpviz.privacy.accounting.events import Gaussian, Mixture, Repeated, Sampled, only_step, scaled
from dpviz.privacy.accounting.gaussian import gaussian_delta
from dpviz.privacy.accounting.methods import TWO_HOP, tightest
from dpviz.privacy.budget import Budget, Status
from dpviz.privacy.sensitivity.bounds import logistic_diameter, logistic_worst_pair

FACTS = rates.Facts(n=45222, d=104, epsilon=0.5, delta=1e-5, L=0.251, mu=1e-3, steps=50)
SETTING = get_model("logistic").setting(39073, 108, 1e-3)
BUDGET = Budget(1.0, 1e-6)
ALL = [(table, row) for table, rows in ROWS.items() for row in rows]


def row(table: str, start: str) -> rates.Row:
    (found,) = [r for r in ROWS[table] if r.method.startswith(start)]
    return found


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


def test_conditions_say_why_with_numbers() -> None:
    (why,) = row("dbdp", "Abadi").broken(FACTS)
    assert f"{50 / 45222**2:.3g}" in why
    assert "0.5" in why
    assert row("dbdp", "Abadi").broken(replace(FACTS, epsilon=1e-9)) == []
    assert row("input", "Zhang").broken(FACTS) == []
    assert row("input", "Zhang").broken(replace(FACTS, epsilon=1.0))
    assert "n² = " in " ".join(row("input", "Bassily").broken(FACTS))


def test_unreadable_rows_have_no_numbers_and_say_so() -> None:
    local = row("input", "Wang et al. 2018")
    assert all(math.isnan(rates.value(getattr(local, q), FACTS)) for q in rates.QUANTITIES)
    assert any("cannot be read" in remark for remark in local.remarks)
    assert rates.evaluate(ROWS["input"], FACTS)[-1].row is local


@pytest.mark.parametrize("quantity", list(rates.QUANTITIES))
def test_rows_that_apply_come_first_and_sorted(quantity: str) -> None:
    done = [e for e in rates.evaluate(ROWS["input"], FACTS, quantity) if not math.isnan(getattr(e, quantity))]
    for group in ([e for e in done if not e.broken], [e for e in done if e.broken]):
        values = [getattr(e, quantity) for e in group]
        assert values == sorted(values)
    flags = [bool(e.broken) for e in done]
    assert flags == sorted(flags)


@pytest.mark.parametrize(("field", "bad"), [("n", 1), ("epsilon", 0.0), ("delta", 1.0), ("mu", 2.0), ("d", 0), ("L", math.nan)])
def test_facts_refuse_nonsense(field: str, bad: float) -> None:
    with pytest.raises(dpviz.InvalidInput):
        replace(FACTS, **{field: bad})


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
    assert released is not None
    cal = mechanism.calibrate(SETTING, budget)
    found = side_by_side.options(released, budget)
    assert min(abs(o.sigma / cal.noise_scale - 1) for o in found if math.isfinite(o.sigma) and o.status is Status.PROVED) < 1e-9
    assert only_step(released).sensitivity == pytest.approx(cal.sensitivity, rel=1e-12)
    event = scaled(released, cal.noise_scale)
    assert account.epsilon(event, tightest(event), budget.delta) <= epsilon * (1 + 1e-4)
    assert any(b.value == pytest.approx(cal.sensitivity, rel=1e-9) for b in mechanism.sensitivity_bounds(SETTING))
    if isinstance(mechanism, HasTrace):
        assert mechanism.sensitivity_trace(SETTING).value[-1].max() == pytest.approx(cal.sensitivity, rel=1e-9)


@pytest.mark.parametrize("params", [{"accounting": "published"}, {"accounting": "rdp-improved"}, {"accounting": "hockey-stick"}])
def test_rsgd_options_are_its_calibrations(params: dict[str, str]) -> None:
    mechanism = dpviz.list_mechanisms()["rsgd"](**params).settled(SETTING, BUDGET)  # type: ignore[arg-type]
    sigma = mechanism.calibrate(SETTING, BUDGET).noise_scale
    released = mechanism.releases(SETTING)
    assert released is not None
    assert min(abs(o.sigma / sigma - 1) for o in side_by_side.options(released, BUDGET)) < 1e-9


def test_published_vectors_of_one_release() -> None:
    single = {o.name: o for o in side_by_side.options(Gaussian(1.0), Budget(1.0, 1e-5))}
    assert single["Exact Gaussian"].sigma == pytest.approx(3.7306316348159436, rel=1e-6)
    assert single["zCDP"].sigma == pytest.approx(4.900555168628411, rel=1e-6)
    assert single["Classical Gaussian"].status is Status.CLAIM, "proved below epsilon = 1 only"


def test_dp_accounting_agrees() -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant
    from dp_accounting.rdp import rdp_privacy_accountant

    found = {o.name: o.sigma for o in side_by_side.options(Repeated(Gaussian(2.0), 30), Budget(1.3, 1e-6))}
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(found["Exact Gaussian"] / 2.0), 30)
    assert pld_privacy_accountant.PLDAccountant().compose(event).get_epsilon(1e-6) == pytest.approx(1.3, rel=2e-3)
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(found["RDP, improved conversion"] / 2.0), 30)
    orders = list(np.geomspace(1.05, 400, 3000))
    reached = rdp_privacy_accountant.RdpAccountant(orders).compose(event).get_epsilon(1e-6)
    assert reached == pytest.approx(1.3, rel=1e-4)
    # control: noise 5 % too small is seen by both referees
    weak = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(0.95 * found["Exact Gaussian"] / 2.0), 30)
    assert pld_privacy_accountant.PLDAccountant().compose(weak).get_epsilon(1e-6) > 1.3 * 1.02


def test_tradeoff_of_one_gaussian_and_of_a_mixture() -> None:
    a = np.array([1e-3, 0.1, 0.5])
    one = curves.detections(Gaussian(1.0, 2.0), a)
    for alarm, found in zip(a, one, strict=True):
        # the best bound from all (eps, delta) pairs is the exact curve
        grid = np.linspace(0, 6, 4001)
        missed = np.maximum(
            1 - gaussian_delta(grid, 0.5) - np.exp(grid) * alarm, np.exp(-grid) * (1 - gaussian_delta(grid, 0.5) - alarm)
        )
        assert 1 - missed.max() == pytest.approx(found, abs=1e-5)
    mixed = curves.detections(Mixture((0.5, 1.0), (0.5, 0.5), 2.0), a)
    assert (mixed <= one + 2e-3).all()
    assert (mixed >= curves.detections(Gaussian(0.5, 2.0), a) - 1e-9).all()


def test_rdp_of_sampled_steps_refuses_what_it_cannot() -> None:
    found = {o.name: o for o in side_by_side.options(Repeated(Sampled(Gaussian.of_rows(0.01), 0.1), 200), BUDGET)}
    assert math.isnan(found["zCDP"].sigma)
    assert "sampled" in found["zCDP"].note
    assert found["PLD, opposite pair"].status is Status.CLAIM
    z = account.noise_for(Repeated(Sampled(Gaussian.of_rows(1.0), 0.1), 200), TWO_HOP, BUDGET)
    assert found["PLD, remove and add"].sigma == pytest.approx(0.01 * z, rel=1e-12)


# observed


def test_worst_pair_attains_the_diameter() -> None:
    for r in (0.5, 2.0, 5.0, 10.0):
        p, q = logistic_worst_pair(r)
        w = np.array([r, 0.0])
        z, other = np.array([p, math.sqrt(1 - p * p)]), np.array([q, -math.sqrt(1 - q * q)])
        g, h = (-x / (1 + math.exp(w @ x)) for x in (z, other))
        assert np.linalg.norm(g - h) == pytest.approx(logistic_diameter(r), rel=1e-6)


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
    # at the same epsilon the gaps are those of a run
    (one,) = excess_risk.excess_over_epsilon(spec, [spec.epsilon])
    assert one.gap == pytest.approx(dpviz.run(spec).optimality_gap, rel=1e-9)
    with pytest.raises(dpviz.InvalidInput, match="features"):
        excess_risk.excess_over_d(spec, (3,))


def test_batches_keep_their_share() -> None:
    rsgd = dpviz.list_mechanisms()["rsgd"]()
    setting = get_model("logistic").setting(10_000, 5, 1e-3)
    more = rsgd.settled(setting, BUDGET, 20_000)
    assert more.batch_size == 2 * rsgd.automatic("batch_size", setting)  # type: ignore[attr-defined]
    assert more.step_size == rsgd.automatic("step_size", setting, BUDGET)  # type: ignore[attr-defined]
    gd = dpviz.list_mechanisms()["dp-gd"]()
    assert gd.settled(setting, BUDGET, 20) == gd.settled(setting, BUDGET)


def test_slope_of_a_line_and_of_nothing() -> None:
    assert loglog_slope([1, 10, 100], [5, 0.5, 0.05]) == pytest.approx((-1, math.log(5)))
    assert math.isnan(loglog_slope([1, 1], [2, 3])[0])
    assert math.isnan(loglog_slope([1, 2], [0.0, -1])[0])


def row_of(table: str, mechanism: str) -> rates.Row:
    return next(row for row in ROWS[table] if row.mechanism == mechanism)


def test_the_last_population_rate_is_not_what_theorem_3_gives_at_the_stated_tau() -> None:
    """(tau + 1/tau)e + tau/n^2 + 1/(tau n), e = km/(n^3 eps^2), as Remark 4 combines Theorem 3 with E[L*] = 1/n."""
    n, km, epsilon = 1e8, 1e4, 0.5
    tau = n * epsilon / math.sqrt(km)
    excess = km / (n**3 * epsilon**2)
    given = (tau + 1 / tau) * excess + tau / n**2 + 1 / (tau * n)
    said = 2 * math.sqrt(km) / (n**2 * epsilon) + epsilon / (n * math.sqrt(km))
    assert given == pytest.approx(said, rel=1e-6)
    printed = km**1.5 / (n**2 * epsilon**3) + epsilon / math.sqrt(km * n)
    assert printed > 1.1 * given
    assert any("√(km)/(n²ε) + ε/(n√(km))" in remark for remark in row_of("pidp", "pidp-sgd").remarks)


def test_conditions_belong_to_the_theorems_that_state_them() -> None:
    """DBDP's Theorem 2 has epsilon < c1 T/n^2; its Theorem 1, like those of PIDP, states no range of epsilon."""
    facts = rates.Facts(n=10_000, d=20, epsilon=1e-3, delta=1e-8, steps=50)
    assert not any("c₁q²T" in reason for reason in row_of("dbdp", "dbdp").broken(facts)), "50/10,000 is above 1e-3"
    assert any("c₁T/n²" in reason for reason in row_of("dbdp", "dbdp-pi").broken(facts))
    for table, mechanism, stated in (("dbdp", "dbdp", False), ("dbdp", "dbdp-pi", True), ("pidp", "pidp-sgd", False)):
        left_out = any("for every ε > 0" in remark for remark in row_of(table, mechanism).remarks)
        assert left_out is not stated
    excess = row_of("input", "input-perturbation").excess
    assert "perturbed objective" in excess.unit


def test_the_bound_of_noisy_descent_needs_curvature_and_a_step_that_contracts() -> None:
    fine = {"start": 1.0, "steps": 10, "scale": 0.1, "d": 3, "mu": 0.1, "L": 0.5}
    assert utility_bounds.descent_excess(**fine) < 1.0
    assert utility_bounds.descent_excess(**(fine | {"mu": 0.5})) == pytest.approx(0.1**2 * 3 / (2 * 0.5)), "a ball: one step does"
    for field, change in (("mu", {"mu": 0.0}), ("mu", {"mu": 0.6}), ("step", {"step": 4.0}), ("step", {"step": 5.0})):
        with pytest.raises(dpviz.InvalidInput, match=field):
            utility_bounds.descent_excess(**(fine | change))
