"""Units, conditions and formulas that several rows of the papers' tables have in common."""

import math
import operator
from collections.abc import Callable

from dpviz.papers.rates import Condition, Facts, Formula

GRADIENT = "noise variance, gradient"
DATA = "noise variance, features"
MODEL = "noise variance, model"
RISK = "expected excess empirical risk"
POPULATION = "expected excess population risk"
UNREADABLE = "The print cannot be read reliably in the copy used here, so the row is not plotted."


def log_inverse_delta(f: Facts) -> float:
    return math.log(1 / f.delta)


def need(words: str, holds: Callable[[Facts], bool], reason: Callable[[Facts], str]) -> Condition:
    return Condition(words, lambda f: None if holds(f) else reason(f))


def upper_limit(
    words: str, limit: Callable[[Facts], float], note: str, within: Callable[[float, float], bool] = operator.lt
) -> Condition:
    """epsilon below a limit; with `operator.le` also at it."""
    return need(
        words,
        lambda f: within(f.epsilon, limit(f)),
        lambda f: f"needs {words}, which is {limit(f):.3g} here, and ε = {f.epsilon:.3g}{note}",
    )


#: Theorem 1 of Abadi et al. 2016 with one row a batch, where the row's own publication does not state it
MOMENTS_ROW = upper_limit("ε < c₁T/n²", lambda f: f.steps / f.n**2, "; c₁ = 1, q = 1/n (Abadi et al. 2016, Theorem 1: ε < c₁q²T)")
#: the same with q of the order of 1/|B| = 1/(qn), so that q² is 1/n
MOMENTS_BATCH = upper_limit("ε < c₁q²T", lambda f: f.steps / f.n, "; c₁ = 1, q = 1/√n (Abadi et al. 2016, Theorem 1)")
MOMENTS_FULL = upper_limit("ε < c₁T", lambda f: f.steps, "; c₁ = 1, all rows in every step")
CLASSICAL = need(
    "ε < 1",
    lambda f: f.epsilon < 1,
    lambda f: f"needs ε < 1, where the classical Gaussian noise is proved, and ε = {f.epsilon:.3g}",
)
SVRG_RANGE = upper_limit(
    "ε ≤ c₁Tm/n²", lambda f: f.steps * f.inner / f.n**2, "; c₁ = 1 (Wang, Ye, Xu 2017, Theorem 4.1)", operator.le
)
BASSILY_RANGE = upper_limit(
    "ε of order at most √ln(1/δ)",
    lambda f: math.sqrt(log_inverse_delta(f)),
    "; constant 1, recalled from Bassily et al. 2014",
    operator.le,
)
LOCAL_RANGE = need(
    "ε ≤ 1", lambda f: f.epsilon <= 1, lambda f: f"needs ε ≤ 1, as this form of the rate does (recalled), and ε = {f.epsilon:.3g}"
)


def gd_noise(f: Facts) -> float:
    return f.G**2 * f.steps * log_inverse_delta(f) / (f.n * f.epsilon) ** 2


def gd_excess(f: Facts) -> float:
    return f.d * f.G**2 * log_inverse_delta(f) * math.log(f.n) / (f.n * f.epsilon) ** 2


MOMENTS = "the constant c of the moments accountant, which no paper gives"
GD_EXCESS = "1/μ (or 1/L), the choice T of order ln n, and the start's distance to the minimum"
GD_NOISE = Formula(r"\frac{G^2T\log(1/\delta)}{n^2\varepsilon^2}", gd_noise, GRADIENT, MOMENTS)
GD_NOISE_DATA = Formula(GD_NOISE.latex, gd_noise, DATA, "the constant c, and the weights w_t of the rows")
EXCESS_M = Formula(r"\frac{m\,G^2\log(1/\delta)\log n}{n^2\varepsilon^2}", gd_excess, RISK, GD_EXCESS)
EXCESS_P = Formula(r"\frac{G^2p\log n\,\log(1/\delta)}{n^2\varepsilon^2}", gd_excess, RISK, GD_EXCESS + "; one ln n is missing")

#: for rows whose publication states no range of epsilon although its proof rests on a theorem that needs one
RANGE_LEFT_OUT = "The paper states the row for every ε > 0; the range is that of Abadi et al. 2016, on which its proof rests."
NOT_PROVED = "The privacy proof of this method does not hold; a small number here is not a merit."
LNN_STEPS = need(
    "T of order ln n",
    lambda f: f.steps <= 10 * math.log(f.n),
    lambda f: f"needs T of order ln n = {math.log(f.n):.3g} and T = {f.steps} (more than ten times that counts as broken)",
)
