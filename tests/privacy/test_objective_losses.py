"""Bounds of objective perturbation against simulated exact privacy loss."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import expit

import dpviz
from dpviz.mechanisms import Calibration
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.objective import PerturbedObjective, joint_remainder

ADD = Neighbouring.ADD_REMOVE


def hessians(rows: np.ndarray, weight: np.ndarray, Lam: float) -> np.ndarray:
    """(N, 2, 2) of sum_k weight_k z_k z_k' + Lam I."""
    outer = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), 4)
    return (weight @ outer).reshape(-1, 2, 2) + Lam * np.eye(2)


def solve(rows: np.ndarray, counts: np.ndarray, Lam: float, b: np.ndarray) -> np.ndarray:
    """(N, 2) roots of sum_k counts_k phi'(<z_k, theta>) z_k + Lam theta + b, logistic loss, damped Newton."""
    theta = np.zeros_like(b)
    open_ = np.arange(len(b))

    def residual(t: np.ndarray) -> np.ndarray:
        return -(expit(-(t @ rows.T)) * counts) @ rows + Lam * t + b[open_]

    for _ in range(300):
        r = residual(theta[open_])
        norm = np.linalg.norm(r, axis=1)
        left = norm > 1e-9
        open_, r, norm = open_[left], r[left], norm[left]
        if len(open_) == 0:
            return theta
        p = expit(theta[open_] @ rows.T)
        step = np.linalg.solve(hessians(rows, counts * p * (1 - p), Lam), r[..., None])[..., 0]
        size = np.ones(len(open_))
        for _ in range(30):
            worse = np.linalg.norm(residual(theta[open_] - size[:, None] * step), axis=1) > (1 - 1e-4 * size) * norm
            if not worse.any():
                break
            size[worse] *= 0.5
        theta[open_] -= size[:, None] * step
    raise AssertionError("not solved")


def losses(
    common: np.ndarray,
    counts: np.ndarray,
    z: np.ndarray | None,
    other: np.ndarray | None,
    Lam: float,
    sigma: float,
    draws: int = 10_000,
) -> np.ndarray:
    """Exact ln p_D(theta)/p_D'(theta) at theta drawn under D = common + z, against D' = common + other."""
    rng = np.random.default_rng(5)

    def parts(extra: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return (common, counts) if extra is None else (np.vstack([common, extra]), np.append(counts, 1.0))

    theta = solve(*parts(z), Lam, sigma * rng.standard_normal((draws, 2)))

    def log_density(extra: np.ndarray | None) -> np.ndarray:
        rows, weight = parts(extra)
        p = expit(theta @ rows.T)
        b = (1 - p) * weight @ rows - Lam * theta
        hessian = hessians(rows, weight * p * (1 - p), Lam)
        return -(b**2).sum(axis=1) / (2 * sigma**2) + np.log(np.linalg.det(hessian))

    return log_density(z) - log_density(other)


def observed(loss: np.ndarray, epsilon: float) -> tuple[float, float]:
    """E(1 - e^(eps - L))_+ and its standard error."""
    values = -np.expm1(np.minimum(epsilon - loss, 0.0))
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


# many rows push theta far along -e1, where two rows that point there and to opposite sides both have slope -1
FAR = (np.array([[-0.05, 0.0]]), np.array([1e6]))


SIDES = (np.array([0.1, math.sqrt(0.99)]), np.array([0.1, -math.sqrt(0.99)]))


NEAR = (np.array([[0.6, 0.3], [-0.2, 0.9], [0.1, -0.7], [-0.8, 0.1]]), np.array([3.0, 2.0, 4.0, 1.0]))


def test_the_one_sided_bound_is_attained_and_less_noise_breaks_it() -> None:
    epsilon, Lam, delta = 4.0, 10.0, 0.02
    sigma = PerturbedObjective(G=1.0, beta=0.25, Lam=Lam, bound="one-sided").sigma(Budget(epsilon, delta))

    def found(scale: float) -> tuple[float, float]:
        return observed(losses(*FAR, *SIDES, Lam, scale * sigma), epsilon)

    value, error = found(1.0)
    assert value <= delta + 5 * error
    assert value > 0.85 * delta
    for scale in (0.95, 0.9):  # controls: too little noise is caught
        value, error = found(scale)
        assert value > delta + 5 * error
    # and so is noise that was calibrated for add/remove
    wrong = PerturbedObjective(G=1.0, beta=0.25, Lam=Lam, relation=ADD).sigma(Budget(epsilon, delta))
    value, error = observed(losses(*FAR, *SIDES, Lam, wrong), epsilon)
    assert value > delta + 5 * error


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 10.0, 60.0])
@pytest.mark.parametrize("Lam", [0.01, 0.1, 0.5, 2.0, 100.0])
def test_slope_and_curvature_together_cost_epsilon_at_the_worst_slope(epsilon: float, Lam: float) -> None:
    found, slopes = joint_remainder(epsilon, 0.25, Lam), np.linspace(0, 1, 100_001)
    cost = np.max(found / 2 * (1 + slopes) + np.log1p(slopes * (1 - slopes) / Lam))
    if epsilon > math.log1p(0.25 / Lam):  # else no noise is enough
        assert cost == pytest.approx(epsilon, rel=1e-9)
        assert epsilon - math.log1p(0.25 / Lam) < found <= epsilon
        assert (found == epsilon) == (Lam >= 2 / epsilon), "curvature costs nothing from 8 beta/epsilon on"
    else:
        assert found <= 0


