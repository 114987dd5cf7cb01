"""Influence, leverage, Newton steps and exact retraining against brute force and reference values."""

import numpy as np
import pytest
from support import Cancelled, assert_refused, cancel, make_problem

import dpviz
from dpviz.influence import Influence, error_bound, influence_of
from dpviz.models import LinearModel, Rows, derivatives_of, get_model, margins
from dpviz.models.problem import Problem


def brute_force(problem: Problem, index: int, rescale: bool = False) -> np.ndarray:
    """theta_{-i} - theta* by training again on the other rows, by the mean over all n rows or (`rescale`) over the others."""
    keep = np.arange(problem.n) != index
    # the mean over n - 1 rows weighs the loss n/(n-1) times as much as the mean with the public n
    lam = problem.lam if rescale else problem.lam * problem.n / (problem.n - 1)
    return Problem(problem.rows.take(np.flatnonzero(keep)), problem.model, lam).optimum - problem.optimum


@pytest.fixture(scope="module")
def tumours() -> Problem:
    data = dpviz.load_dataset("breast-cancer", intercept=False)
    return Problem(Rows(data.X, data.y), get_model("logistic"), 0.01)


def test_error_bound_is_theorem_4() -> None:
    setting = get_model("logistic").setting(45222, 105, 0.01)
    assert error_bound(setting) == pytest.approx(4.949809064198106e-05, rel=1e-9)
    assert error_bound(get_model("svm").setting(100, 5, 0.01)) == np.inf


@pytest.mark.parametrize("lam", [0.2, 0.02, 0.002])
def test_leave_one_out_is_retraining(model_id: str, lam: float) -> None:
    problem = make_problem(n=60, d=5, lam=lam, model=model_id, seed=4)
    truth = influence_of(problem).leave_one_out()
    expected = np.array([brute_force(problem, i) for i in range(problem.n)])
    error = np.linalg.norm(truth.change - expected, axis=1)
    # brute force stops at gradient norm 1e-11 itself, twice
    assert np.all(error <= truth.certificate + 2e-11 / lam)
    assert truth.certificate.max() <= 1e-7 * truth.norm.max()
    np.testing.assert_allclose(truth.norm, np.linalg.norm(expected, axis=1), rtol=1e-6, atol=1e-9)


