"""Scores of the five attacks against loops and closed forms; their judge; `membership_risk` in scikit-learn's searches."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import dpviz
from dpviz.auditing.attacks.attacked import CHANCE, AttackedRun
from dpviz.auditing.attacks.base import FEW, Shadows, Targets, get_attack, list_attacks
from dpviz.auditing.attacks.judging import Judged
from dpviz.auditing.attacks.quantile_regression import RATE
from dpviz.auditing.attacks.scorer import _fitted, _signals
from dpviz.auditing.result import EXCEEDED


def world(
    k: int = 400, t: int = 40, n: int = 30, p: int = 50, apart: float = 1.0, seed: int = 0
) -> tuple[Shadows, Targets, np.ndarray]:
    """Signals N(b_i + apart x member, s_i^2) of k shadow and t target models; the members of the targets."""
    rng = np.random.default_rng(seed)
    level, spread, beside = rng.normal(1, 2, n), rng.uniform(0.5, 2, n), rng.normal(1, 2, p)

    def models(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        member = rng.random((count, n)) < 0.5
        signals = level + spread * (apart * member + rng.standard_normal((count, n)))
        return signals, member, beside + rng.standard_normal((count, p))

    signals, member, population = models(k)
    attacked, truth, apart_from = models(t)
    rows, others = np.column_stack([level, spread]), np.column_stack([beside, np.ones(p)])
    return Shadows(signals, member, population), Targets(attacked, apart_from, rows, others), truth


@pytest.mark.parametrize("k", [20, FEW - 1, FEW, 300])
def test_lira_is_the_ratio_of_two_normal_densities(k: int) -> None:
    shadows, targets, _ = world(k=k, t=3, n=5)
    online, offline = (get_attack(name).score(targets, shadows) for name in ("lira-online", "lira-offline"))
    sides = {}
    for kind in (True, False):
        kept = [[shadows.signals[j, i] for j in range(k) if shadows.member[j, i] == kind] for i in range(5)]
        mean, own = [np.mean(v) for v in kept], [np.var(v, ddof=1) for v in kept]
        pooled = sum(np.var(v) * len(v) for v in kept) / sum(len(v) - 1 for v in kept)
        sides[kind] = [(m, np.sqrt(s if k >= FEW else pooled)) for m, s in zip(mean, own, strict=True)]
    for t in range(3):
        for i in range(5):
            inside, outside = (norm(*sides[kind][i]) for kind in (True, False))
            s = targets.signals[t, i]
            assert online[t, i] == pytest.approx(inside.logpdf(s) - outside.logpdf(s), abs=1e-9)
            assert norm.cdf(offline[t, i]) == pytest.approx(1 - outside.sf(s), abs=1e-9)


def test_rows_of_narrow_signals_are_found_among_rows_of_wide_ones() -> None:
    """Half of the rows tell nothing and vary 20 times as much as the others; one variance for all rows would hide the others."""
    rng, narrow = np.random.default_rng(0), np.arange(40) < 20

    def models(count: int) -> tuple[np.ndarray, np.ndarray]:
        member = rng.random((count, 40)) < 0.5
        return np.where(narrow, 2.0 * member, 50) + np.where(narrow, 1, 20) * rng.standard_normal((count, 40)), member

    (signals, member), (attacked, truth) = models(2 * FEW), models(100)

    def found(count: int) -> float:
        shadows = Shadows(signals[:count], member[:count], np.zeros((count, 1)))
        score = get_attack("lira-online").score(Targets(attacked, np.zeros((100, 1))), shadows)
        return Judged(score, truth).detections_at(0.01).value

    exact = 0.5 * norm.sf(norm.isf(0.02) - 2)  # all false alarms, 1 % of the non-members, are spent on the narrow half
    assert found(2 * FEW) > 0.8 * exact
    assert found(FEW - 1) < 0.5 * exact  # the control: one variance for all rows


def test_rmia_counts_the_rows_of_the_population_that_a_row_dominates() -> None:
    shadows, targets, _ = world(k=12, t=2, n=4, p=9)
    found = get_attack("rmia").score(targets, shadows)

    def p(s: float) -> float:
        return 1 / (1 + np.exp(-s))

    for t in range(2):
        for i in range(4):
            inside = np.mean([p(shadows.signals[j, i]) for j in range(12) if shadows.member[j, i]])
            outside = np.mean([p(shadows.signals[j, i]) for j in range(12) if not shadows.member[j, i]])
            of_row = p(targets.signals[t, i]) / (0.5 * (inside + outside))
            ratios = [p(targets.population[t, z]) / np.mean([p(s) for s in shadows.population[:, z]]) for z in range(9)]
            assert int(found[t, i] * 10) == sum(of_row >= ratio for ratio in ratios)


def test_the_loss_threshold_orders_rows_by_their_loss() -> None:
    shadows, targets, _ = world(t=3)
    scores, losses = get_attack("loss-threshold").score(targets, shadows), np.logaddexp(0, -targets.signals)
    assert (np.argsort(scores.ravel()) == np.argsort(-losses.ravel())).all()


def test_quantile_regression_calls_the_declared_share_of_non_members() -> None:
    """Signals of non-members are N(b(x), 1): above the true 95 % quantile lie 5 %, for every b."""
    rng = np.random.default_rng(0)
    features, rows = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1))
    population, signals = (3 * np.sign(x[:, 0]) + rng.standard_normal(len(x)) for x in (features, rows))
    targets = Targets(signals[None], population[None], rows, features)
    score = get_attack("quantile-regression").score(targets, Shadows(signals[None], np.ones((1, 4000)) > 0, population[None]))[0]
    for side in (rows[:, 0] > 0.1, rows[:, 0] < -0.1):
        assert np.mean(score[side] > 0) == pytest.approx(RATE, abs=0.02)


@pytest.mark.parametrize("name", ["lira-online", "lira-offline"])
def test_on_exact_gaussians_lira_reaches_the_likelihood_ratio(name: str) -> None:
    """In N(b + d s, s^2) against out N(b, s^2) the best test finds Phi(Phi^-1(a) + d) (Neyman, Pearson)."""
    shadows, targets, truth = world(k=3000, t=400, n=40, apart=1.0)
    judged = Judged(get_attack(name).score(targets, shadows), truth)
    for rate in (0.01, 0.1):
        found, exact = judged.detections_at(rate), norm.cdf(norm.ppf(rate) + 1.0)
        assert found.low - 0.01 <= exact <= found.high + 0.01
    threshold = Judged(get_attack("loss-threshold").score(targets, shadows), truth)
    assert threshold.detections_at(0.1).high < norm.cdf(norm.ppf(0.1) + 1.0)  # one threshold for rows of all levels


@pytest.mark.parametrize("name", sorted(list_attacks()))
def test_scores_are_finite_where_all_models_are_one(name: str) -> None:
    """A method without noise and a row without influence: every model says the same."""
    shadows = Shadows(np.ones((70, 3)), np.arange(210).reshape(70, 3) % 2 == 0, np.ones((70, 50)))
    targets = Targets(np.ones((2, 3)), np.ones((2, 50)), np.zeros((3, 2)), np.zeros((50, 2)))
    assert np.isfinite(get_attack(name).score(targets, shadows)).all()


@pytest.mark.parametrize("name", sorted(list_attacks()))
def test_scores_are_finite_at_extreme_signals(name: str) -> None:
    shadows, targets, _ = world(k=70, t=2, n=4)
    wild = Targets(targets.signals * 1e6, targets.population * 1e6, targets.rows, targets.population_rows)
    scores = get_attack(name).score(wild, Shadows(shadows.signals * 1e6, shadows.member, shadows.population * 1e6))
    assert np.isfinite(scores).all()
    assert np.isfinite(get_attack(name).score(wild, shadows)).all()


def members(rng: np.random.Generator, t: int, n: int) -> np.ndarray:
    found = np.zeros((t, n), bool)
    for row in found:
        row[rng.permutation(n)[: n // 2]] = True
    return found


def test_detections_are_on_the_roc_curve_at_the_rate_of_false_alarms() -> None:
    rng = np.random.default_rng(0)
    member = members(rng, 20, 50)
    scores = np.round(rng.normal(member, 1), 1)  # with many ties
    judged, out = Judged(scores, member), scores[~member]
    for rate in (0.02, 0.05, 0.3):
        alarms, found, _ = roc_curve(member.ravel(), scores.ravel(), drop_intermediate=False)
        assert judged.detections_at(rate).value == pytest.approx(np.interp(rate, alarms, found))
        assert np.mean(out > judged.threshold_at(rate)) <= rate
    assert judged.auc == pytest.approx(roc_auc_score(member.ravel(), scores.ravel()))
    assert judged.curve["detections"].is_monotonic_increasing


@pytest.mark.long
def test_limits_have_their_confidence_and_noise_is_no_advantage() -> None:
    """300 judgements of scores without signal in which rows of a model share its noise: what is declared happens.

    The share of limits that miss is 5 %, and the advantage is 0 on average in more than a third of them: the largest
    difference on the rows it was chosen on, or its absolute value, never would be.
    """
    rng, missed, advantages = np.random.default_rng(5), 0, []
    for seed in range(300):
        member = members(rng, 40, 60)
        scores = rng.normal(size=(40, 60)) + rng.normal(size=(40, 1))
        judged = Judged(scores, member, seed)
        found = judged.detections_at(0.1)
        missed += not found.low <= 0.1 <= found.high
        advantages.append(judged.advantage)
    assert binom.ppf(0.001, 300, 0.03) <= missed <= binom.ppf(0.999, 300, 0.07)
    assert np.mean(np.array(advantages) == 0) > 0.35
    assert np.mean(advantages) < 0.02


class NothingAllowed(AttackedRun):
    """A run of which nothing may be seen: as many detections as false alarms."""

    def allowed_detections(self, false_alarms: np.ndarray) -> np.ndarray:
        return np.asarray(false_alarms)


@pytest.mark.long
def test_runs_without_signal_name_rows_and_speak_against_a_guarantee_as_often_as_declared() -> None:
    """Scores of a model share its noise; the control: one row that is found out is named in most runs."""

    def rates(runs: int, gain: float) -> tuple[int, int, int]:
        rng, named, first, against = np.random.default_rng(7), 0, 0, 0
        for seed in range(runs):
            member = members(rng, 300, 10)
            scores = rng.normal(size=(300, 10)) + rng.normal(size=(300, 1))
            scores[:, 3] += gain * member[:, 3]
            judged = {"lira-online": Judged(scores, member, seed)}
            run = NothingAllowed(None, None, None, None, 64, 300, np.arange(10), judged, np.zeros(10))  # type: ignore[arg-type]
            found = run.rows["attacks_that_find"] > 0
            named, first, against = named + found.any(), first + found[3], against + (run.verdict == EXCEEDED)
        return named, first, against

    named, _, against = rates(250, 0.0)
    assert named <= binom.ppf(0.999, 250, CHANCE)
    assert against <= binom.ppf(0.999, 250, 0.05)
    assert rates(20, 6.0)[1] > 18


@pytest.mark.parametrize("name", sorted(list_attacks()))
def test_signals_without_membership_show_nothing_and_targets_among_the_shadows_show(name: str) -> None:
    """The control: shadow models that are the targets themselves tell LiRA who the members are."""
    rng = np.random.default_rng(2)
    signals, population = rng.normal(size=(300, 60)), rng.normal(size=(300, 200))
    member = members(rng, 300, 60)
    features, others = rng.normal(size=(60, 2)), rng.normal(size=(200, 2))
    targets = Targets(signals[:40], population[:40], features, others)
    apart = Judged(get_attack(name).score(targets, Shadows(signals[40:], member[40:], population[40:])), member[:40])
    found = apart.detections_at(0.1)
    assert found.low <= 0.1 <= found.high
    assert apart.auc == pytest.approx(0.5, abs=4 * 0.29 * 2 / np.sqrt(2400))
    if name == "lira-online":
        few = slice(0, 40)  # as many shadows as targets, all the same models
        leaked = get_attack(name).score(targets, Shadows(signals[few], member[few], population[few]))
        assert Judged(leaked, member[few]).auc > 0.54


X, Y = make_classification(300, 8, n_informative=4, flip_y=0.3, random_state=0)


@pytest.mark.long
def test_a_memorising_model_is_found_out_and_a_simple_one_is_not() -> None:
    risk = dpviz.membership_risk("lira-online", 0.05, shadows=32, targets=16)
    forest = risk(RandomForestClassifier(20, random_state=0), X, Y)
    flat = risk(LogisticRegression(C=1e-4), X, Y)
    assert forest < -0.4
    assert flat > -0.12
    assert risk.judge(LogisticRegression(C=1e-4), X, Y).auc == pytest.approx(0.5, abs=0.04)


def test_a_search_prefers_the_private_choice() -> None:
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [1, None]},
        scoring=dpviz.membership_risk("lira-online", 0.1, shadows=32, targets=16),
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_params_ == {"max_depth": 1}
    assert (search.cv_results_["mean_test_score"] <= 0).all()


def test_our_classifier_is_attacked_with_noise_of_its_own_in_every_copy(recwarn: pytest.WarningsRecorder) -> None:
    model = dpviz.PrivateClassifier("output-gaussian", 1.0, data_norm=5.0, random_state=3)
    seeds = np.random.SeedSequence(0).spawn(2)
    first, second = (_fitted(model, X, Y, np.arange(100), seed) for seed in seeds)
    assert (first.coef_ != second.coef_).all()
    risk = dpviz.membership_risk("rmia", 0.1, shadows=16, targets=8)
    scores = cross_val_score(model, X, Y, scoring=risk, cv=2, error_score="raise")
    assert (scores > -0.35).all()


def test_copies_are_not_entered_into_a_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    model = dpviz.PrivateClassifier("output-gaussian", 1.0, data_norm=5.0, ledger=ledger)
    dpviz.membership_risk("loss-threshold", 0.1, shadows=8, targets=8)(model, X, Y)
    assert not ledger.exists()


def test_signals_are_logits_of_the_own_label_with_many_classes_and_pipelines() -> None:
    y = np.array(["a", "b", "c"])[np.arange(300) % 3]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    p = model.predict_proba(X)[np.arange(300), np.arange(300) % 3]
    assert _signals(model, X, y, np.arange(300)) == pytest.approx(np.log(p / (1 - p)), rel=1e-6)
    part = model.fit(X[y != "c"], y[y != "c"])  # a class that the half did not have
    assert np.isfinite(_signals(part, X, y, np.arange(300))).all()
