"""The game: correct mechanisms pass, what is wrong is caught, and results repeat."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from doubles import QuietlyWeakNoise, WeakNoise, scaled
from scipy import stats
from support import make_problem, mostly_long

import dpviz
from dpviz.auditing import (
    EXCEEDED,
    NO_CLAIM,
    PAIRS,
    audit,
    audit_pairs,
    battery,
    judging,
    label_flip,
    most_influential,
    replace_by,
    watch,
    without,
    worst_case,
)
from dpviz.auditing.game import _both_sides, _prepare
from dpviz.auditing.judging import Game, declares_gaussian, judge
from dpviz.auditing.pairs import differing_rows, make
from dpviz.auditing.result import BY_BOUND, BY_ERRORS, BY_NOISE, NO_VIOLATION
from dpviz.auditing.scores import Distributions, fitters
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Fit, Mechanism, OutputNoise, Training
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.mechanisms.reference.non_private import NonPrivate
from dpviz.models import get_model
from dpviz.privacy.audit_bounds import Counts, epsilon_lower_bound
from dpviz.privacy.budget import Budget

SVM = get_model("svm")
BUDGET = Budget(1.0, 1e-5)
SVM_PAIR = make("quiet", SVM, 20, 3, 0.2)


def quiet(mechanism: Mechanism, budget: Budget, n: int = 20, d: int = 2, lam: float = 0.2) -> tuple[Mechanism, object, object]:
    pair = make("quiet", SVM, n, d, lam)
    return mechanism, pair.first, pair.second


@pytest.mark.parametrize("double", [WeakNoise, QuietlyWeakNoise])
@pytest.mark.parametrize("share", mostly_long([0.8, 0.95], 0.95))
@pytest.mark.parametrize("epsilon", mostly_long([0.5, 1.0, 2.0, 4.0], 1.0))
def test_noise_that_is_too_small_is_caught(double: type[Mechanism], share: float, epsilon: float) -> None:
    """In every game, also where the declared law hides it: the noise is measured, not believed."""
    budget = Budget(epsilon, 1e-5)
    for seed in range(8):
        result = audit(*quiet(double(share=share), budget), budget, runs=5000, seed=seed, confidence=0.99)  # type: ignore[call-arg]
        assert result.verdict == EXCEEDED
        assert result.against(budget) in (BY_NOISE, BY_BOUND)
        if share == 0.8:  # a lie of 5 % about the scale is measured, but is too small to show in the shape of the law
            assert bool(result.warnings) == (double is QuietlyWeakNoise)


@pytest.mark.parametrize(("double", "warned"), [(WeakNoise, False), (QuietlyWeakNoise, True)])
def test_a_law_that_the_outputs_contradict_is_named_in_the_result(double: type[Mechanism], warned: bool) -> None:
    result = audit(*quiet(double(share=0.8), BUDGET), BUDGET, runs=5000, seed=0)  # type: ignore[call-arg]
    assert bool(result.warnings) is warned
    assert (result.score == "likelihood") is not warned, "no score by a law that is contradicted"


@pytest.mark.long
def test_noise_that_suffices_is_not_accused_at_the_same_size() -> None:
    budget = Budget(0.5, 1e-5)
    results = [audit(*quiet(OutputGaussian(), budget), budget, runs=5000, seed=k, confidence=0.99) for k in range(20)]
    assert sum(r.verdict == EXCEEDED for r in results) <= 2
    lower = np.array([r.measured_epsilon_lower for r in results])
    assert ((lower > 0.48) & (lower < 0.51)).all()


@pytest.mark.long
def test_without_a_law_four_fifths_are_caught_as_often_as_counted_errors_can() -> None:
    """No law is declared for gradient descent: the power is that of the count, 0.84 at 1 and above 0.99 from 2 on."""

    @dataclass(frozen=True)
    class Weak(DPGD):
        def fit(self, training: Training) -> Fit:
            return super().fit(scaled(training, 0.8))

    budget = Budget(2.0, 1e-5)
    honest, weak = (
        [audit(*quiet(cls(steps=2, step_size=0.1), budget), budget, runs=5000, seed=k) for k in range(5)] for cls in (DPGD, Weak)
    )
    assert {r.against(budget) for r in weak} == {BY_ERRORS}
    assert {r.middle.trials for r in weak} == {5000}
    assert sum(r.verdict == EXCEEDED for r in honest) <= 1


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
    assert result.against(BUDGET) == BY_ERRORS


@pytest.mark.long
def test_the_exact_attacker_reaches_what_an_exact_gaussian_gives() -> None:
    """One run spreads by about 0.2 (a handful of false positives decides), so the reference is met on average."""
    budget = Budget(4.0, 1e-5)
    results = [audit(*quiet(OutputGaussian(), budget), budget, runs=10_000, seed=k, score="likelihood") for k in range(12)]
    assert {(r.score, r.counts.trials) for r in results} == {("likelihood", 10_000)}
    free = np.array([r.epsilon_lower for r in results])
    assert free.mean() == pytest.approx(2.003, abs=0.15)
    assert free.std() < 0.35
    assert free.max() <= 4
    for r in results:
        assert r.gaussian_epsilon_lower == pytest.approx(3.745, abs=0.3)


def test_pure_epsilon_is_nearly_reached_and_has_no_gaussian_bound() -> None:
    result = audit(*quiet(CMSOutput(), BUDGET), BUDGET, runs=10_000, seed=0)
    assert result.gaussian_epsilon_lower is None
    assert result.p_value(BUDGET) is None
    assert result.measured_epsilon_lower is None
    assert 0.6 < result.epsilon_lower <= 1


def test_a_learning_attacker_needs_no_law() -> None:
    budget = Budget(8.0, 1e-5)
    for score in ("gradient", "lda", "qda"):
        result = audit(*quiet(DPGD(steps=3), budget), budget, runs=3000, seed=1, score=score)
        assert result.score == score
        assert 1.5 < result.epsilon_lower <= 8
        assert result.counts.trials == 1500


def test_no_privacy_is_seen_and_nothing_is_claimed() -> None:
    result = audit(*quiet(NonPrivate(), BUDGET), BUDGET, runs=200, seed=0)
    assert result.verdict == NO_CLAIM
    assert result.epsilon_lower > 3
    assert result.epsilon_lower <= result.ceiling


def test_same_seed_same_result_and_the_sides_share_no_randomness() -> None:
    first = audit(*quiet(DPGD(steps=2), BUDGET), BUDGET, runs=200, seed=5)
    second = audit(*quiet(DPGD(steps=2), BUDGET), BUDGET, runs=200, seed=5)
    other = audit(*quiet(DPGD(steps=2), BUDGET), BUDGET, runs=200, seed=6)
    assert first.counts == second.counts
    np.testing.assert_array_equal(first.cloud.to_numpy(), second.cloud.to_numpy())
    assert not np.array_equal(first.cloud.to_numpy(), other.cloud.to_numpy())
    points = first.cloud.groupby("side")[["u", "v"]].apply(lambda g: g.to_numpy())
    assert abs(np.corrcoef(points[0][:, 1], points[1][:, 1])[0, 1]) < 0.35


def test_several_attackers_and_several_pairs_share_the_error_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attackers at 5 % each, or two pairs, would accuse a mechanism that is right in more than 5 % of audits."""
    mechanism, first, second = quiet(OutputGaussian(), BUDGET)
    game = _prepare(mechanism, first, second, BUDGET, 40, 0, "auto", 0.9, ())  # type: ignore[arg-type]
    outputs, known = _both_sides(game, range(40), 0, 1, lambda done: None)
    assert known is not None
    half = dataclasses.replace(game, confidence=0.95)  # the other half is for the Gaussian test
    exact, learned = judging._exact(half, known, *outputs), judging._learned(half, *outputs, judging.LEARNED_SHARE)
    assert (1 - exact.level) + (1 - learned.level) == pytest.approx(0.05)
    assert round(judge(game, *outputs, known).counts_confidence, 9) in (round(exact.level, 9), round(learned.level, 9))
    assert judge(dataclasses.replace(game, score="lda"), *outputs, known).counts_confidence == pytest.approx(0.95)
    shares: list[float] = []
    monkeypatch.setattr(judging, "_learned", lambda *given: (shares.append(given[-1]), learned)[1])
    judge(game, *outputs, known)
    judge(game, *outputs, None)
    assert shares == [judging.LEARNED_SHARE, 1.0], "alone, the learning attacker has all of it"
    monkeypatch.undo()
    pairs = [make(name, SVM, 20, 2, 0.2) for name in ("quiet", "pushed")]
    told: list[float] = []
    results = audit_pairs(OutputGaussian(), pairs, BUDGET, runs=40, seed=3, confidence=0.9, monitor=told.append)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (pytest.approx(0.5), pytest.approx(1.0))
    assert [(name, r.confidence, r.seed) for name, r in results.items()] == [
        ("quiet", pytest.approx(0.95), 3),
        ("pushed", pytest.approx(0.95), 4),
    ]


