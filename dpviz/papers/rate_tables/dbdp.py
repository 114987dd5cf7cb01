"""Rows of Table 1 of the DBDP paper, as printed.

Where the text of a paper says more than its table, the row says so in `remarks`. "Recalled" marks a condition of a
cited publication that is stated from memory of it and not from the three papers.
"""

import math

from dpviz.papers.rate_tables.formulas import (
    CLASSICAL,
    EXCESS_M,
    GD_NOISE,
    GD_NOISE_DATA,
    GRADIENT,
    LNN_STEPS,
    MODEL,
    MOMENTS,
    MOMENTS_BATCH,
    MOMENTS_ROW,
    NOT_PROVED,
    RANGE_LEFT_OUT,
    RISK,
    log_inverse_delta,
)
from dpviz.papers.rates import Formula, Row

DBDP: tuple[Row, ...] = (
    Row(
        "Song et al. 2013",
        "gradient",
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
        "Abadi et al. 2016",
        "gradient",
        GD_NOISE,
        conditions=(MOMENTS_ROW,),
        assumes=("Poisson batches", "gradients clipped at G"),
        mechanism="dp-sgd",
        remarks=("The table has q = 1/n in place of Abadi's q.",),
    ),
    Row(
        "Wu et al. 2017",
        "output",
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
        "Wang et al. 2019 (DP-LSSGD)",
        "gradient",
        Formula(
            r"\frac{G^2T(\log(1/\delta)+\varepsilon)}{n^2\varepsilon^2}",
            lambda f: f.G**2 * f.steps * (log_inverse_delta(f) + f.epsilon) / (f.n * f.epsilon) ** 2,
            GRADIENT,
            MOMENTS,
        ),
        Formula(
            r"\frac{G\sqrt{G^2m\log(1/\delta)}}{n\varepsilon}",
            lambda f: f.G * math.sqrt(f.G**2 * f.d * log_inverse_delta(f)) / (f.n * f.epsilon),
            RISK,
            "the smoothing and the start's distance",
        ),
        assumes=("G-Lipschitz", "side conditions on ε of the publication that are not checked here"),
        mechanism="dp-lssgd",
    ),
    Row(
        "DBDP-ERM",
        "input",
        GD_NOISE_DATA,
        EXCESS_M,
        conditions=(MOMENTS_BATCH, LNN_STEPS),
        assumes=("G-Lipschitz", "|∇ₓ∇_θ ℓ| has an infimum above 0", "q of the order of 1/|B|"),
        mechanism="dbdp",
        remarks=(
            NOT_PROVED,
            RANGE_LEFT_OUT,
            "Theorem 1 has σ = cqG√(T log(1/δ))/ε, with q of order 1/√n: a variance n times the table's.",
        ),
    ),
    Row(
        "DBDP-ERM, performance improving",
        "input",
        GD_NOISE_DATA,
        EXCESS_M,
        conditions=(MOMENTS_ROW, LNN_STEPS),
        assumes=("G-Lipschitz", "L-smooth", "strongly convex", "α = 1/L"),
        mechanism="dbdp-pi",
        remarks=(
            NOT_PROVED,
            "Theorem 2 states ε < c₁T/n² itself.",
            "The risk is the worst case, in which every row receives noise (Theorem 3).",
        ),
    ),
)
