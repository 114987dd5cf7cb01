"""Worst-case L2 sensitivities under replace-one, as pure functions of public constants.

Symbols: n rows, lam > 0 regularisation, G bound on a row's data gradient, mu strong convexity, L smoothness of the
regularised loss, m batches a pass, `batch_size` the size of the smallest batch. The regulariser does not depend on
data, so one replaced row changes a gradient sum by at most 2G whatever lam is; papers that bound the regularised
gradient instead pay up to twice as much.

Every function raises InvalidInput on arguments outside the range that its proof needs. A sensitivity that exceeds
what a double holds is returned as inf.

A worst-case sensitivity with its source.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_choice, check_integer, positive
from dpviz.privacy.sensitivity.algorithm2 import LIMIT, Trace, check_convexity, contraction, geometric, log_factor


@dataclass(frozen=True)
class Bound:
    """A worst-case sensitivity from one source.

    Attributes:
        label: short name for people.
        value: L2 distance under replace-one.
        formula: LaTeX.
        source: author, year, number.
        proved: False where the published bound was stated for another step size or rests on more than is checked.
    """

    label: str
    value: float
    formula: str
    source: str
    proved: bool = True


WU_RULES = ("convex-constant", "convex-decreasing", "convex-sqrt", "sc-constant", "sc-decreasing")


def balanced_batches(n: int, batch_size: int) -> tuple[int, int, Floats]:
    """(m, smallest batch, (m,) probability of a uniformly placed row for each batch).

    m = floor(n / batch_size) batches of floor(n/m) or ceil(n/m) rows, the larger ones first: a short last batch would
    have a larger sensitivity than the others. A batch size above n is one batch of all rows.
    """
    n, b = check_integer("n", n, 1, 2**53), check_integer("batch_size", batch_size, 1, 2**53)
    m = max(1, n // b)
    sizes = np.full(m, n // m, dtype=float)
    sizes[: n % m] += 1
    return m, n // m, sizes / n


def cms(n: int, lam: float, G: float = 1.0) -> float:
    """2G/(n lam): how far the exact minimiser moves (Chaudhuri, Monteleoni, Sarwate 2011, Corollary 8, for any G)."""
    return 2 * positive("G", G) / (positive("n", n) * positive("lam", lam))


def zhang(n: int, mu: float, L: float, G: float = 1.0) -> float:
    """5 G (L + mu)/(n mu L): full-batch descent, step 1/(L + mu) (Zhang et al. 2017, as quoted by Chen et al. 2019)."""
    check_convexity(mu, L, strongly=True)
    return 5 * positive("G", G) * (L + mu) / (positive("n", n) * mu * L)


def gradient_descent(n: int, steps: int, step: float, mu: float, L: float, G: float = 1.0) -> float:
    """(2 eta G/n)(1 - rho^T)/(1 - rho): T full-batch steps of fixed size, exact value of the recursion.

    Chen et al. 2019, Lemma 2 with one batch, unrolled over T steps; T -> inf is Proposition 2 [ours: finite T].
    """
    check_convexity(mu, L)
    eta = positive("step", step)
    rho = contraction(eta, mu, L)
    return 2 * eta * positive("G", G) / positive("n", n) * float(geometric(rho, check_integer("steps", steps, 1, LIMIT)))


def proposition2(step: float, batch_size: int, batches: int, mu: float, L: float, G: float = 1.0) -> float:
    """2 eta G/(batch_size (1 - rho^m)): fixed step, any number of epochs (Chen et al. 2019, Proposition 2).

    At m = 1 and eta = 2/(L + mu) this is 2G/(n mu).

    Raises:
        InvalidInput: rho >= 1, that is eta >= 2/L, where the bound does not exist.
    """
    check_convexity(mu, L, strongly=True)
    eta, m = positive("step", step), check_integer("batches", batches, 1, LIMIT)
    rho = float(contraction(eta, mu, L))
    if rho >= 1:
        raise InvalidInput("step", f"{eta:g} does not contract: it must lie below 2/L = {2 / L:.4g}", "Choose a smaller step.")
    shrink = -math.expm1(m * math.log(rho)) if rho > 0 else 1.0
    return 2 * eta * positive("G", G) / (positive("batch_size", batch_size) * shrink)


def wu_bolt_on(
    rule: str,
    *,
    passes: int,
    batch_size: int,
    batches: int,
    mu: float = 0.0,
    L: float,
    G: float = 1.0,
    step: float | None = None,
    n: float | None = None,
    decay: float = 0.5,
) -> float:
    """Closed-form sensitivities of permutation-based SGD (Wu et al., SIGMOD 2017, Corollaries 1 to 3, Lemmas 7 and 8).

    Args:
        rule: one of `WU_RULES`, with t the number of the update from 1:
            convex-constant, eta <= 2/L: 2 k G eta/b;
            convex-decreasing, eta_t = 2/(L (t + n^c)): (4G/(L b)) sum_{j<k} 1/(j N + 1 + n^c);
            convex-sqrt, eta_t = 2/(L (sqrt t + n^c)): the same with sqrt(j N + 1);
            sc-constant, eta <= 1/L: (2 eta G/b)/(1 - (1 - eta mu)^N);
            sc-decreasing, eta_t = min(1/L, 1/(mu t)): 2G/(mu N b), whatever k and b are.
        passes: k.
        batch_size: b, the smallest batch.
        batches: N, batches a pass (the paper's m/b).
        step: eta of the constant rules.
        n: rows; batch_size * batches where not given. Enters the decreasing convex rules only.
        decay: c in [0, 1) of the decreasing convex rules.
    """
    check_choice("rule", rule, WU_RULES)
    check_convexity(mu, L, strongly=rule.startswith("sc"))
    k, b = check_integer("passes", passes, 1, LIMIT), positive("batch_size", batch_size)
    N = check_integer("batches", batches, 1, LIMIT)
    gradient = positive("G", G)
    if rule == "sc-decreasing":
        return 2 * gradient / (mu * N * b)
    if rule.endswith("constant"):
        eta, limit = positive("step", step), (1 if rule == "sc-constant" else 2) / L
        if eta > limit * (1 + 1e-12):
            raise InvalidInput("step", f"{eta:g} is above {limit:.4g}, where the proof of {rule} ends", "Choose a smaller step.")
        if rule == "convex-constant":
            return 2 * k * gradient * eta / b
        return 2 * eta * gradient / (b * -math.expm1(N * math.log1p(-eta * mu))) if eta * mu < 1 else 2 * eta * gradient / b
    t = N * np.arange(k) + 1.0
    offset = (b * N if n is None else positive("n", n)) ** _decay(decay)
    return float(4 * gradient / (L * b) * np.sum(1 / ((np.sqrt(t) if rule == "convex-sqrt" else t) + offset)))


def wu_steps(
    rule: str, *, passes: int, batches: int, mu: float, L: float, step: float | None = None, n: float = 1.0, decay: float = 0.5
) -> Floats:
    """(passes * batches,) step sizes of every update under a rule of `wu_bolt_on`; same arguments."""
    check_choice("rule", rule, WU_RULES)
    check_convexity(mu, L, strongly=rule.startswith("sc"))
    t = np.arange(1.0, check_integer("passes", passes, 1, LIMIT) * check_integer("batches", batches, 1, LIMIT) + 1)
    if rule == "sc-decreasing":
        return np.minimum(1 / L, 1 / (mu * t))
    if rule.endswith("constant"):
        return np.full(len(t), positive("step", step))
    return 2 / (L * ((np.sqrt(t) if rule == "convex-sqrt" else t) + positive("n", n) ** _decay(decay)))


def step_recursion(steps: Floats, batches: int, batch_size: int, mu: float, L: float, G: float = 1.0) -> Floats:
    """(m,) sensitivity for each batch that may hold the replaced row, for any step size of every update.

    Chen et al. 2019, Lemma 2, unrolled: every visit adds 2 eta G/batch_size, every later update multiplies by its rho.

    Args:
        steps: (T m,) step sizes in the order of the updates, T whole passes over m batches.
    """
    check_convexity(mu, L)
    m = check_integer("batches", batches, 1, LIMIT)
    eta = np.asarray(steps, float).ravel()
    if len(eta) == 0 or len(eta) % m or not (np.isfinite(eta).all() and (eta > 0).all()):
        raise InvalidInput("steps", f"must be positive, for whole passes over {m} batches", "Give passes x batches step sizes.")
    log_rho = log_factor(contraction(eta, mu, L))
    later = np.cumsum(log_rho[::-1])[::-1] - log_rho
    with np.errstate(over="ignore"):
        added = np.exp(np.log(2 * eta * positive("G", G) / positive("batch_size", batch_size)) + later)
        return added.reshape(-1, m).sum(axis=0)


def step_trace(steps: Floats, batches: int, batch_size: int, mu: float, L: float, G: float = 1.0, positions: int = 12) -> Trace:
    """`step_recursion` as it runs, for at most `positions` evenly spaced batch positions; see there for the arguments."""
    m, eta = batches, np.asarray(steps, float)
    step_recursion(eta, m, batch_size, mu, L, G)  # refuses what means nothing
    kept = max(2, min(positions, 10**6 // len(eta)))
    chosen = np.unique(np.round(np.linspace(1, m, min(m, kept)))).astype(int)
    rho = contraction(eta, mu, L)
    expands = np.arange(len(eta))[:, None] % m == chosen - 1
    value = np.zeros((len(eta) + 1, len(chosen)))
    with np.errstate(over="ignore"):
        for t, (r, added) in enumerate(zip(rho.tolist(), (2 * eta * G / batch_size).tolist(), strict=True)):
            value[t + 1] = r * value[t] + added * expands[t]
    return Trace.build(np.arange(len(eta) + 1) / m, value, chosen, ["start"] + ["update"] * len(eta), eta, rho, m)


def logistic_diameter(radius: float) -> float:
    """D(r) = sup over |w| <= r of |g(w, z) - g(w, z')| for the logistic loss on unit-ball rows, in [1, 2) [ours].

    With p, q the cosines between w and the two signed rows and s(p) = 1/(1 + e^(r p)),
    D^2 = max (s(p) p - s(q) q)^2 + (s(p) sqrt(1-p^2) + s(q) sqrt(1-q^2))^2. It replaces 2G wherever |w| <= r is
    known without looking at data. The huberised hinge has D(r) = 2 for every r, attained at w = 0.
    """
    return _worst_pair(radius)[0]


def logistic_worst_pair(radius: float) -> tuple[float, float]:
    """(p, q): the cosines with w, |w| = radius, of two signed unit rows whose gradients are D(radius) apart at w."""
    return _worst_pair(radius)[1:]


@lru_cache(maxsize=256)
def _worst_pair(radius: float) -> tuple[float, float, float]:
    if not (isinstance(radius, int | float) and math.isfinite(radius) and radius >= 0):
        raise InvalidInput("radius", f"must be a finite number of at least 0, got {radius!r}", "Give a radius.")
    low, high = np.full(2, -1.0), np.full(2, 1.0)

    def alike(x: float) -> float:  # p = q = -x, where the largest value is for small r, between the points of any grid
        return 2 * math.sqrt(1 - x * x) / (1 + math.exp(-radius * x))

    x = float(minimize_scalar(lambda x: -alike(x), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12}).x)
    best, pair = max((alike(x) ** 2, (-x, -x)), (1.0, (0.0, 0.0)))
    for _ in range(14):  # a grid that closes in on its best point; the error is quadratic in the last spacing
        p, q = np.meshgrid(*(np.linspace(a, b, 61) for a, b in zip(low, high, strict=True)), indexing="ij")
        with np.errstate(over="ignore"):
            s, t = 1 / (1 + np.exp(radius * p)), 1 / (1 + np.exp(radius * q))
        value = (s * p - t * q) ** 2 + (s * np.sqrt(1 - p * p) + t * np.sqrt(1 - q * q)) ** 2
        at = np.unravel_index(int(value.argmax()), value.shape)
        if float(value[at]) > best:
            best, pair = float(value[at]), (float(p[at]), float(q[at]))
        centre, half = np.array([p[at], q[at]]), (high - low) / 8
        low, high = np.maximum(centre - half, -1), np.minimum(centre + half, 1)
    return min(math.sqrt(best) * (1 + 1e-12), 2.0), *pair


def minimiser_radius(lam: float) -> float:
    """Bound on the norm of the regularised logistic minimiser: min(1/lam, sqrt(2 ln 2/lam)) [ours, elementary].

    lam |theta*| is the norm of a mean of gradients, each at most 1; lam/2 |theta*|^2 <= F(theta*) <= F(0) = ln 2.
    """
    return min(1 / positive("lam", lam), math.sqrt(2 * math.log(2) / lam))


def cms_refined(n: int, lam: float) -> float:
    """D(r)/(n lam) with r the bound on the minimiser's norm: `cms` for the logistic loss, tighter [ours].

    F' - F = (l(z') - l(z))/n and strong convexity give lam |theta - theta'| <= |g(theta', z) - g(theta', z')|/n.
    """
    return logistic_diameter(minimiser_radius(lam)) / (positive("n", n) * lam)


def _decay(decay: float) -> float:
    if not 0 <= decay < 1:
        raise InvalidInput("decay", f"must lie in [0, 1), got {decay!r}", "Give a number from 0 to just below 1.")
    return float(decay)