def test_the_attacker_with_the_larger_bound_at_its_own_confidence_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learning one has less of the error probability: its bound would be the larger one at the other's."""
    mechanism, first, second = quiet(OutputGaussian(), BUDGET)
    game = _prepare(mechanism, first, second, BUDGET, 400, 0, "auto", 0.95, ())  # type: ignore[arg-type]
    outputs, known = _both_sides(game, range(40), 0, 1, lambda done: None)
    assert known is not None
    exact, learned = judging._exact(game, known, *outputs), judging._learned(game, *outputs, judging.LEARNED_SHARE)
    exact = dataclasses.replace(exact, counts=Counts(100, 100, 400))
    learned = dataclasses.replace(learned, counts=Counts(97, 97, 400))
    monkeypatch.setattr(judging, "_exact", lambda *given: exact)
    monkeypatch.setattr(judging, "_learned", lambda *given: learned)
    assert learned.counts.epsilon_lower_bound(1e-5, exact.level) > exact.counts.epsilon_lower_bound(1e-5, exact.level) > 0
    assert judge(game, *outputs, known).score == "likelihood"
    learned = dataclasses.replace(learned, counts=Counts(60, 60, 400))
    assert judge(game, *outputs, known).score == learned.name


def gaussian_game(runs: int) -> tuple[Game, Distributions, np.ndarray, list[np.ndarray]]:
    """A game against the exact Gaussian mechanism before its first run: with its distributions, noise scale and centres."""
    budget = Budget(1.0, 0.01)
    mechanism, first, second = quiet(OutputGaussian(), budget)
    game = _prepare(mechanism, first, second, budget, runs, 0, "auto", 0.9, ())  # type: ignore[arg-type]
    sigma, centres = np.array([game.calibration.noise_scale]), [side.optimum for side in game.sides]
    return game, Distributions(*(OutputNoise(c, sigma, "gaussian") for c in centres)), sigma, centres


