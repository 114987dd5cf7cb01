"""A model of one's own is one class and one line in the registry: no other file knows it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from support import ONE_OF_EACH_FAMILY

import dpviz
from dpviz.common.progress import Monitor, ignore
from dpviz.models import MODELS, Derivatives, LinearModel, Model, Rows, Setting
from dpviz.models.losses import Loss
from tests.models.tables import PseudoHuber

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeastSquares(PseudoHuber):
    """phi(m) = (1 - m)^2/2, whose slope has no bound."""

    name: str = "least-squares"
    slope_bound: float = float("inf")
    third_bound: float = 0.0

    def value(self, margin: Floats) -> Floats:
        return (1 - margin) ** 2 / 2

    @staticmethod
    def slope_at(margin: Any, one: Any, width: Any) -> Any:
        return margin - one

    def curvature(self, margin: Floats) -> Floats:
        return np.ones_like(margin)


@dataclass(frozen=True)
class ToyDerivatives(Derivatives):
    """J_i = x_i."""

    loss: Loss
    exact = True

    def row_scores(self, theta: Floats, rows: Rows) -> Floats:
        return np.einsum("ij,ij->i", rows.X, np.broadcast_to(theta, rows.X.shape))

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X


@dataclass(frozen=True)
class Toy(Model):
    """What a model has to give, and nothing else: no line search, no noise on features."""

    id: str = "toy"
    label: str = "Toy"
    loss: Loss = field(default_factory=PseudoHuber)
    formula: str = r"\langle\theta,x\rangle"
    convex: bool = True

    @property
    def derivatives(self) -> Derivatives:
        return ToyDerivatives(self.loss)

    def setting(self, n: int, d: int, lam: float) -> Setting:
        L = self.loss.curvature_bound
        return Setting(
            n=n,
            d=d,
            m=d,
            lam=lam,
            model=self.id,
            G=self.loss.slope_bound,
            beta=L,
            third=self.loss.third_bound,
            convex=True,
            unit_step=1 / (L + lam),
            slope_at_zero=1 / 2**0.5,
            quadratic=(1.0, 1.0),
            abilities=self.abilities,
        )

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        return np.zeros((len(streams), m))

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X @ theta.T

    def sum_gradient(self, theta, rows, *, clip_norm=np.inf, weights=None, rule=None) -> Floats:  # type: ignore[no-untyped-def]
        X, y = rows.part("X", slice(None)), rows.part("y", slice(None))
        factor = y[:, None] * self.loss.slope(y[:, None] * (X @ theta.T))
        norms = np.abs(factor) * np.linalg.norm(X, axis=1)[:, None]
        factor = factor * np.minimum(1, clip_norm / np.maximum(norms, 1e-300))
        norms = np.minimum(norms, clip_norm)
        factor = factor * (1 if weights is None else weights)
        if rule is not None:
            factor = factor * rule(slice(0, len(y)), norms.T).T
        return factor.T @ X

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = ignore) -> Floats:
        def both(theta: Floats) -> tuple[float, Floats]:
            value = self.measure(theta[None], rows)[0][0] + lam / 2 * theta @ theta
            return value, self.sum_gradient(theta[None], rows)[0] / len(rows) + lam * theta

        theta = np.zeros(rows.X.shape[1]) if start is None else start
        for _ in range(50):  # Newton, from where L-BFGS stops
            theta = minimize(both, theta, jac=True, method="L-BFGS-B", options={"gtol": 1e-6}).x if _ == 0 else theta
            gradient = both(theta)[1]
            if np.linalg.norm(gradient) < 1e-13:
                break
            theta = theta - np.linalg.solve(self.derivatives.hessian(theta, rows, lam), gradient)
        return theta


#: the same function written as a loss of the linear model that is there, which is faster and can do more
TWIN = LinearModel("twin", "Twin", PseudoHuber())


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (Toy(), TWIN, LinearModel("squares", "Least squares", LeastSquares())):
        monkeypatch.setitem(MODELS, model.id, model)


def run(model: str, mechanism: str, **more: object) -> dpviz.Result:
    return dpviz.run(dpviz.RunSpec("teaching", model=model, mechanism=mechanism, seeds=3, lam=0.01, **more))  # type: ignore[arg-type]


def test_it_is_listed_and_trained_without_privacy() -> None:
    assert dpviz.list_models()["toy"] == "Toy"
    result = run("toy", "non-private")
    assert result.non_private.accuracy > result.majority.accuracy + 0.1
    assert np.abs(result.optimality_gap).max() < 1e-12


RUNS = [name for name, cls in dpviz.list_mechanisms().items() if cls.refusal(Toy().setting(320, 3, 0.01)) is None]


@pytest.mark.parametrize("mechanism", [n for n in RUNS if n in (*ONE_OF_EACH_FAMILY, "dp-sgd", "cms-output", "renyi-filter")])
def test_a_mechanism_that_takes_it_gives_the_twin_the_same(mechanism: str) -> None:
    """Mechanisms see `Model` alone, so that two models of the same function are trained alike."""
    own, twin = run("toy", mechanism), run("twin", mechanism)
    assert own.calibration.noise_scale == twin.calibration.noise_scale
    # mini-batches of the twin are summed in single precision
    np.testing.assert_allclose(own.theta, twin.theta, rtol=2e-3, atol=2e-5)
    np.testing.assert_allclose(own.accuracy, twin.accuracy, atol=0.03)


def test_many_mechanisms_take_it() -> None:
    assert {"dp-gd", "dp-sgd", "output-gaussian", "cms-output", "renyi-filter"} <= set(RUNS)


def test_mechanisms_that_need_more_refuse_in_words() -> None:
    lacking = {"dp-agd": "losses along a line", "dbdp": "noise on their features"}
    for mechanism, what in lacking.items():
        assert mechanism not in RUNS
        assert dpviz.list_mechanisms()[mechanism].refusal(TWIN.setting(320, 3, 0.01)) is None
        with pytest.raises(dpviz.InvalidInput, match=what):
            run("toy", mechanism)


def test_what_a_model_does_not_declare_is_refused_before_training() -> None:
    for name, cls in dpviz.list_mechanisms().items():
        bare = TWIN.setting(320, 3, 0.01)
        for ability in cls.needs:
            less = type(bare)(**{**vars(bare), "abilities": bare.abilities - {ability}})
            assert str(ability) in (cls.refusal(less) or ""), name


def test_gradients_without_a_bound_are_refused_where_nothing_clips_them() -> None:
    assert np.isfinite(run("squares", "dp-sgd").theta).all()
    with pytest.raises(dpviz.InvalidInput, match="no bound"):
        run("squares", "output-gaussian")


def test_influence_is_that_of_the_twin_and_predicts_retraining() -> None:
    specs = [dpviz.RunSpec("teaching", model=m, lam=0.01) for m in ("toy", "twin")]
    own, twin = (dpviz.influence_of(dpviz.setup_for(spec).problem) for spec in specs)
    np.testing.assert_allclose(own.newton_norm, twin.newton_norm, rtol=1e-7)
    for solver in ("dense", "cg"):
        other = dpviz.influence_of(own.problem, solver=solver)
        np.testing.assert_allclose(other.newton_norm, own.newton_norm, rtol=1e-6)
    at = np.argsort(-own.newton_norm)[:5]
    np.testing.assert_allclose(own.newton_norm[at], own.leave_one_out(at).norm, rtol=0.02)
    with pytest.raises(dpviz.InvalidInput, match="factored"):
        dpviz.influence_of(own.problem, solver="factored")
