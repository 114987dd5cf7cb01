"""One number of attack odds: every page, command and report shows the tightest bound that is proved, from one function."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from support import make_problem
from support_shell import Shell

import dpviz
from dpviz.auditing import audit_run
from dpviz.auditing.pairs import worst_case
from dpviz.auditing.runs import FEATURES, ROWS
from dpviz.common.random import standard_gamma_sphere
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame.pinned import compare_bounds
from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.run.setup import mechanism_of
from dpviz.experiments.studies import answers, inspected, noise_comparison
from dpviz.experiments.studies.odds import attack_of, odds_over
from dpviz.mechanisms.attack import ALONE, Attack, strongest_attack
from dpviz.models import get_model
from dpviz.privacy.accounting import distance
from dpviz.privacy.accounting.gaussian import gaussian_mu, log_gaussian_delta, total_variation
from dpviz.privacy.budget import Budget, Neighbouring, attack_accuracy
from dpviz.privacy.objective import PerturbedObjective
from dpviz.reporting.run import report_of

RUN = "--dataset teaching --seeds 1 --mechanism"
#: methods whose proof knows nothing but (epsilon, delta)
BY_BUDGET = {"cms-objective", "ldp-duchi"}


def spec_of(mechanism: str, epsilon: float = 1.0, **params: object) -> dpviz.RunSpec:
    return dpviz.RunSpec("teaching", mechanism=mechanism, seeds=1, epsilon=epsilon, params=params)


@pytest.mark.parametrize("mechanism", ["cms-objective", "renyi-filter", "objective-tight", "pidp-sgd", "dp-sgd"])
def test_every_page_and_command_shows_the_same_number(mechanism: str, shell: Shell) -> None:
    spec = spec_of(mechanism)
    attack = attack_of(spec)
    expected = None if attack is None else attack.accuracy
    result = dpviz.run(spec)
    seen: dict[str, float | None] = {}

    def take(where: str, found: Attack | None) -> None:
        seen[where] = None if found is None else found.accuracy

    take("first page", cached_runs.outcome(spec).attack)
    take("page of rows", inspected.inspect(spec).attack)
    take("accounting page", strongest_attack(spec.build(), result.setup.problem.setting, result.calibration))
    seen["trade-off axis"] = dict(odds_over(spec, [0.3, 1.0])).get(1.0)
    for command in ("run", "calibrate --accountants"):
        if command != "run" and noise_comparison.accounted_release(spec).released is None:
            continue
        told = shell.json(f"{command} {RUN} {mechanism}".split())["attack"]
        seen[f"dpviz {command}"] = None if told is None else told["accuracy"]  # type: ignore[index]
    try:
        seen["lesson"] = answers.attack_bound(spec).value / 100
    except InvalidInput:
        assert attack is None
    assert seen == dict.fromkeys(seen, pytest.approx(expected, rel=1e-12) if expected is not None else None)
    sentence = report_of(spec).sentence
    assert (f"{100 * expected:.1f}" in sentence) if expected is not None else ("%" not in sentence.rpartition(". ")[2])


@pytest.mark.parametrize("mechanism", ["cms-objective", "kst-objective", "ldp-gaussian", "dbdp"])
def test_the_audit_allows_what_is_proved_for_its_pair(mechanism: str) -> None:
    spec = spec_of(mechanism)
    result = audit_run(spec, runs=40)
    run = dpviz.resolve(spec)
    played = mechanism_of(spec, ROWS)
    pair = worst_case(played, get_model("logistic"), run.budget, n=ROWS, d=FEATURES, lam=run.lam)
    attack = strongest_attack(played, pair.first.setting, result.calibration)
    claimed = result.calibration.claimed_budget
    if attack is not None:
        assert result.allowed == attack.accuracy
    else:
        assert result.allowed == (None if claimed is None else attack_accuracy(claimed))


# the bounds themselves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
def test_only_methods_without_a_further_proof_rest_on_epsilon_and_delta_alone(mechanism: str) -> None:
    attack = attack_of(spec_of(mechanism))
    if attack is not None:
        assert (attack.basis == ALONE) == (mechanism in BY_BUDGET)
        assert attack.accuracy < attack_accuracy(attack.budget) or mechanism in BY_BUDGET


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("mechanism", ["renyi-filter", "fukuchi-input", "ldp-gaussian", "output-gaussian", "dp-gd"])
def test_a_declared_mu_bounds_the_attacker(mechanism: str, epsilon: float) -> None:
    """55.3 % at epsilon = 1, delta = 1e-5, where (epsilon, delta) alone allow 73.1 %."""
    attack = attack_of(spec_of(mechanism, epsilon))
    assert attack.accuracy == pytest.approx(norm.cdf(gaussian_mu(attack.budget) / 2), abs=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "params"),
    [
        *[(name, {}) for name in ("dp-gd", "output-gaussian", "renyi-filter", "fukuchi-input", "ldp-gaussian")],
        ("outpert-gd", {"steps": 20}),
        ("dp-gd", {"noise": "published"}),
        ("dp-gd", {"noise": "published", "c": 30.0}),
        ("outpert-gd", {"calibration": "published", "steps": 20}),
        ("outpert-gd", {"calibration": "proposition-2", "steps": 20}),
        ("dp-sgd", {"batches": "reshuffled"}),
    ],
)
def test_a_declared_mu_is_that_of_the_noise_in_use(mechanism: str, params: dict[str, object]) -> None:
    """A published form adds other noise than the budget needs: its mu follows from that noise, not from the budget."""
    spec = spec_of(mechanism, **params)
    setting = make_problem(n=200).setting
    cal = spec.build().calibrate(setting, Budget(1.0, 1e-5))
    reached = math.exp(float(log_gaussian_delta(cal.proved_budget.epsilon, cal.mu)))
    assert reached <= cal.proved_budget.delta * (1 + 1e-6), "mu-GDP proves the proved budget"
    double = spec.build().calibrate(setting, Budget(2.0, 1e-5))
    assert double.mu == pytest.approx(cal.mu * cal.noise_scale / double.noise_scale, rel=1e-9)


def test_total_variation_of_gamma_sphere_noise_is_counted_on_draws() -> None:
    draws = standard_gamma_sphere([np.random.SeedSequence(k) for k in range(20_000)], 4)[:, 0]
    counted = np.mean(draws < 0.4) - np.mean(draws < -0.4)
    assert distance.gamma_sphere_distance(0.8, 1.0, 4) == pytest.approx(counted, abs=0.015)
    assert distance.gamma_sphere_distance(0.4, 1.0, 4) < counted - 0.03, "half the distance"


def test_total_variation_from_a_profile_is_that_of_the_gaussian_and_never_below() -> None:
    for mu in (0.05, 0.3, 1.0, 3.0):
        found = distance.distance_by_profile(lambda e, mu=mu: float(log_gaussian_delta(e, mu)), 5.0)
        assert total_variation(mu) <= found <= total_variation(mu) * 1.01
    assert distance.distance_by_profile(lambda e: 0.0, 1.0) == pytest.approx(1.0)


def test_total_variation_from_a_divergence_is_above_that_of_gaussians() -> None:
    for mu in (0.05, 0.3, 1.0, 4.0):
        assert total_variation(mu) <= distance.distance_by_divergence(mu**2 / 2) <= min(1.0, 1.35 * total_variation(mu))
        assert distance.distance_by_divergence(mu**2 / 8) < total_variation(mu) or mu > 3, "half the distance"


@pytest.mark.parametrize("bound", ["two-sided", "one-sided"])
def test_objective_perturbation_is_bounded_by_its_profile_near_zero(bound: str) -> None:
    """The smallest bound of all points of the profile is below that of the budget's own point, and not below delta(0)/2."""
    facts = {"G": 1.0, "beta": 0.25, "Lam": 10.0, "relation": Neighbouring.REPLACE_ONE, "bound": bound}
    found = distance.distance_by_profile(lambda e: math.log(PerturbedObjective(**facts).delta(e, 8.0)), 1.0)  # type: ignore[arg-type]
    at_zero = PerturbedObjective(**facts).delta(0.0, 8.0)  # type: ignore[arg-type]
    assert at_zero / 2 < found <= at_zero
    assert found < math.tanh(0.5)


