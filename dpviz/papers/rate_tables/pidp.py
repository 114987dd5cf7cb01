"""Rows of Table 1 of the PIDP paper, as printed.

Where the text of a paper says more than its table, the row says so in `remarks`. "Recalled" marks a condition of a
cited publication that is stated from memory of it and not from the three papers.
"""

import math

from dpviz.papers.rate_tables.formulas import (
    EXCESS_M,
    GD_EXCESS,
    GD_NOISE,
    LNN_STEPS,
    MOMENTS_ROW,
    NOT_PROVED,
    POPULATION,
    RANGE_LEFT_OUT,
    RISK,
    gd_excess,
)
from dpviz.papers.rates import Facts, Formula, Row


def _pidp_population(f: Facts) -> float:
    km, n, e = float(f.influential * f.d), float(f.n), f.epsilon
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
        "Bassily et al. 2019",
        "gradient",
        population=Formula(CONVEX_LATEX, _convex_population, POPULATION, LOGS),
        assumes=("G-Lipschitz", "L-smooth", "convex"),
    ),
    Row(
        "Feldman et al. 2020, strongly convex",
        "gradient",
        population=Formula(
            r"\frac{m}{n^2\varepsilon^2}+\frac1n",
            lambda f: f.d / (f.n * f.epsilon) ** 2 + 1 / f.n,
            POPULATION,
            LOGS + ", and 1/μ",
        ),
        assumes=("G-Lipschitz", "strongly convex"),
    ),
    Row(
        "Feldman et al. 2020, convex",
        "gradient",
        population=Formula(CONVEX_LATEX, _convex_population, POPULATION, LOGS),
        assumes=("G-Lipschitz", "convex"),
    ),
    Row(
        "DP-SGD (Kang), Theorems 1 and 3",
        "gradient",
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
        remarks=(EER_TEXT + "Theorem 1.", RANGE_LEFT_OUT, "The proof of Theorem 1 drops the variance of drawing one row."),
    ),
    Row(
        "PIDP-SGD, Theorems 6 and 7",
        "gradient",
        GD_NOISE,
        Formula(
            r"\frac{k\,m\,G^2\log(1/\delta_1)\log n}{n^3\varepsilon_1^2}",
            lambda f: f.influential / f.n * gd_excess(f),
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
            RANGE_LEFT_OUT,
            "The third term does not follow from Theorem 3 with the stated τ = nε/√(km), which gives √(km)/(n²ε) + ε/(n√(km)); "
            "it is evaluated as printed.",
        ),
    ),
)