def test_solving_rows_one_by_one_gives_the_same(model_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(n=40, d=4, lam=0.01, model=model_id, seed=9)
    shared = influence_of(problem).leave_one_out([3, 17, 39])
    monkeypatch.setattr("dpviz.influence.leave_one_out._MAX_STEPS", 0)
    alone = influence_of(problem).leave_one_out([3, 17, 39])
    assert np.all(alone.steps == -1)
    assert np.all(np.linalg.norm(shared.theta - alone.theta, axis=1) <= shared.certificate + alone.certificate)


def test_certificate_bounds_the_error_of_an_early_stop() -> None:
    problem = make_problem(n=50, d=4, lam=0.01, seed=2)
    rough = influence_of(problem).leave_one_out(tolerance=0.3)
    fine = influence_of(problem).leave_one_out()
    error = np.linalg.norm(rough.theta - fine.theta, axis=1)
    assert np.all(error <= rough.certificate + fine.certificate)
    assert rough.certificate.max() > 100 * fine.certificate.max()
    # the bound can fail: a hundredth of it does
    assert np.any(error > 0.01 * rough.certificate + fine.certificate)


def test_newton_step_is_closer_than_influence_and_both_have_the_right_sign(model_id: str) -> None:
    problem = make_problem(n=200, d=6, lam=0.01, model=model_id, seed=1)
    influence = influence_of(problem)
    truth = influence.leave_one_out()
    first = np.linalg.norm(influence.parameters(kind="influence") - truth.change, axis=1)
    newton = np.linalg.norm(influence.parameters(kind="newton") - truth.change, axis=1)
    moved = (truth.norm > 1e-9) & (influence.leverage > 0)  # without leverage the two are the same
    # rows that cross a kink of the SVM can go either way: the statement is about most rows
    assert np.mean(newton[moved] < first[moved]) > 0.8
    assert np.median(newton[moved]) < np.median(first[moved])
    assert np.median(first[moved] / truth.norm[moved]) < 0.1
    np.testing.assert_allclose(influence.norm, np.linalg.norm(influence.parameters(kind="influence"), axis=1), rtol=1e-12)
    np.testing.assert_allclose(influence.newton_norm, np.linalg.norm(influence.parameters(), axis=1), rtol=1e-12)
    assert np.all((influence.leverage >= 0) & (influence.leverage < 1))


def test_rows_beyond_the_margin_of_the_svm_have_no_influence_at_all() -> None:
    problem = make_problem(n=120, d=3, lam=0.002, model="svm", seed=3)
    margin = margins(problem.model, problem.optimum[None], problem.rows)[:, 0]
    far = np.flatnonzero(margin > 1.5)
    assert len(far) > 10
    influence = influence_of(problem)
    assert np.all(influence.norm[far] == 0)
    assert influence.leave_one_out(far).norm.max() <= 1e-10


def test_influence_is_the_derivative_of_the_minimiser_by_the_row_weight() -> None:
    problem = make_problem(n=30, d=3, lam=0.05, seed=6)
    h = 1e-4

    def minimiser(weight: float) -> np.ndarray:
        # a row of weight 1 + h: m copies of everything else would do the same; here by Newton on the weighted sum
        theta = problem.optimum.copy()
        w = np.ones((problem.n, 1))
        w[7] = weight
        for _ in range(20):
            g = problem.model.sum_gradient(theta[None], problem.rows, weights=w)[0] / problem.n + problem.lam * theta
            theta = theta - np.linalg.solve(derivatives_of(problem.model).hessian(theta, problem.rows, problem.lam), g)
        return theta

    derivative = (minimiser(1 - h) - minimiser(1 + h)) / (2 * h)
    np.testing.assert_allclose(influence_of(problem).parameters([7], "influence")[0], derivative, rtol=1e-6)


def test_published_formula_follows_its_own_truth() -> None:
    problem = make_problem(n=150, d=4, lam=0.05, seed=8)
    influence = influence_of(problem)
    own_truth = np.array([brute_force(problem, i, rescale=True) for i in range(problem.n)])
    published = influence.parameters(kind="published")
    np.testing.assert_allclose(influence.published_norm, np.linalg.norm(published, axis=1), rtol=1e-10)
    error = np.linalg.norm(published - own_truth, axis=1)
    assert np.median(error / np.linalg.norm(own_truth, axis=1)) < 0.05
    # it is another quantity than removal with a public n: confusing the two is visible
    assert np.median(np.linalg.norm(influence.parameters(kind="influence") - own_truth, axis=1)) > 3 * np.median(error)


def test_effects_on_losses_scores_and_objective_follow_retraining() -> None:
    problem = make_problem(n=200, d=5, lam=0.02, seed=12)
    test = make_problem(n=50, d=5, seed=13).rows
    influence = influence_of(problem)
    truth = influence.leave_one_out()

    def close(approximate: np.ndarray, exact: np.ndarray, share: float = 0.02) -> None:
        assert np.linalg.norm(approximate - exact) <= share * np.linalg.norm(exact)

    close(influence.loss_change(test), truth.loss_change(test))
    close(influence.training_loss_change, truth.loss_change(problem.rows), 0.05)
    close(influence.score_change(test.take(np.array([3, 4]))), truth.score_change(test.take(np.array([3, 4]))))
    close(influence.objective_change, problem.objective(truth.theta) - problem.optimal_value, 0.05)
    value = problem.model.loss.value  # type: ignore[attr-defined]
    own = value(np.einsum("ij,ij->i", problem.rows.signed_rows, truth.theta)) - value(problem.rows.signed_rows @ problem.optimum)
    close(influence.own_loss_change, own)
    assert np.all(influence.own_loss_change >= 0)
    with pytest.raises(AssertionError):  # the opposite sign is caught
        close(-influence.loss_change(test), truth.loss_change(test))


def test_conjugate_gradients_agree_with_the_factorised_hessian(model_id: str) -> None:
    problem = make_problem(n=90, d=12, lam=0.01, model=model_id)
    dense, products = influence_of(problem, solver="dense"), influence_of(problem, solver="cg")
    np.testing.assert_allclose(products.newton_norm, dense.newton_norm, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(products.leave_one_out([1, 2]).change, dense.leave_one_out([1, 2]).change, atol=1e-9)
    vectors = np.random.default_rng(0).standard_normal((3, 12))
    product = derivatives_of(problem.model).hessian_product(problem.optimum, problem.rows, problem.lam, vectors)
    np.testing.assert_allclose(product, vectors @ dense.hessian, rtol=1e-10)


def test_cancelling_from_the_monitor() -> None:
    with pytest.raises(Cancelled):
        influence_of(make_problem()).leave_one_out(monitor=cancel)


def test_planted_outliers_are_on_top() -> None:
    data = dpviz.load_dataset("teaching")
    planted = set(np.flatnonzero(data.frame["kind"] == "outlier"))
    table = influence_of(Problem(Rows(data.X, data.y), get_model("logistic"), 0.01)).frame()
    found = [
        table.sort_values("newton_step").index[-8:],
        table.sort_values("own_loss").index[-8:],
        table.index[table["rank"] <= 8],
    ]
    assert [set(rows) for rows in found] == [planted] * 3


def test_no_rows_and_models_without_unique_minimiser(tumours: Problem) -> None:
    none = influence_of(tumours).leave_one_out([])
    assert none.change.shape == (0, 30)
    bumpy = Problem(tumours.rows, LinearModel("bumpy", "Not convex", tumours.model.loss, convex=False), 0.01)
    away = Influence(bumpy, np.zeros(30), "dense")
    assert np.isfinite(away.newton_norm).all()
    assert_refused(away.leave_one_out, [0], match="not at a minimum")


@pytest.mark.parametrize("dataset", ["teaching", "iris"])
@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_the_most_influential_row_is_that_of_retraining(dataset: str, lam: float) -> None:
    influence = dpviz.influence_of(dpviz.RunSpec(dataset, lam=lam))
    changes = influence.leave_one_out().norm
    assert influence.order[0] == changes.argmax()
    assert np.array_equal(np.sort(influence.order), np.arange(len(changes)))
    assert list(influence.frame()["rank"].to_numpy()[influence.order[:9]]) == list(range(1, 10))