def test_the_cut_half_way_is_fixed_before_the_game_also_where_a_learning_attacker_wins() -> None:
    """The Gaussian test and the share of correct guesses count errors of the exact attacker, whoever has the larger bound.

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


def test_outputs_are_drawn_along_the_declared_direction_and_across_it() -> None:
    n = 200
    game, known, sigma, centres = gaussian_game(n)
    rng = np.random.default_rng(3)
    outputs = [c + sigma * rng.standard_normal((n, 2)) for c in centres]
    both, means = np.concatenate(outputs), [side.mean(axis=0) for side in outputs]
    for distributions, moved in ((known, centres[1] - centres[0]), (None, means[1] - means[0])):
        cloud = judge(game, *outputs, distributions).cloud
        along = moved / np.linalg.norm(moved)
        np.testing.assert_allclose(cloud["u"], (both - means[0]) @ along, atol=1e-9)
        np.testing.assert_allclose(np.abs(cloud["v"]), np.abs((both - means[0]) @ (along[::-1] * [1, -1])), atol=1e-9)
        np.testing.assert_array_equal(cloud["side"], np.repeat([0, 1], n))
    alike = Distributions(known.first, dataclasses.replace(known.second, centre=known.first.centre))
    assert np.isfinite(judge(game, *outputs, alike).cloud).all(axis=None), "no direction, and still a picture"


@pytest.mark.parametrize("name", ["lda", "qda"])
def test_where_the_origin_lies_does_not_matter_to_a_learning_attacker(name: str) -> None:
    """Spread is measured around each side's own mean: outputs far from zero are told apart as well as others."""
    rng, far = np.random.default_rng(4), np.array([30.0, -20.0, 10.0])
    sides = [mean + rng.standard_normal((200, 3)) * [1.0, 2.0, 0.5] for mean in (np.zeros(3), np.array([0.5, 0.2, 0.1]))]
    fit = fitters(SVM_PAIR.first, SVM_PAIR.second, 0, 1)[name]
    here, there = fit(*sides), fit(*(side + far for side in sides))
    for side in sides:
        np.testing.assert_allclose(np.diff(there(side + far)), np.diff(here(side)), rtol=1e-6, atol=1e-6)