def cms_log_ratio(
    theta: np.ndarray,
    common: np.ndarray,
    counts: np.ndarray,
    pair: tuple[np.ndarray, np.ndarray],
    cal: Calibration,
    weights: tuple[float, float] = (1.0, 1.0),
) -> np.ndarray:
    """(N,) exact ln p_D(theta)/p_D'(theta) of pure objective perturbation, D = common + pair[0], D' = common + pair[1].

    Args:
        weights: of the rows of the pair.
    """

    def log_density(extra: np.ndarray, own: float) -> np.ndarray:
        rows, weight = np.vstack([common, extra]), np.append(counts, own)
        p, Lam = expit(theta @ rows.T), cal.details["Lam"]
        b = (expit(-theta @ rows.T) * weight) @ rows - Lam * theta
        return -np.linalg.norm(b, axis=1) / cal.noise_scale + np.log(np.linalg.det(hessians(rows, weight * p * (1 - p), Lam)))

    return log_density(pair[0], weights[0]) - log_density(pair[1], weights[1])


CMS_BUDGETS = [(slack, e, lam) for slack in ("joint", "balanced", "tight") for e, lam in ((1.0, 0.5), (1.0, 3.0), (10.0, 0.05))]


@pytest.mark.parametrize(("slack", "epsilon", "lam"), CMS_BUDGETS)
def test_cms_log_ratio_stays_within_epsilon(slack: str, epsilon: float, lam: float) -> None:
    rng = np.random.default_rng(2)
    cal, worst = dpviz.calibrate("cms-objective", n=1, d=2, epsilon=epsilon, lam=lam, slack=slack), 0.0
    theta = rng.standard_normal((20_000, 2)) * rng.choice([0.1, 1, 10, 60], size=(20_000, 1))
    opposite = np.array([0.6, 0.8]), np.array([-0.6, -0.8])
    for common, counts in (NEAR, FAR):
        for pair in (SIDES, (np.array([1.0, 0.0]), np.array([0.0, 1.0])), opposite):
            for length, weights in ((1.0, (1.0, 1.0)), (0.5, (1.0, 1.0)), (1.0, (0.3, 1.0))):  # short, and of little weight
                one = (length * pair[0], pair[1])
                worst = max(worst, float(np.abs(cms_log_ratio(theta, common, counts, one, cal, weights)).max()))
    line = (np.array([[0.7, 0.0], [-0.4, 0.0]]), np.array([2.0, 3.0]), (np.array([1.0, 0.0]), np.array([-1.0, 0.0])))
    worst = max(worst, float(np.abs(cms_log_ratio(theta * [1, 0], *line, cal)).max()))  # one dimension
    # these rows come to 0.65 to 0.86 of epsilon, and with twice the noise to about half of that
    assert 0.6 * epsilon < worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "lam"), [(1.0, 0.5), (1.0, 3.0), (3.0, 0.2), (10.0, 0.05), (10.0, 1.0)])
def test_the_joint_bound_is_attained_and_less_noise_breaks_it(epsilon: float, lam: float) -> None:
    """At theta = -1000 e1: one row of slope t beside e2, one of slope 1 beside -e2, and five that turn b to -e2.

    The common row beside e1 balances b there, and its curvature is orthogonal to what matters.
    """
    cal = dpviz.calibrate("cms-objective", n=1, d=2, epsilon=epsilon, lam=lam)
    theta = np.array([[-1000.0, 0.0]])
    common = np.array([[0.1, -math.sqrt(0.99)], [-0.05, 0.0]])
    counts = np.array([5.0, (1000 * cal.details["Lam"] + 0.5) / (0.05 * expit(-50))])
    steep = np.array([0.05, -math.sqrt(1 - 0.05**2)])

    def found(scale: float) -> float:
        less = dataclasses.replace(cal, noise_scale=scale * cal.noise_scale)
        sides = [np.log(t / (1 - t)) / 1000 for t in np.linspace(0.01, 0.9999, 200)]
        pairs = [(np.array([u, math.sqrt(1 - u * u)]), steep) for u in sides]
        return max(float(cms_log_ratio(theta, common, counts, pair, less)[0]) for pair in pairs)

    assert 0.99 * epsilon < found(1.0) <= epsilon * (1 + 1e-9)
    assert found(0.95) > epsilon  # control
