"""The rows of the papers' tables, as printed. See `dpviz.papers.rates` for what the numbers mean.

Where the text of a paper says more than its table, the row says so in `remarks`. "Recalled" marks a condition of a
cited publication that is stated from memory of it and not from the three papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpviz.papers.rates import Condition, Facts, Formula, Row

GRADIENT = "noise variance, gradient"
DATA = "noise variance, features"
MODEL = "noise variance, model"
RISK = "expected excess empirical risk"
POPULATION = "expected excess population risk"
UNREADABLE = "The print cannot be read reliably in the copy used here, so the row is not plotted."


def _log1(f: Facts) -> float:
    return math.log(1 / f.delta)


def _need(words: str, holds: Callable[[Facts], bool], reason: Callable[[Facts], str]) -> Condition:
    return Condition(words, lambda f: None if holds(f) else reason(f))


def _below(words: str, limit: Callable[[Facts], float], note: str = "") -> Condition:
    """epsilon below a limit."""
    return _need(
        words,
        lambda f: f.epsilon < limit(f),
        lambda f: f"needs {words}, which is {limit(f):.3g} here, and ε = {f.epsilon:.3g}{note}",
    )


MOMENTS_ROW = _below("ε < c₁T/n²", lambda f: f.steps / f.n**2, "; c₁ = 1, q = 1/n (Abadi et al. 2016, Theorem 1: ε < c₁q²T)")
MOMENTS_FULL = _below("ε < c₁T", lambda f: f.steps, "; c₁ = 1, all rows in every step")
CLASSICAL = _need(
    "ε < 1",
    lambda f: f.epsilon < 1,
    lambda f: f"needs ε < 1, where the classical Gaussian noise is proved, and ε = {f.epsilon:.3g}",
)
SVRG_RANGE = _below("ε ≤ c₁Tm/n²", lambda f: f.steps * f.inner / f.n**2, "; c₁ = 1 (Wang, Ye, Xu 2017, Theorem 4.1)")
BASSILY_RANGE = _below(
    "ε of order at most √ln(1/δ)", lambda f: math.sqrt(_log1(f)), "; constant 1, recalled from Bassily et al. 2014"
)
LOCAL_RANGE = _need(
    "ε ≤ 1", lambda f: f.epsilon <= 1, lambda f: f"needs ε ≤ 1, as this form of the rate does (recalled), and ε = {f.epsilon:.3g}"
)


def _gd_noise(f: Facts) -> float:
    return f.G**2 * f.steps * _log1(f) / (f.n * f.epsilon) ** 2


def _gd_excess(f: Facts) -> float:
    return f.d * f.G**2 * _log1(f) * math.log(f.n) / (f.n * f.epsilon) ** 2


MOMENTS = "the constant c of the moments accountant, which no paper gives"
GD_EXCESS = "1/μ (or 1/L), the choice T of order ln n, and the start's distance to the minimum"
GD_NOISE = Formula(r"\frac{G^2T\log(1/\delta)}{n^2\varepsilon^2}", _gd_noise, GRADIENT, MOMENTS)
GD_NOISE_DATA = Formula(GD_NOISE.latex, _gd_noise, DATA, "the constant c, and the weights w_t of the rows")
EXCESS_M = Formula(r"\frac{m\,G^2\log(1/\delta)\log n}{n^2\varepsilon^2}", _gd_excess, RISK, GD_EXCESS)
EXCESS_P = Formula(r"\frac{G^2p\log n\,\log(1/\delta)}{n^2\varepsilon^2}", _gd_excess, RISK, GD_EXCESS + "; one ln n is missing")

NOT_PROVED = "The privacy proof of this method does not hold; a small number here is not a merit."
LNN_STEPS = _need(
    "T of order ln n",
    lambda f: f.steps <= 10 * math.log(f.n),
    lambda f: f"needs T of order ln n = {math.log(f.n):.3g} and T = {f.steps} (more than ten times that counts as broken)",
)

DBDP: tuple[Row, ...] = (
    Row(
        "dbdp",
        "Song et al. 2013",
        "gradient",
        "exponential",
        Formula(
            r"\frac{G}{\varepsilon}",
            lambda f: f.G / f.epsilon,
            "noise scale 1/β per batch of one row",
            "the factor 2 of a replaced row, and division by the batch size",
        ),
        assumes=("each row used in one step only", "G-Lipschitz"),
        mechanism="song-sgd",
    ),
    Row(
        "dbdp",
        "Abadi et al. 2016",
        "gradient",
        "Gaussian",
        GD_NOISE,
        conditions=(MOMENTS_ROW,),
        assumes=("Poisson batches", "gradients clipped at G"),
        mechanism="dp-sgd",
        remarks=("The table has q = 1/n in place of Abadi's q.",),
    ),
    Row(
        "dbdp",
        "Wu et al. 2017",
        "output",
        "Gaussian",
        Formula(
            r"\frac{G^2\log(1.25/\delta)}{n^2\varepsilon^2}",
            lambda f: f.G**2 * math.log(1.25 / f.delta) / (f.n * f.epsilon) ** 2,
            MODEL,
            "1/μ², which is a million at μ = 0.001: the sensitivity is 2G/(μn)",
        ),
        Formula(
            r"\frac{G^2+\log n}{n}+\frac{m}{n\varepsilon}",
            lambda f: (f.G**2 + math.log(f.n)) / f.n + f.d / (f.n * f.epsilon),
            RISK,
            "L, μ and log(1/δ)",
        ),
        conditions=(CLASSICAL,),
        assumes=("convex or strongly convex", "G-Lipschitz", "L-smooth"),
        mechanism="bolt-on-psgd",
    ),
    Row(
        "dbdp",
        "Wang et al. 2019 (DP-LSSGD)",
        "gradient",
        "Gaussian",
        Formula(
            r"\frac{G^2T(\log(1/\delta)+\varepsilon)}{n^2\varepsilon^2}",
            lambda f: f.G**2 * f.steps * (_log1(f) + f.epsilon) / (f.n * f.epsilon) ** 2,
            GRADIENT,
            MOMENTS,
        ),
        Formula(
            r"\frac{G\sqrt{G^2m\log(1/\delta)}}{n\varepsilon}",
            lambda f: f.G * math.sqrt(f.G**2 * f.d * _log1(f)) / (f.n * f.epsilon),
            RISK,
            "the smoothing and the start's distance",
        ),
        assumes=("G-Lipschitz", "side conditions on ε of the publication that are not checked here"),
        mechanism="dp-lssgd",
    ),
    Row(
        "dbdp",
        "DBDP-ERM",
        "input",
        "Gaussian",
        GD_NOISE_DATA,
        EXCESS_M,
        conditions=(MOMENTS_ROW, LNN_STEPS),
        assumes=("G-Lipschitz", "|∇ₓ∇_θ ℓ| has an infimum above 0", "q of the order of 1/|B|"),
        mechanism="dbdp",
        remarks=(NOT_PROVED, "Theorem 1 has σ = cqG√(T log(1/δ))/ε, with q of order 1/√n: a variance n times the table's."),
    ),
    Row(
        "dbdp",
        "DBDP-ERM, performance improving",
        "input",
        "Gaussian",
        GD_NOISE_DATA,
        EXCESS_M,
        conditions=(MOMENTS_ROW, LNN_STEPS),
        assumes=("G-Lipschitz", "L-smooth", "strongly convex", "α = 1/L"),
        mechanism="dbdp-pi",
        remarks=(NOT_PROVED, "The risk is the worst case, in which every row meets noise (Theorem 3)."),
    ),
)


def _cms_obj_gap(f: Facts) -> float:
    ratio = (f.L - f.mu) / (f.n * f.mu)  # the loss's own curvature
    return f.epsilon - math.log(1 + 2 * ratio + ratio**2)


def _kst_noise(f: Facts) -> float:
    return f.G**2 * (f.epsilon + math.log(4 / f.delta**2)) / f.epsilon**2


INPUT: tuple[Row, ...] = (
    Row(
        "input",
        "Chaudhuri et al. 2011, output",
        "output",
        "γ-exponential",
        Formula(
            r"\gamma = n\lambda\varepsilon",
            lambda f: f.n * f.mu * f.epsilon,
            "rate γ of the noise: more is less noise",
            "a factor 1/2: γ = nλε/2 exactly",
        ),
        Formula(
            r"\frac{p^2\log^2(p/\delta)\,(L+\lambda)}{\lambda^2n^2\varepsilon^2}",
            lambda f: (f.d * math.log(f.d / f.failure)) ** 2 * f.L / (f.mu * f.n * f.epsilon) ** 2,
            RISK,
            "a small constant; its δ is the chance that the bound fails, not the budget's",
        ),
        assumes=("convex, 1-Lipschitz", "rows in the unit ball", "exact minimiser"),
        mechanism="cms-output",
        remarks=("The table's L is the loss's own, so L + λ is what L is elsewhere.",),
    ),
    Row(
        "input",
        "Chaudhuri et al. 2011, objective",
        "objective",
        "γ-exponential",
        Formula(
            r"\gamma = \varepsilon-\log\!\Bigl(1+\tfrac{2L}{n\lambda}+\tfrac{L^2}{n^2\lambda^2}\Bigr)",
            _cms_obj_gap,
            "rate γ of the noise: more is less noise",
            "a factor 1/2",
        ),
        Formula(
            r"\frac{p^2\log^2(p/\delta)}{\lambda n^2\varepsilon^2}",
            lambda f: (f.d * math.log(f.d / f.failure)) ** 2 / (f.mu * (f.n * f.epsilon) ** 2),
            RISK,
            "a small constant; its δ is the chance that the bound fails",
        ),
        conditions=(
            _need(
                "ε > 2 log(1 + L/(nλ))",
                lambda f: _cms_obj_gap(f) > 0,
                lambda f: f"needs ε > 2 log(1 + L/(nλ)) = {f.epsilon - _cms_obj_gap(f):.3g}; below that, λ is raised",
            ),
        ),
        assumes=("twice differentiable", "1-Lipschitz", "exact minimiser"),
        mechanism="cms-objective",
    ),
    Row(
        "input",
        "Kifer et al. 2012",
        "objective",
        "Gaussian",
        Formula(
            r"\frac{\zeta^2(\varepsilon+\log(4/\delta^2))}{\varepsilon^2}",
            _kst_noise,
            "noise variance, summed objective",
            "a factor 4: 8 log(2/δ) + 4ε; ζ = 2G for a replaced row",
        ),
        Formula(
            r"\frac{\lVert b\rVert^2}{n^2\Delta}+\Delta\lVert\hat\theta\rVert^2",
            lambda f: f.d * _kst_noise(f) / (f.n**2 * f.mu) + f.mu * min(f.radius, math.sqrt(2 * math.log(2) / f.mu)) ** 2,
            RISK,
            "constants; evaluated with |b|² = p times the variance in this row and |θ̂|² at most 2 ln 2/Δ",
        ),
        conditions=(
            _need(
                "Δ ≥ 2L/(nε)",
                lambda f: f.mu >= 2 * (f.L - f.mu) / (f.n * f.epsilon),
                lambda f: f"needs Δ ≥ 2L/(nε) = {2 * (f.L - f.mu) / (f.n * f.epsilon):.3g} (mean objective), and μ = {f.mu:.3g}",
            ),
        ),
        assumes=("twice differentiable", "rank-one curvature per row"),
        mechanism="kst-objective",
    ),
    Row(
        "input",
        "Bassily et al. 2014",
        "gradient",
        "Gaussian",
        Formula(
            r"\frac{G^2n^2\log(n/\delta)\log(1/\delta)}{\varepsilon^2}",
            lambda f: f.G**2 * f.n**2 * math.log(f.n / f.delta) * _log1(f) / f.epsilon**2,
            "noise variance, n times a gradient",
            "a factor 32",
        ),
        Formula(
            r"\frac{G^2p\log^2(n/\delta)\log(1/\delta)}{n\,\Delta\,\varepsilon^2}",
            lambda f: f.G**2 * f.d * math.log(f.n / f.delta) ** 2 * _log1(f) / (f.n * f.mu * f.epsilon**2),
            RISK,
            "constants",
        ),
        conditions=(
            BASSILY_RANGE,
            _need("T = n²", lambda f: f.steps >= f.n**2, lambda f: f"needs n² = {float(f.n) ** 2:.3g} steps, and T = {f.steps}"),
        ),
        assumes=("Δ-strongly convex summands, objective a sum: Δ = nμ would turn 1/n into 1/n² on the mean",),
        mechanism="bassily-sgd",
    ),
    Row(
        "input",
        "Zhang et al. 2017",
        "output",
        "Gaussian",
        Formula(
            r"\frac{G^2(1+L/\Delta)^2\log(2/\delta)}{n^2L^2\varepsilon^2}",
            lambda f: f.G**2 * (1 + f.L / f.mu) ** 2 * math.log(2 / f.delta) / (f.n * f.L * f.epsilon) ** 2,
            MODEL,
            "a factor 50",
        ),
        Formula(
            r"\frac{LG^2p\log(1/\delta)}{n^2\varepsilon^2\Delta^2}",
            lambda f: f.L * f.G**2 * f.d * _log1(f) / (f.n * f.epsilon * f.mu) ** 2,
            RISK,
            "a constant near 25",
        ),
        conditions=(CLASSICAL,),
        assumes=("strongly convex", "step 1/(L+Δ)"),
        mechanism="outpert-gd",
    ),
    Row(
        "input",
        "Wang et al. 2017, DP-SVRG",
        "gradient",
        "Gaussian",
        Formula(r"\frac{G^2Tm\log(1/\delta)}{n^2\varepsilon^2}", lambda f: _gd_noise(f) * f.inner, GRADIENT, MOMENTS),
        Formula(r"\frac{G^2p\log n\,\log(1/\delta)}{n^2\Delta\varepsilon^2}", lambda f: _gd_excess(f) / f.mu, RISK, "constants"),
        conditions=(SVRG_RANGE, LNN_STEPS),
        assumes=("strongly convex", "m of order L/Δ"),
        mechanism="dp-svrg",
    ),
    Row(
        "input",
        "Wang et al. 2017, gradient descent",
        "gradient",
        "Gaussian",
        GD_NOISE,
        EXCESS_P,
        conditions=(MOMENTS_FULL, LNN_STEPS),
        assumes=("PL condition", "step 1/L"),
        mechanism="dp-gd",
        remarks=("The PIDP paper gives the same result with log² n.",),
    ),
    Row(
        "input",
        "Duchi et al. 2013, local",
        "reports",
        "randomised response",
        None,
        Formula(r"\frac{G\,p}{\varepsilon\sqrt n}", lambda f: f.G * f.d / (f.epsilon * math.sqrt(f.n)), RISK, "the radius"),
        conditions=(LOCAL_RANGE,),
        assumes=("each row reports once", "local privacy: nobody is trusted"),
        mechanism="ldp-duchi",
    ),
    Row(
        "input",
        "Wang et al. 2018, local",
        "reports",
        "Laplace",
        Formula(r"p\,n\,\varepsilon^2", None, "noise variance, reports"),
        Formula(r"\text{unreadable}", None, RISK),
        assumes=("local privacy", "smoothness of high order"),
        remarks=(UNREADABLE, "The noise bound as printed, pnε², would grow with ε."),
    ),
    Row(
        "input",
        "Fukuchi et al. 2017",
        "input",
        "Gaussian",
        Formula(
            r"\frac{G^2(\log(16/\delta)+\varepsilon)}{n\varepsilon^2}",
            lambda f: f.G**2 * (math.log(16 / f.delta) + f.epsilon) / (f.n * f.epsilon**2),
            "noise variance, reports",
            "constants",
        ),
        Formula(
            r"\frac{pG^2(\log(16/\delta)+\varepsilon)}{L\,n\,\varepsilon}",
            lambda f: f.d * f.G**2 * (math.log(16 / f.delta) + f.epsilon) / (f.L * f.n * f.epsilon),
            RISK,
            "constants",
        ),
        assumes=("quadratic form of the loss",),
        mechanism="fukuchi-input",
    ),
    Row(
        "input",
        "Input perturbation (Kang)",
        "input",
        "Gaussian",
        Formula(
            r"\frac{G^2T\log(1/\delta)}{n(n-1)\sqrt\Delta\,\varepsilon^2}",
            lambda f: f.G**2 * f.steps * _log1(f) / (f.n * (f.n - 1) * math.sqrt(f.mu) * f.epsilon**2),
            DATA,
            MOMENTS,
        ),
        Formula(
            r"\frac{\alpha(2LD+G)G^3d\log^2n\,\log(1/\delta)}{n(n-1)\sqrt\Delta\,\varepsilon^2}",
            lambda f: (
                (2 * f.L * f.radius + f.G)
                * f.G**3
                * f.d
                * math.log(f.n) ** 2
                * _log1(f)
                / (f.L * f.n * (f.n - 1) * math.sqrt(f.mu) * f.epsilon**2)
            ),
            RISK,
            "constants; evaluated at α = 1/L",
        ),
        conditions=(LNN_STEPS,),
        assumes=("every summand strongly convex", "|θ| ≤ D"),
        mechanism="input-perturbation",
        remarks=(NOT_PROVED, "d is the number of features."),
    ),
)


def _km(f: Facts) -> float:
    return float(f.influential * f.d)


def _pidp_population(f: Facts) -> float:
    km, n, e = _km(f), float(f.n), f.epsilon
    first = km / (n**3 * e**2) + 1 / n
    second = km / (n**2.5 * e**2) + n**-1.5
    third = km**1.5 / (n**2 * e**3) + e / math.sqrt(km * n)
    return min(first, second, third)


def _sgd_population(f: Facts) -> float:
    m, n, e = float(f.d), float(f.n), f.epsilon
    return min(m / (n * e) ** 2 + 1 / n, math.sqrt(m) / (n**1.5 * e) + m**1.5 / (n**2.5 * e**3))


def _convex_population(f: Facts) -> float:
    return math.sqrt(f.d) / (f.n * f.epsilon) + 1 / math.sqrt(f.n)


LOGS = "constants and all logarithms"
CONVEX_LATEX = r"\frac{\sqrt m}{n\varepsilon}+\frac{1}{\sqrt n}"
SMALL_MINIMUM = "E[L*] of order 1/n: nearly no training error at the minimum"
EER_TEXT = "The table names excess empirical risk too, but has no such column; the one shown is from the text, "

PIDP: tuple[Row, ...] = (
    Row(
        "pidp",
        "Bassily et al. 2019",
        "gradient",
        "Gaussian",
        population=Formula(CONVEX_LATEX, _convex_population, POPULATION, LOGS),
        assumes=("G-Lipschitz", "L-smooth", "convex"),
    ),
    Row(
        "pidp",
        "Feldman et al. 2020, strongly convex",
        "gradient",
        "Gaussian",
        population=Formula(
            r"\frac{m}{n^2\varepsilon^2}+\frac1n",
            lambda f: f.d / (f.n * f.epsilon) ** 2 + 1 / f.n,
            POPULATION,
            LOGS + ", and 1/μ",
        ),
        assumes=("G-Lipschitz", "strongly convex"),
    ),
    Row(
        "pidp",
        "Feldman et al. 2020, convex",
        "gradient",
        "Gaussian",
        population=Formula(CONVEX_LATEX, _convex_population, POPULATION, LOGS),
        assumes=("G-Lipschitz", "convex"),
    ),
    Row(
        "pidp",
        "DP-SGD (Kang), Theorems 1 and 3",
        "gradient",
        "Gaussian",
        GD_NOISE,
        EXCESS_M,
        Formula(
            r"\min\Bigl\{\tfrac{m}{n^2\varepsilon^2}+\tfrac1n,\;\tfrac{\sqrt m}{n^{1.5}\varepsilon}"
            r"+\tfrac{m^{1.5}}{n^{2.5}\varepsilon^3}\Bigr\}",
            _sgd_population,
            POPULATION,
            LOGS + ", 1/μ, and " + SMALL_MINIMUM,
        ),
        conditions=(MOMENTS_ROW, LNN_STEPS),
        assumes=("G-Lipschitz", "L-smooth", "PL condition", SMALL_MINIMUM),
        mechanism="dp-sgd",
        remarks=(EER_TEXT + "Theorem 1.", "The proof of Theorem 1 drops the variance of drawing one row."),
    ),
    Row(
        "pidp",
        "PIDP-SGD, Theorems 6 and 7",
        "gradient",
        "Gaussian",
        GD_NOISE,
        Formula(
            r"\frac{k\,m\,G^2\log(1/\delta_1)\log n}{n^3\varepsilon_1^2}",
            lambda f: f.influential / f.n * _gd_excess(f),
            RISK,
            GD_EXCESS + "; evaluated with ε₁ = ε, δ₁ = δ",
        ),
        Formula(
            r"\min\Bigl\{\tfrac{km}{n^3\varepsilon^2}+\tfrac1n,\;\tfrac{km}{n^{2.5}\varepsilon^2}+\tfrac1{n^{1.5}},\;"
            r"\tfrac{(km)^{1.5}}{n^2\varepsilon^3}+\tfrac{\varepsilon}{\sqrt{kmn}}\Bigr\}",
            _pidp_population,
            POPULATION,
            LOGS + ", 1/μ, and " + SMALL_MINIMUM,
        ),
        conditions=(MOMENTS_ROW, LNN_STEPS),
        assumes=("G-Lipschitz", "L-smooth", "PL condition", SMALL_MINIMUM),
        mechanism="pidp-sgd",
        remarks=(
            NOT_PROVED,
            EER_TEXT + "Theorem 6.",
            "The third term does not follow from Theorem 3 with the stated τ, which gives √(km)/(n²ε); it is "
            "evaluated as printed.",
        ),
    ),
)

ROWS: dict[str, tuple[Row, ...]] = {"dbdp": DBDP, "input": INPUT, "pidp": PIDP}