def test_watching_ends_where_the_audit_ends() -> None:
    budget = Budget(2.0, 1e-5)
    looks = list(watch(*quiet(OutputGaussian(), budget), budget, runs=3000, seed=3, looks=3))
    assert [look.runs for look in looks] == [1000, 2000, 3000]
    whole = audit(*quiet(OutputGaussian(), budget), budget, runs=3000, seed=3)
    assert looks[-1].counts == whole.counts
    assert looks[-1].epsilon_lower == whole.epsilon_lower
    assert {"side", "u", "v", "score"} <= set(whole.cloud)
    assert len(whole.cloud) == 2000


def test_can_be_cancelled() -> None:
    class Enough(Exception):
        pass

    def monitor(done: float) -> None:
        if done > 0.3:
            raise Enough

    with pytest.raises(Enough):
        audit(*quiet(DPGD(), BUDGET), BUDGET, runs=5000, monitor=monitor)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("n", "d"), [(4, 2), (31, 7)])
def test_pairs_are_neighbours_in_the_unit_ball(name: str, n: int, d: int, model_id: str) -> None:
    pair = make(name, get_model(model_id), n, d, 0.1)
    assert differing_rows(pair.first, pair.second) == n - 1
    for problem in (pair.first, pair.second):
        assert problem.rows.norms.max() <= 1 + 1e-12
        assert set(problem.rows.y) <= {-1.0, 1.0}
        if name in ("quiet", "presence", "opposed"):  # as many of either label, so that none is learnt for its number
            assert abs(problem.rows.y[:-1].sum()) <= 1


def test_the_worst_case_is_the_declared_pair_or_the_opposed_one_for_noise_on_rows() -> None:
    budget, names = Budget(1.0, 1e-5), {}
    for name in ("dbdp", "fukuchi-input", "output-gaussian"):
        names[name] = worst_case(dpviz.list_mechanisms()[name](), SVM, budget, n=20, d=3, lam=0.1).name
    assert names == {"dbdp": "own", "fukuchi-input": "opposed", "output-gaussian": "quiet"}


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
    with pytest.raises(InvalidInput, match="iterates"):
        audit(mechanism, pair.first, pair.second, budget, runs=200, score="steps")


