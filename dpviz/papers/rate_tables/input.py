"""Rows of Table 1 of the input perturbation paper, as printed.

Where the text of a paper says more than its table, the row says so in `remarks`. "Recalled" marks a condition of a
cited publication that is stated from memory of it and not from the three papers.
"""

import math

from dpviz.papers.rate_tables.formulas import (
    BASSILY_RANGE,
    CLASSICAL,
    DATA,
    EXCESS_P,
    GD_NOISE,
    GRADIENT,
    LNN_STEPS,
    LOCAL_RANGE,
    MODEL,
    MOMENTS,
    MOMENTS_FULL,
    NOT_PROVED,
    RISK,
    SVRG_RANGE,
    UNREADABLE,
    gd_excess,
    gd_noise,
    log_inverse_delta,
    need,
)
from dpviz.papers.rates import Facts, Formula, Row


def _cms_obj_gap(f: Facts) -> float:
    ratio = (f.L - f.mu) / (f.n * f.mu)  # the loss's own curvature
    return f.epsilon - math.log(1 + 2 * ratio + ratio**2)


def _kst_noise(f: Facts) -> float:
    return f.G**2 * (f.epsilon + math.log(4 / f.delta**2)) / f.epsilon**2


INPUT: tuple[Row, ...] = (
    Row(
        "Chaudhuri et al. 2011, output",
        "output",
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
        "Chaudhuri et al. 2011, objective",
        "objective",
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
            need(
                "ε > 2 log(1 + L/(nλ))",
                lambda f: _cms_obj_gap(f) > 0,
                lambda f: f"needs ε > 2 log(1 + L/(nλ)) = {f.epsilon - _cms_obj_gap(f):.3g}; below that, λ is raised",
            ),
        ),
        assumes=("twice differentiable", "1-Lipschitz", "exact minimiser"),
        mechanism="cms-objective",
    ),
    Row(
        "Kifer et al. 2012",
        "objective",
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
            need(
                "Δ ≥ 2L/(nε)",
                lambda f: f.mu >= 2 * (f.L - f.mu) / (f.n * f.epsilon),
                lambda f: f"needs Δ ≥ 2L/(nε) = {2 * (f.L - f.mu) / (f.n * f.epsilon):.3g} (mean objective), and μ = {f.mu:.3g}",
            ),
        ),
        assumes=("twice differentiable", "rank-one curvature per row"),
        mechanism="kst-objective",
    ),
    Row(
        "Bassily et al. 2014",
        "gradient",
        Formula(
            r"\frac{G^2n^2\log(n/\delta)\log(1/\delta)}{\varepsilon^2}",
            lambda f: f.G**2 * f.n**2 * math.log(f.n / f.delta) * log_inverse_delta(f) / f.epsilon**2,
            "noise variance, n times a gradient",
            "a factor 32",
        ),
        Formula(
            r"\frac{G^2p\log^2(n/\delta)\log(1/\delta)}{n\,\Delta\,\varepsilon^2}",
            lambda f: f.G**2 * f.d * math.log(f.n / f.delta) ** 2 * log_inverse_delta(f) / (f.n * f.mu * f.epsilon**2),
            RISK,
            "constants",
        ),
        conditions=(
            BASSILY_RANGE,
            need("T = n²", lambda f: f.steps >= f.n**2, lambda f: f"needs n² = {float(f.n) ** 2:.3g} steps, and T = {f.steps}"),
        ),
        assumes=("Δ-strongly convex summands, objective a sum: Δ = nμ would turn 1/n into 1/n² on the mean",),
        mechanism="bassily-sgd",
    ),
    Row(
        "Zhang et al. 2017",
        "output",
        Formula(
            r"\frac{G^2(1+L/\Delta)^2\log(2/\delta)}{n^2L^2\varepsilon^2}",
            lambda f: f.G**2 * (1 + f.L / f.mu) ** 2 * math.log(2 / f.delta) / (f.n * f.L * f.epsilon) ** 2,
            MODEL,
            "a factor 50",
        ),
        Formula(
            r"\frac{LG^2p\log(1/\delta)}{n^2\varepsilon^2\Delta^2}",
            lambda f: f.L * f.G**2 * f.d * log_inverse_delta(f) / (f.n * f.epsilon * f.mu) ** 2,
            RISK,
            "a constant near 25",
        ),
        conditions=(CLASSICAL,),
        assumes=("strongly convex", "step 1/(L+Δ)"),
        mechanism="outpert-gd",
    ),
    Row(
        "Wang et al. 2017, DP-SVRG",
        "gradient",
        Formula(r"\frac{G^2Tm\log(1/\delta)}{n^2\varepsilon^2}", lambda f: gd_noise(f) * f.inner, GRADIENT, MOMENTS),
        Formula(r"\frac{G^2p\log n\,\log(1/\delta)}{n^2\Delta\varepsilon^2}", lambda f: gd_excess(f) / f.mu, RISK, "constants"),
        conditions=(SVRG_RANGE, LNN_STEPS),
        assumes=("strongly convex", "m of order L/Δ"),
        mechanism="dp-svrg",
    ),
    Row(
        "Wang et al. 2017, gradient descent",
        "gradient",
        GD_NOISE,
        EXCESS_P,
        conditions=(MOMENTS_FULL, LNN_STEPS),
        assumes=("PL condition", "step 1/L"),
        mechanism="dp-gd",
        remarks=("The PIDP paper gives the same result with log² n.",),
    ),
    Row(
        "Duchi et al. 2013, local",
        "reports",
        None,
        Formula(r"\frac{G\,p}{\varepsilon\sqrt n}", lambda f: f.G * f.d / (f.epsilon * math.sqrt(f.n)), RISK, "the radius"),
        conditions=(LOCAL_RANGE,),
        assumes=("each row reports once", "local privacy: no one is trusted"),
        mechanism="ldp-duchi",
    ),
    Row(
        "Wang et al. 2018, local",
        "reports",
        Formula(r"p\,n\,\varepsilon^2", None, "noise variance, reports"),
        Formula(r"\frac{\sqrt p}{(\sqrt n\,\varepsilon)^{L+2p}}", None, RISK),
        assumes=("local privacy", "smoothness of high order"),
        remarks=(
            UNREADABLE,
            "The noise bound as printed, pnε², would grow with ε.",
            "The risk as printed falls the faster the more features there are; its exponent is likely to have lost a fraction.",
        ),
    ),
    Row(
        "Fukuchi et al. 2017",
        "input",
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
        "Input perturbation (Kang)",
        "input",
        Formula(
            r"\frac{G^2T\log(1/\delta)}{n(n-1)\sqrt\Delta\,\varepsilon^2}",
            lambda f: f.G**2 * f.steps * log_inverse_delta(f) / (f.n * (f.n - 1) * math.sqrt(f.mu) * f.epsilon**2),
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
                * log_inverse_delta(f)
                / (f.L * f.n * (f.n - 1) * math.sqrt(f.mu) * f.epsilon**2)
            ),
            "expected perturbed objective of the released model, above the least objective without noise",
            "constants; evaluated at α = 1/L",
        ),
        conditions=(LNN_STEPS,),
        assumes=("every summand strongly convex", "|θ| ≤ D"),
        mechanism="input-perturbation",
        remarks=(
            NOT_PROVED,
            "Theorem 2 bounds the objective on the perturbed rows; the table lists it as an excess risk on the rows themselves.",
            "d is the number of features.",
        ),
    ),
)
