"""The game: correct mechanisms pass, what is wrong is caught; which attacker is chosen, and what its bounds rest on."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from doubles import QuietlyWeakNoise, WeakNoise
from scipy import stats
from support import mostly_long
from support_game import BUDGET, SVM, SVM_PAIR, gaussian_game, quiet

import dpviz
from dpviz.auditing import EXCEEDED, audit, game, watch, worst_case
from dpviz.auditing.game import _both_sides, declares_gaussian, judge, prepare
from dpviz.auditing.pairs import make
from dpviz.auditing.result import BY_BOUND, BY_ERRORS, BY_NOISE, NO_VIOLATION
from dpviz.auditing.scores import Distributions, fitters
from dpviz.mechanisms import Fit, Mechanism, OutputNoise, Training
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.privacy.audit_bounds import Counts, epsilon_lower_bound
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE, GAUSSIAN


@pytest.mark.parametrize("double", [WeakNoise, QuietlyWeakNoise])
@pytest.mark.parametrize(("share", "epsilon"), [(0.95, 1.0), pytest.param(0.8, 4.0, marks=pytest.mark.long)])
def test_noise_that_is_too_small_is_caught(double: type[Mechanism], share: float, epsilon: float) -> None:
    """In every game, also where the declared law hides it: the noise is measured, not believed."""
    budget = Budget(epsilon, 1e-5)
    for seed in range(3):
        result = audit(*quiet(double(share=share), budget), budget, runs=5000, seed=seed, confidence=0.99)  # type: ignore[call-arg]
        assert result.verdict == EXCEEDED
        assert result.evidence_against(budget) in (BY_NOISE, BY_BOUND)
        if share == 0.8:  # a lie of 5 % about the scale is measured, but is too small to show in the shape of the law
            assert bool(result.warnings) == (double is QuietlyWeakNoise)


@pytest.mark.parametrize(("double", "warned"), [(WeakNoise, False), (QuietlyWeakNoise, True)])
def test_a_law_that_the_outputs_contradict_is_named_in_the_result(double: type[Mechanism], warned: bool) -> None:
    result = audit(*quiet(double(share=0.8), BUDGET), BUDGET, runs=5000, seed=0)  # type: ignore[call-arg]
    assert bool(result.warnings) is warned
    assert (result.score == "likelihood") is not warned, "no score by a law that is contradicted"


def test_noise_that_is_not_gaussian_is_not_measured_as_if_it_were() -> None:
    """Half of the outputs without noise: the lengths do not fit one Gaussian, and errors are counted instead."""

    @dataclass(frozen=True)
    class Half(OutputGaussian):
        def fit(self, training: Training) -> Fit:
            made = super().fit(training)
            made.theta[:, ::2] = training.problem.optimum
            return made

    result = audit(*quiet(Half(), BUDGET), BUDGET, runs=1000, seed=0)
    assert result.noise is None
    assert result.evidence_against(BUDGET) == BY_ERRORS


def test_pure_epsilon_is_nearly_reached_and_has_no_gaussian_bound() -> None:
    result = audit(*quiet(CMSOutput(), BUDGET), BUDGET, runs=10_000, seed=0)
    assert (result.gaussian_epsilon_lower, result.p_value(BUDGET), result.measured_epsilon_lower) == (None, None, None)
    assert 0.6 < result.epsilon_lower <= 1


@pytest.mark.parametrize("score", mostly_long(["gradient", "lda", "qda"], "lda"))
def test_a_learning_attacker_needs_no_law(score: str) -> None:
    budget = Budget(8.0, 1e-5)
    result = audit(*quiet(DPGD(steps=3), budget), budget, runs=3000, seed=1, score=score)
    assert result.score == score
    assert 1.5 < result.epsilon_lower <= 8
    assert result.counts.trials == 1500


def test_same_seed_same_result_and_the_sides_share_no_randomness() -> None:
    first = audit(*quiet(DPGD(steps=2), BUDGET), BUDGET, runs=200, seed=5)
    second = audit(*quiet(DPGD(steps=2), BUDGET), BUDGET, runs=200, seed=5)
    other = audit(*quiet(DPGD(steps=2), BUDGET), BUDGET, runs=200, seed=6)
    assert first.counts == second.counts
    np.testing.assert_array_equal(first.cloud.to_numpy(), second.cloud.to_numpy())
    assert not np.array_equal(first.cloud.to_numpy(), other.cloud.to_numpy())
    points = first.cloud.groupby("side")[["u", "v"]].apply(lambda g: g.to_numpy())
    assert abs(np.corrcoef(points[0][:, 1], points[1][:, 1])[0, 1]) < 0.35


def test_watching_ends_where_the_audit_ends() -> None:
    budget = Budget(2.0, 1e-5)
    looks = list(watch(prepare(*quiet(OutputGaussian(), budget), budget, runs=3000, seed=3), looks=3))
    assert [look.runs for look in looks] == [1000, 2000, 3000]
    whole = audit(*quiet(OutputGaussian(), budget), budget, runs=3000, seed=3)
    assert (looks[-1].counts, looks[-1].epsilon_lower) == (whole.counts, whole.epsilon_lower)
    assert {"side", "u", "v", "score"} <= set(whole.cloud)
    assert len(whole.cloud) == 2000


def test_iterates_show_what_the_last_model_hides() -> None:
    """Steps of which the first has no noise: the released model has the noise of the others, the first iterate has none."""

    class Bare(DPGD):
        def fit(self, training: Training) -> Fit:
            quiet = dataclasses.replace(training, calibrations=[c.noiseless() for c in training.calibrations])
            return super().fit(quiet if self.steps == 1 else training)

    budget, pair = Budget(1.0, 1e-5), make("quiet", SVM, 20, 2, 0.2)
    mechanism = Bare(steps=4, step_size=1.0)
    assert audit(mechanism, pair.first, pair.second, budget, runs=200, iterates=(1,)).verdict == EXCEEDED
    for score in ("auto", "steps"):
        honest = audit(DPGD(steps=4, step_size=1.0), pair.first, pair.second, budget, runs=200, score=score, iterates=(1,))
        assert honest.verdict == NO_VIOLATION
        assert score == "auto" or honest.score.startswith("steps(")


# the others are trained run by run, which takes long: `dpviz audit` does it for one
@pytest.mark.parametrize("name", mostly_long([k for k, c in dpviz.list_mechanisms().items() if c.family == "output"], "rsgd-ar"))
def test_no_output_mechanism_exceeds_what_is_proved(name: str) -> None:
    mechanism, budget = dpviz.list_mechanisms()[name](), Budget(2.0, 1e-5)
    pair = worst_case(mechanism, SVM, budget, n=60, d=2, lam=0.1)
    result = audit(mechanism, pair.first, pair.second, budget, runs=200, seed=1, confidence=0.999)
    assert not result.exceeds(result.calibration.proved_budget)


def test_two_attackers_share_the_error_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attackers at 5 % each would accuse a mechanism that is right in more than 5 % of audits."""
    mechanism, first, second = quiet(OutputGaussian(), BUDGET)
    played = prepare(mechanism, first, second, BUDGET, 40, 0, "auto", 0.9, ())  # type: ignore[arg-type]
    outputs, known = _both_sides(played, range(40), lambda done: None)
    assert known is not None
    half = dataclasses.replace(played, confidence=0.95)  # the other half is for the Gaussian test
    exact, learned = game._exact(half, known, *outputs), game._learned(half, *outputs, game.LEARNED_SHARE)
    assert (1 - exact.level) + (1 - learned.level) == pytest.approx(0.05)
    assert round(judge(played, *outputs, known).counts_confidence, 9) in (round(exact.level, 9), round(learned.level, 9))
    assert judge(dataclasses.replace(played, score="lda"), *outputs, known).counts_confidence == pytest.approx(0.95)
    shares: list[float] = []
    monkeypatch.setattr(game, "_learned", lambda *given: (shares.append(given[-1]), learned)[1])
    judge(played, *outputs, known)
    judge(played, *outputs, None)
    assert shares == [game.LEARNED_SHARE, 1.0], "alone, the learning attacker has all of it"