def test_a_learning_attacker_guesses_between_both_sides() -> None:
    """On a pair whose sides do not lie symmetrically around 0; cms-output promises no Gaussian, so no line is known before."""
    pair = make("presence", SVM, 20, 2, 0.2)
    result = audit(CMSOutput(), pair.first, pair.second, Budget(8.0), runs=400, seed=1, score="lda")
    assert result.guessed_right > 0.8


@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_the_cut_of_two_gaussians_promises_the_largest_bound(mu: float) -> None:
    sides = [OutputNoise(np.array([0.0, at]), np.array([2.0]), "gaussian") for at in (0.0, 2.0 * mu)]
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
    laws = {"gaussian": stats.norm, "gamma-sphere": stats.laplace}  # in one dimension
    for family, law in laws.items():
        sides = [OutputNoise(np.array([c]), np.array([s]), family) for c, s in zip((0.0, 2.0), scales, strict=True)]
        expected = law.logpdf(at, 2.0, scales[1]) - law.logpdf(at, 0.0, scales[0])
        np.testing.assert_allclose(Distributions(*sides).log_ratio(at[:, None]), expected, atol=1e-12)


def test_noise_is_measured_around_two_fixed_centres_of_one_scale_and_nowhere_else() -> None:
    rng, at = np.random.default_rng(3), (np.zeros(3), np.array([3.0, 0.0, 4.0]))
    first, second = (centre + 2.0 * rng.standard_normal((2000, 3)) for centre in at)
    sides = [OutputNoise(centre, np.array([1.0]), "gaussian") for centre in at]
    found = Distributions(*sides).residuals(first, second)
    assert found.distance == 5.0
    assert (found.squares / found.freedom) ** 0.5 == pytest.approx(2.0, rel=0.03), "what is drawn and not what is declared"
    for other in (
        OutputNoise(np.tile(at[1], (2000, 1)), np.array([1.0]), "gaussian"),
        OutputNoise(at[1], np.array([1.1]), "gaussian"),
        OutputNoise(at[1], np.array([1.0]), "gamma-sphere"),
    ):
        assert Distributions(sides[0], other).residuals(first, second) is None
        assert Distributions(other, sides[0]).residuals(second, first) is None


def test_a_gaussian_guarantee_is_one_whose_mu_the_budget_allows() -> None:
    cal = OutputGaussian().calibrate(SVM.setting(100, 3, 0.1), Budget(1.0, 1e-5))
    assert declares_gaussian(cal)
    for change in ({"mu": 1.01 * cal.mu}, {"mu": None}, {"noise_family": "gamma-sphere"}):
        assert not declares_gaussian(dataclasses.replace(cal, **change))


def test_quiet_pair_uses_up_the_sensitivity() -> None:
    pair = worst_case(OutputGaussian(), SVM, BUDGET, n=50, d=3, lam=0.1)
    bound = OutputGaussian().calibrate(pair.first.setting, BUDGET).sensitivity
    assert np.linalg.norm(pair.first.optimum - pair.second.optimum) == pytest.approx(bound, rel=1e-6)


def test_pairs_from_data() -> None:
    problem = make_problem(n=60, d=3, lam=0.05)
    worst = most_influential(problem)
    index = differing_rows(worst.first, worst.second)
    moved = [np.linalg.norm(problem.optimum - label_flip(problem, i).second.optimum) for i in range(problem.n)]
    assert moved[index[0]] >= 0.9 * max(moved)
    other = replace_by(problem, 3, np.zeros(3), -1.0)
    assert differing_rows(other.first, other.second) == 3
    with pytest.raises(InvalidInput, match="row"):
        replace_by(problem, 3, np.full(3, 2.0), 1.0)
    with pytest.raises(InvalidInput, match="pair"):
        audit(OutputGaussian(), problem, problem, Budget(1.0, 1e-5))
    assert [p.name for p in battery(OutputGaussian(), SVM)] == list(PAIRS)