def test_disjoint_batches_add_up_over_passes() -> None:
    one, two = (attack_of(spec_of("song-sgd", passes=passes)) for passes in (1, 2))
    sphere = attack_of(spec_of("cms-output"))
    assert one.accuracy == pytest.approx(sphere.accuracy, rel=1e-9), "one batch holds the row"
    assert sphere.accuracy <= two.accuracy <= sphere.accuracy * 1.01, "each pass has half the budget"


# like with like ----------------------------------------------------------------------------------------------


def test_two_runs_are_compared_by_bounds_of_one_kind() -> None:
    """An exact bound against one of (epsilon, delta) alone would show 17.8 points between two runs of one budget."""
    exact, alone = attack_of(spec_of("dp-gd")), attack_of(spec_of("cms-objective"))
    assert abs(exact.accuracy - alone.accuracy) > 0.15
    assert compare_bounds(exact, alone) == "the bound on attacks is the same by (ε, δ) alone"
    stronger = attack_of(spec_of("dp-gd", epsilon=0.5))
    points = f"{100 * (exact.accuracy - stronger.accuracy):.1f}"
    assert compare_bounds(stronger, exact) == f"an attacker may guess right {points} points more often"
    assert compare_bounds(exact, stronger) == f"an attacker may guess right {points} points less often"
    assert compare_bounds(stronger, alone).endswith("points more often by (ε, δ) alone")