def test_the_attacker_with_the_larger_bound_at_its_own_confidence_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learning one has less of the error probability: its bound would be the larger one at the other's."""
    mechanism, first, second = quiet(OutputGaussian(), BUDGET)
    played = prepare(mechanism, first, second, BUDGET, 400, 0, "auto", 0.95, ())  # type: ignore[arg-type]
    outputs, known = _both_sides(played, range(40), lambda done: None)
    assert known is not None
    exact, learned = game._exact(played, known, *outputs), game._learned(played, *outputs, game.LEARNED_SHARE)
    exact = dataclasses.replace(exact, counts=Counts(100, 100, 400))
    learned = dataclasses.replace(learned, counts=Counts(97, 97, 400))
    monkeypatch.setattr(game, "_exact", lambda *given: exact)
    monkeypatch.setattr(game, "_learned", lambda *given: learned)
    assert learned.counts.epsilon_lower_bound(1e-5, exact.level) > exact.counts.epsilon_lower_bound(1e-5, exact.level) > 0
    assert judge(played, *outputs, known).score == "likelihood"
    learned = dataclasses.replace(learned, counts=Counts(60, 60, 400))
    assert judge(played, *outputs, known).score == learned.name


def test_the_cut_half_way_is_fixed_before_the_game_also_where_a_learning_attacker_wins() -> None:
    """The Gaussian test and the share of correct guesses count errors of the exact attacker, whichever has the larger bound.

    The noise here comes from a seed of six bits and repeats, which only the learning attacker sees. Its errors half-way would
    be those of the better of two attackers, chosen by the runs that are counted.
    """
    n = 400
    game, known, sigma, centres = gaussian_game(n)
    rng = np.random.default_rng(2)
    outputs = [c + sigma * rng.standard_normal((64, 2))[rng.integers(64, size=n)] for c in centres]
    assert known.contradiction(*outputs) == ""
    guesses = [known.log_ratio(side) > 0.0 for side in outputs]
    wrong = guesses[0].sum(), (~guesses[1]).sum()
    without_line = dataclasses.replace(game, line=None)
    for played, distributions in ((game, known), (without_line, known), (game, None)):
        result = judge(played, *outputs, distributions)
        assert result.score == "repeat", "the control: the learning attacker has the larger bound"
        assert (result.middle.false_positives, result.middle.false_negatives) == wrong
        assert result.middle.trials == n
        assert result.counts.false_positives + result.counts.false_negatives < 0.1 * n < 0.5 * wrong[0]