def test_bad_arguments_name_themselves() -> None:
    for field, change in (("runs", {"runs": 3}), ("seed", {"seed": -1}), ("score", {"score": "magic"})):
        with pytest.raises(InvalidInput, match=field):
            audit(*quiet(OutputGaussian(), BUDGET), BUDGET, **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="iterates"):
        audit(*quiet(OutputGaussian(), BUDGET), BUDGET, iterates=(1,))
    with pytest.raises(InvalidInput, match="score"):
        audit(*quiet(DPGD(steps=1), BUDGET), BUDGET, runs=40, score="likelihood")


def test_what_cannot_be_audited_is_refused_before_the_first_run() -> None:
    with pytest.raises(InvalidInput, match="pairs"):
        audit_pairs(OutputGaussian(), [], BUDGET)
    network = make("quiet", get_model("mlp"), 20, 2, 0.2)
    with pytest.raises(InvalidInput, match="mechanism"):
        audit(OutputGaussian(), network.first, network.second, BUDGET, runs=40)
    _, first, second = quiet(OutputGaussian(), BUDGET)
    smaller, looser = make("quiet", SVM, 19, 2, 0.2), make("quiet", SVM, 20, 2, 0.3)
    for strange in (smaller, looser, make("quiet", get_model("logistic"), 20, 2, 0.2)):
        with pytest.raises(InvalidInput, match="pair"):
            audit(OutputGaussian(), first, strange.second, BUDGET, runs=40)  # type: ignore[arg-type]
    assert differing_rows(first, second) >= 0  # type: ignore[arg-type]


def test_add_remove_is_audited_on_a_row_that_is_there_or_not() -> None:
    budget, relation = Budget(1.0, 1e-5), dpviz.list_mechanisms()["dp-sgd"].from_params({"relation": "add-remove", "epochs": 1.0})
    replaced = make("quiet", SVM, 20, 2, 0.2)
    with pytest.raises(InvalidInput, match="replaces one"):
        audit(relation, replaced.first, replaced.second, budget, runs=40)
    problem = make_problem(n=20, d=2, lam=0.2)
    gone = without(problem, 3)
    assert audit(relation, gone.first, gone.second, budget, runs=40).verdict == NO_VIOLATION
    network = without(make_problem(n=20, d=2, lam=0.2, model="mlp"), 3)
    with pytest.raises(InvalidInput, match="row of zeros"):
        audit(relation, network.first, network.second, budget, runs=40)


def test_outputs_that_are_not_finite_are_no_evidence() -> None:
    @dataclass(frozen=True)
    class Overflowing(DPGD):
        def fit(self, training: Training) -> Fit:
            made = super().fit(training)
            made.theta[:, 0] = np.inf
            return made

    with pytest.raises(FloatingPointError):
        audit(*quiet(Overflowing(steps=2), Budget(1.0, 1e-5)), Budget(1.0, 1e-5), runs=40)


def test_the_bound_by_the_mid_point_stands_only_under_its_assumption() -> None:
    for mechanism, assumed in ((OutputGaussian(), True), (CMSOutput(), False)):
        result = audit(*quiet(mechanism, BUDGET), BUDGET if assumed else Budget(1.0), runs=40)
        assert bool(result.assumption) is assumed
        expected = result.middle.gaussian_epsilon_lower_bound(BUDGET.delta, result.confidence) if assumed else None
        assert result.gaussian_epsilon_lower == expected


def test_the_threshold_of_declared_distributions_needs_no_runs() -> None:
    """At one centre on both sides nothing can be told; of noise of random length it is the best of many draws."""
    centre = np.zeros(3)
    same = OutputNoise(centre, np.array([0.5]), "gaussian")
    at = {"trials": 1000, "delta": 1e-5, "confidence": 0.95, "seed": 0}
    assert Distributions(same, same).threshold(**at) == 0.0  # type: ignore[arg-type]
    moved = OutputNoise(centre + 0.8, np.array([0.5]), "gamma-sphere")
    spread = Distributions(OutputNoise(centre, np.array([0.5]), "gamma-sphere"), moved)
    cut = spread.threshold(**at)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    length = rng.gamma(3, size=(2, 4000, 1))
    directions = rng.standard_normal((2, 4000, 3))
    draws = 0.5 * length * directions / np.linalg.norm(directions, axis=2, keepdims=True)
    first, second = spread.log_ratio(draws[0]), spread.log_ratio(draws[1] + 0.8)

    def bound(level: float) -> float:
        errors = (first > level).mean(), (second <= level).mean()
        return float(epsilon_lower_bound(1000 * errors[0], 1000 * errors[1], 1000, 1e-5, 0.95))

    assert bound(cut) >= 0.9 * max(bound(level) for level in np.linspace(-5, 5, 101))


