"""Claims about risks: the population risk on a synthetic census of any size, and the excess empirical risk by n."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpviz.common.random import spawn
from dpviz.datasets import load_dataset
from dpviz.experiments.run.measure import train
from dpviz.mechanisms import Training, protection
from dpviz.models import Rows, Setting, get_model
from dpviz.models.problem import Problem
from dpviz.papers.claims.context import Context, Test
from dpviz.papers.claims.numerics import SLOPE, slope
from dpviz.papers.claims.tables import lines
from dpviz.papers.numbers import LEVEL, paired_mean
from dpviz.papers.verdict import Comparison, Outcome, Picture, Verdict, combine, summary
from dpviz.privacy.budget import Budget

PEOPLE = "census-200000"  # half of them stand for the population, tables are drawn from the others
LAM, BUDGET, STRONG = 0.01, Budget(1.0, 1e-5), 0.1


def theorem2(setting: Setting, gap: float, risk: float, least: float) -> float:
    """Kang-PIDP Theorem 2, eq. (5), at its best tau: bound on E[L_P(theta) - L(theta; D)].

    (tau + L) A + B/tau is least at tau = sqrt(B/A), where it is L A + 2 sqrt(A B).

    Args:
        setting: L = beta + lambda, mu = lambda, G of the data part; a larger G only raises the bound.
        gap: E[L(theta; D) - L*].
        risk: E[L(theta; D)].
        least: E[L*].
    """
    smooth, a = _terms(setting, gap)
    return smooth * a + 2 * math.sqrt(a * smooth * risk)


def theorem3(setting: Setting, gap: float, risk: float, least: float) -> float:
    """Kang-PIDP Theorem 3 at its best tau: bound on E[L_P(theta) - min L_P].

    (tau + L)(8/mu + 1/tau) gap = (tau + L)(8/mu) gap + gap + L gap/tau, and L L*/tau: as in Theorem 2, with B = L (gap + L*).
    """
    smooth, a = _terms(setting, gap)
    return smooth * a + gap + 2 * math.sqrt(a * smooth * (gap + least))


def _terms(setting: Setting, gap: float) -> tuple[float, float]:
    """L, and A = 8 gap/mu + 16 G^2/(n mu)^2."""
    return setting.beta + setting.lam, 8 * gap / setting.lam + 16 * (setting.G / (setting.n * setting.lam)) ** 2


def population(mechanism: str, excess: bool) -> Test:
    """The generalisation error (Theorem 2), or the excess population risk (Theorem 3), stays below its bound."""

    def test(context: Context) -> Verdict:
        people = load_dataset(PEOPLE)
        context.trained_on.append(PEOPLE)
        sizes, tables = context.choose((1000, 4000, 16000), (500, 1000, 2000, 4000, 8000, 16000)), context.choose(5, 6)
        half, built = people.n // 2, context.build(mechanism)
        everyone = Problem(Rows(people.X[half:], people.y[half:]), get_model("logistic"), LAM)
        bound: Callable[..., float] = context.hook("bound", theorem3 if excess else theorem2)
        found, facts = [], []
        for k, n in enumerate(sizes):
            one = []
            for t in range(tables):
                context.monitor((k + t / tables) / len(sizes))
                part = slice(t * n, (t + 1) * n)
                problem = Problem(Rows(people.X[part], people.y[part]), get_model("logistic"), LAM)
                streams = spawn(context.seed + t, context.choose(5, 20))
                trained = train(
                    built, Training(problem, [protection.calibrate(built, problem.setting, BUDGET)], streams, record=False)
                )
                risk, own = everyone.measure(trained.fit.theta[0])[0], trained.objective[0]
                one.append((risk.mean() - (everyone.optimal_value if excess else own.mean()), own.mean(), problem.optimal_value))
            error, risk, optimum = np.array(one).T
            found.append(error)
            top = bound(problem.setting, float((risk - optimum).mean()), float(risk.mean()), float(optimum.mean()))
            facts.append((n, top, optimum.mean()))
        errors, (n_train, limit, least) = np.array(found), np.array(facts, float).T
        comparisons = [
            Comparison(
                f"n = {n:,}", paired_mean(gap).at_most(top), f"{gap.mean():.2g} against a bound of {top:.2g}", gap.mean() / top
            )
            for n, gap, top in zip(sizes, errors, limit, strict=True)
        ]
        what = "excess population risk" if excess else "generalisation error"
        orders = [("Fitted exponent of n, bound", f"{slope(n_train, limit):.2f}")]
        if (errors.mean(axis=1) > 0).all():
            orders.insert(0, (f"Fitted exponent of n, {what}", f"{slope(n_train, errors.mean(axis=1)):.2f}"))
        empty = [f"{n:,}" for n, top in zip(sizes, limit, strict=True) if top > math.log(2)]
        notes = f" At n = {', '.join(empty)} the bound is above ln 2, the loss of a model that knows nothing." if empty else ""
        if excess:
            notes += (
                " The rates of Remark 4 and Theorem 7 suppose that L* falls as 1/n; here it is "
                f"{least[0]:.2f} at the smallest n and {least[-1]:.2f} at the largest, as on every table whose classes overlap."
            )
        return Verdict(
            combine(comparisons),
            summary(comparisons) + notes,
            f"Holds if the mean {what} over {tables} tables is below the bound at every n ({LEVEL:.0%} intervals). The bound has "
            "L = β + λ, μ = λ, G = 1, the best τ, and the measured excess empirical risk.",
            (*orders, ("Bound over measured", ", ".join(f"{r:,.0f}" for r in limit / np.abs(errors.mean(axis=1))))),
            "",
            pd.concat([lines("risk", what, mechanism, sizes, errors), lines("risk", "bound", "", sizes, limit[:, None])]),
            Picture("training rows n", what, log_x=True, log_y=True),
            f"{tables} tables per size and {context.choose(5, 20)} noise draws each, seed {context.seed}; {BUDGET}, λ = {LAM:g}.",
        )

    return test


def theorem4(setting: Setting) -> tuple[float, int]:
    """(bound without its constant, T) of Kang-IP Theorem 4, eq. (13), at alpha = 1/L.

    D = sqrt(2 ln 2/lambda) bounds the minimiser: lambda/2 |theta|^2 is at most the objective at 0, ln 2. T makes the first error
    as small as the logarithm's inverse: (1 - mu/L)^T with mu = lambda.
    """
    smooth, n = setting.beta + setting.lam, setting.n
    radius = math.sqrt(2 * math.log(2) / setting.lam)
    factor = (2 * smooth * radius + setting.G) * setting.G**3 * (setting.d - 1) * math.log(1 / BUDGET.delta) / smooth
    inside = n * (n - 1) * BUDGET.epsilon**2 / factor
    return math.log(n) ** 2 / inside, max(1, math.ceil(math.log(max(inside, 2.0)) / -math.log1p(-setting.lam / smooth)))


def theorem1(setting: Setting) -> tuple[float, int]:
    """(bound without its constant, T) of Kang-PIDP Theorem 1 and Kang-DBDP Theorem 3, eq. (17), at alpha = 1/L.

    Kang-PIDP Theorem 6 multiplies it by k/n <= 1. T makes the first error as small as the bound, as for Theorem 4 above.
    """
    inside = (setting.n * BUDGET.epsilon) ** 2 / (setting.m * setting.G**2 * math.log(1 / BUDGET.delta))
    steps = math.ceil(math.log(max(inside, 2.0)) / -math.log1p(-setting.lam / (setting.beta + setting.lam)))
    return math.log(setting.n) / inside, max(1, steps)


#: the knobs that a theorem asks for, beside steps of 1/L, by the numbers of steps and rows
OF_STEPS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "input-perturbation": lambda steps, n: {"steps": steps, "theorem": "pl"},
    "dp-sgd": lambda steps, n: {"sampling_rate": n**-0.5, "epochs": steps * n**-0.5},
    "pidp-sgd": lambda steps, n: {"rounds": 1, "local_steps": steps, "start": "zero"},
    "dbdp-pi": lambda steps, n: {"rounds": 1, "local_steps": steps, "start": "zero"},
}


def empirical(mechanism: str, stated: Callable[[Setting], tuple[float, int]], why: str = "", **knobs: Any) -> Test:
    """The excess empirical risk falls with n as a theorem's bound, or faster.

    Args:
        stated: setting -> (bound without its constant, number of steps).
        why: what explains a failure.
        knobs: beside those of `OF_STEPS`.
    """

    def test(context: Context) -> Verdict:
        sizes, seeds = context.choose((1000, 4000, 16000), (500, 1000, 2000, 4000, 8000, 16000, 32000)), context.choose(10, 30)
        gaps, facts = [], []
        for k, size in enumerate(sizes):
            setting = context.setup(f"census-{size}", lam=STRONG)[0].problem.setting
            bound, count = stated(setting)
            built = context.build(mechanism, **OF_STEPS[mechanism](count, setting.n) | {"step_size": 1.0} | knobs)
            measured = context.part(k, len(sizes)).measure(
                built, f"census-{size}", (BUDGET.epsilon,), seeds, lam=STRONG, delta=BUDGET.delta
            )
            gaps.append(measured.gap[0])
            facts.append((setting.n, bound, count))
        (n, limit, steps), gap = np.array(facts, float).T, np.array(gaps)
        order, asked = slope(n, gap.mean(axis=1)), slope(n, limit)
        fast = order <= asked + SLOPE
        return Verdict(
            Outcome.HOLDS if fast else Outcome.FAILS,
            f"The mean gap changes as n^{order:.2f}, the bound as n^{asked:.2f}. "
            + ("Whether that noise is private is another card." if fast else why),
            f"Holds if the fitted exponent is at most {SLOPE:g} above that of the bound; fails otherwise. The constant in O(·) "
            "is open, so that only the rate is tested. Logistic regression meets the PL condition with "
            f"μ = λ = {STRONG:g}; α = 1/L, and T as the theorem has it.",
            (
                ("Fitted exponent of n, gap", f"{order:.2f}"),
                ("of the bound", f"{asked:.2f}"),
                ("Steps T", ", ".join(f"{count:g}" for count in steps)),
            ),
            "",
            pd.concat(
                [
                    lines("gap", "gap", mechanism, n, gap),
                    lines("gap", "bound through the first point", "", n, (limit * gap[0].mean() / limit[0])[:, None]),
                ]
            ),
            Picture("training rows n", "optimality gap", log_x=True, log_y=True),
            f"{seeds} noise draws per size, seed {context.seed}; {BUDGET}.",
        )

    return test