@pytest.mark.parametrize("name", ["lda", "qda"])
def test_where_the_origin_lies_does_not_matter_to_a_learning_attacker(name: str) -> None:
    """Spread is measured around each side's own mean: outputs far from zero are distinguished as well as others."""
    rng, far = np.random.default_rng(4), np.array([30.0, -20.0, 10.0])
    sides = [mean + rng.standard_normal((200, 3)) * [1.0, 2.0, 0.5] for mean in (np.zeros(3), np.array([0.5, 0.2, 0.1]))]
    fit = fitters(SVM_PAIR.first, SVM_PAIR.second, 0, 1)[name]
    here, there = fit(*sides), fit(*(side + far for side in sides))
    for side in sides:
        np.testing.assert_allclose(np.diff(there(side + far)), np.diff(here(side)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_the_cut_of_two_gaussians_promises_the_largest_bound(mu: float) -> None:
    sides = [OutputNoise(np.array([0.0, at]), np.array([2.0]), GAUSSIAN) for at in (0.0, 2.0 * mu)]
    trials, delta, confidence = 2000, 1e-5, 0.95

    def promised(cut: np.ndarray) -> np.ndarray:
        errors = stats.norm.sf(cut / mu + mu / 2), stats.norm.cdf(cut / mu - mu / 2)
        return np.asarray(epsilon_lower_bound(errors[0] * trials, errors[1] * trials, trials, delta, confidence))

    cut = Distributions(*sides).threshold(trials=trials, delta=delta, confidence=confidence, seed=0)
    best = promised(mu * np.linspace(-6, 6, 20_001)).max()
    assert promised(np.array([cut]))[0] == pytest.approx(best, rel=1e-3)
    assert promised(np.array([0.0]))[0] < 0.99 * best, "the mid-point is worse"
    few = Distributions(*sides).threshold(trials=2, delta=delta, confidence=confidence, seed=0)
    assert few == 0.0, "no cut of two runs promises anything: the one half way between both sides"


@pytest.mark.parametrize("scales", [(1.5, 1.5), (1.5, 2.0)])
def test_the_ratio_is_that_of_the_declared_densities(scales: tuple[float, float]) -> None:
    at = np.linspace(-7, 9, 33)
    laws = {GAUSSIAN: stats.norm, GAMMA_SPHERE: stats.laplace}  # in one dimension
    for family, law in laws.items():
        sides = [OutputNoise(np.array([c]), np.array([s]), family) for c, s in zip((0.0, 2.0), scales, strict=True)]
        expected = law.logpdf(at, 2.0, scales[1]) - law.logpdf(at, 0.0, scales[0])
        np.testing.assert_allclose(Distributions(*sides).log_ratio(at[:, None]), expected, atol=1e-12)


def test_noise_is_measured_around_two_fixed_centres_of_one_scale_and_nowhere_else() -> None:
    rng, at = np.random.default_rng(3), (np.zeros(3), np.array([3.0, 0.0, 4.0]))
    first, second = (centre + 2.0 * rng.standard_normal((2000, 3)) for centre in at)
    sides = [OutputNoise(centre, np.array([1.0]), GAUSSIAN) for centre in at]
    found = Distributions(*sides).residuals(first, second)
    assert found.distance == 5.0
    assert (found.squares / found.freedom) ** 0.5 == pytest.approx(2.0, rel=0.03), "what is drawn and not what is declared"
    for other in (
        OutputNoise(np.tile(at[1], (2000, 1)), np.array([1.0]), GAUSSIAN),
        OutputNoise(at[1], np.array([1.1]), GAUSSIAN),
        OutputNoise(at[1], np.array([1.0]), GAMMA_SPHERE),
    ):
        assert Distributions(sides[0], other).residuals(first, second) is None
        assert Distributions(other, sides[0]).residuals(second, first) is None


def test_a_gaussian_guarantee_is_one_whose_mu_the_budget_allows() -> None:
    cal = OutputGaussian().calibrate(SVM.setting(100, 3, 0.1), Budget(1.0, 1e-5))
    assert declares_gaussian(cal)
    for change in ({"mu": 1.01 * cal.mu}, {"mu": None}, {"noise_family": GAMMA_SPHERE}):
        assert not declares_gaussian(dataclasses.replace(cal, **change))


def test_outputs_that_are_not_finite_are_no_evidence() -> None:
    @dataclass(frozen=True)
    class Overflowing(DPGD):
        def fit(self, training: Training) -> Fit:
            made = super().fit(training)
            made.theta[:, 0] = np.inf
            return made

    with pytest.raises(FloatingPointError):
        audit(*quiet(Overflowing(steps=2), Budget(1.0, 1e-5)), Budget(1.0, 1e-5), runs=40)