# the others are trained run by run, which takes long: `dpviz audit` does it for one
@pytest.mark.parametrize("name", [k for k, c in dpviz.list_mechanisms().items() if c.family == "output"])
def test_no_output_mechanism_exceeds_what_is_proved(name: str) -> None:
    mechanism, budget = dpviz.list_mechanisms()[name](), Budget(2.0, 1e-5)
    pair = worst_case(mechanism, SVM, budget, n=60, d=2, lam=0.1)
    result = audit(mechanism, pair.first, pair.second, budget, runs=200, seed=1, confidence=0.999)
    assert not result.exceeds(result.calibration.proved_budget)


@pytest.mark.long
@pytest.mark.skipif("input-perturbation" not in dpviz.list_mechanisms(), reason="the mechanism is not there")
def test_input_perturbation_exceeds_its_claim() -> None:
    """n = 1,000, T = 50, claimed epsilon 1, noise per record: symmetric rows leave the canary's direction without noise."""
    mechanism, budget = dpviz.list_mechanisms()["input-perturbation"].from_params({"steps": 50}), Budget(1.0, 1e-5)
    pair = worst_case(mechanism, get_model("logistic"), budget, n=1000, d=2, lam=0.01)
    result = audit(mechanism, pair.first, pair.second, budget, runs=2000, seed=0)
    assert result.epsilon_lower > 5
    assert result.verdict == EXCEEDED


def test_correct_guesses_reach_what_is_allowed_and_no_more_unless_noise_is_missing() -> None:
    good = audit(*quiet(OutputGaussian(), BUDGET), BUDGET, runs=5000)
    low, high = good.guessed_right_limits
    assert good.allowed == pytest.approx(0.5529, abs=2e-3)  # Phi(mu/2) of exact Gaussian noise at ε = 1, δ = 1e-5
    assert low < good.guessed_right < high
    assert low < good.allowed < high  # the pair is the worst one, so the attack is as good as it can be
    weak = audit(*quiet(WeakNoise(share=0.6), BUDGET), BUDGET, runs=5000)
    assert weak.guessed_right_limits[0] > weak.allowed
    assert audit(*quiet(NonPrivate(), BUDGET), BUDGET, runs=40).allowed is None


def test_with_and_without_a_row_is_a_pair_for_both_relations() -> None:
    problem = make_problem(n=30, d=3)
    pair = without(problem, 4)
    assert differing_rows(pair.first, pair.second) == 4
    assert not pair.second.rows.X[4].any()
    with pytest.raises(InvalidInput):
        without(problem, 30)


@pytest.mark.long
def test_methods_can_be_audited_under_both_relations() -> None:
    """The pair follows what the calibration speaks about, also where a hyperparameter decides that."""
    asked = 0
    for name, cls in dpviz.list_mechanisms().items():
        if "relation" not in cls.knobs():
            continue
        mechanism, budget = cls.from_params({"relation": "add-remove"}), Budget(1.0, 1e-5)
        pair = worst_case(mechanism, get_model("logistic"), budget, n=20, d=2, lam=0.1)
        assert pair.name == "presence", name
        assert audit(mechanism, pair.first, pair.second, budget, runs=40).verdict == "no violation found"
        asked += 1
    assert asked > 3
