"""Claims about constants: influence errors, noise scales and sensitivities, without or with little training."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from dpviz.common.random import spawn
from dpviz.influence import error_bound, influence_of, row_gradients
from dpviz.mechanisms.gradient.bassily_sgd import published_sigma
from dpviz.mechanisms.gradient.song_sgd import SongSGD
from dpviz.mechanisms.input.fukuchi_input import FukuchiInput
from dpviz.models import Rows, Setting, feature_noise_of, get_model
from dpviz.models.problem import Problem
from dpviz.papers.checks import ALMOST_ZERO
from dpviz.papers.claims.context import Context, Floats
from dpviz.papers.claims.tables import lines
from dpviz.papers.verdict import Comparison, Outcome, Picture, Verdict, combine
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.sensitivity import bounds

SLOPE = 0.3  # tolerance of an exponent that is fitted to measured errors
STATIONARY = 1e-20  # |gradient|^2 that rounding alone explains
EXACT_SLOPE = 0.1  # of one that is fitted to formulas
OPEN = "The constant c that the theorem leaves open is set to 1 here."
_BUDGET, _STEPS, _LAM = Budget(1.0, 1e-8), 100, 1e-3


def slope(x: Floats, y: Floats) -> float:
    """Exponent of y as a power of x, by least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def published_influence(problem: Problem, index: np.ndarray) -> Floats:
    """(k, m) c_i of Kang-PIDP eq. (11)."""
    return influence_of(problem).parameters(index, "published")


def influence_error(context: Context) -> Verdict:
    """|theta_{-i} - theta* - c_i| falls as 1/n^2 and stays below Theorem 4's bound."""
    sizes = context.choose((500, 1000, 2000, 4000), (500, 1000, 2000, 4000, 8000, 16000, 32000))
    count, lam = context.choose(40, 100), 0.01
    approximate = context.hook("influence", published_influence)
    found = []
    for k, size in enumerate(sizes):
        problem = context.setup(f"census-{size}", lam=lam)[0].problem
        rng = np.random.default_rng([context.seed, size])
        index = np.sort(rng.choice(problem.n, count, replace=False))
        approximations = approximate(problem, index)
        errors = []
        for i, row in enumerate(index):
            context.monitor((k + i / count) / len(sizes))
            rest = Rows(np.delete(problem.rows.X, row, axis=0), np.delete(problem.rows.y, row))
            # the paper's argmin over the other n - 1 rows, the regulariser inside each row's loss
            exact = problem.model.minimise(rest, lam, problem.optimum)
            errors.append(float(np.linalg.norm(exact - problem.optimum - approximations[i])))
        found.append((problem.n, np.mean(errors), max(errors), error_bound(problem.setting)))  # Theorem 4
    n, mean, largest, bound = np.array(found, float).T
    order, below, ratio = slope(n, mean), bool((largest <= bound).all()), bound / largest
    right = abs(order + 2) <= SLOPE
    kept = (
        f"the bound is kept, {ratio.min():,.0f} times or more above the largest error: too loose to correct anything with."
        if below
        else "the bound is broken."
    )
    return Verdict(
        Outcome.HOLDS if right and below else Outcome.FAILS,
        f"The mean error falls as n^{order:.2f}, {'as' if right else 'not as'} it should, and {kept}",
        f"Holds if the mean error is a power of n with an exponent within {SLOPE:g} of −2 and no error exceeds Theorem 4's bound "
        "(2LG + CG²/ζ)/(ζ²n²); fails otherwise.",
        (
            ("Fitted exponent of n", f"{order:.2f}"),
            ("Bound over largest error", f"{ratio.min():,.0f} to {ratio.max():,.0f} times"),
        ),
        "",
        pd.concat(
            [
                lines("error", name, "", n, values[:, None])
                for name, values in (("mean error", mean), ("largest error", largest), ("Theorem 4's bound", bound))
            ]
        ),
        Picture("training rows n", "error in |θ|", log_x=True, log_y=True),
        f"{count} rows drawn per size, seed {context.seed}; census, λ = {lam:g}.",
    )


def gradient_at(problem: Problem, theta: Floats) -> Floats:
    """(R, m) gradients of the objective at (R, m) points."""
    return problem.model.sum_gradient(theta, problem.rows) / problem.n + problem.lam * theta


def _descent(problem: Problem, theta: Floats, steps: int) -> tuple[Floats, Floats, Floats]:
    """(steps, R) objectives above the minimum, (steps, R) |gradient|^2, and where plain descent from (R, m) points ends."""
    gaps, squares = [], []
    for _ in range(steps):
        gradient = gradient_at(problem, theta)
        gaps.append(problem.objective(theta) - problem.optimal_value)
        squares.append(np.square(gradient).sum(axis=1))
        theta = theta - problem.setting.unit_step * gradient
    return np.array(gaps), np.array(squares), theta


def network_pl(context: Context) -> Verdict:
    """|grad F|^2 >= 2 mu (F - F*) with one mu > 0 for all parameters (Kang-IP eq. (11)), for the papers' network.

    With all weights 0 the hidden units are 0 and so are the gradients of both layers: descent from there trains the constant of
    the output alone, and ends at a stationary point. The best training found is above F*, so that the gap there is no less.
    """
    model, name = context.choose("mlp-8", "mlp"), "breast-cancer"
    problem = context.hook("problem", lambda: context.setup(name, model)[0].problem)()
    starts, steps = context.choose(5, 20), context.choose(300, 3000)
    flat_gap, flat_square, _ = _descent(problem, np.zeros((1, problem.m)), steps)
    gaps, squares, _ = _descent(problem, problem.model.initial(problem.m, spawn(context.seed, starts)), steps)
    end, slope_there = float(flat_gap[-1, 0]), float(flat_square[-1, 0])
    stationary = slope_there < STATIONARY and end > ALMOST_ZERO * flat_gap[0, 0]
    # at a minimum both are 0, to rounding
    ratios = {
        words: square / np.maximum(2 * gap, 1e-12)
        for words, square, gap in (("from zero", flat_square, flat_gap), ("from random starts", squares, gaps))
    }
    least = float(ratios["from random starts"][gaps > ALMOST_ZERO * flat_gap[0, 0]].min())
    at = np.arange(1, steps + 1, max(1, steps // 100))
    return Verdict(
        Outcome.FAILS if stationary else Outcome.UNDECIDED,
        f"Descent from weights of 0 ends at a stationary point {end:.2g} above the minimum: no μ > 0 is possible there. "
        f"Along {starts} paths from random starts the ratio is {least:.2g} at least, until 1 % of F(0) − F* is left."
        if stationary
        else "No stationary point was found that is no minimum, and a finite number of points proves no condition.",
        f"Fails if |∇F|² < {STATIONARY:g} at a point more than 1 % of F(0) − F* above F*; undecided otherwise.",
        (
            ("|∇F| there", f"{slope_there**0.5:.1e}"),
            ("F − F* there", f"{end:.3g}"),
            ("Least |∇F|²/2(F − F*), random", f"{least:.2g}"),
        ),
        "",
        pd.concat([lines(name, words, "", at, np.maximum(ratio[at - 1], 1e-20)) for words, ratio in ratios.items()]),
        Picture("step of descent", "|∇F|²/(2(F − F*))", log_x=True, log_y=True),
        f"{starts} random starts, seed {context.seed}; {model}, λ = 0.001, no noise.",
    )


def dbdp_noise_rate(context: Context) -> Verdict:
    """The variance of DBDP's noise falls as 1/n^2, as Table 1 says of the sigma of Theorem 1."""
    sizes = np.array([1e3, 1e4, 1e5, 1e6])
    built = context.build("dbdp")
    variance = np.array(
        [built.calibrate(get_model("logistic").setting(int(n), 20, 1e-3), Budget(1.0, 1e-8)).noise_scale ** 2 for n in sizes]
    )
    order = slope(sizes, variance)
    outcome = Outcome.HOLDS if abs(order + 2) <= EXACT_SLOPE else Outcome.FAILS
    return Verdict(
        outcome,
        "The noise falls as the table says."
        if outcome is Outcome.HOLDS
        else "Theorem 1 asks for q of the order of 1/|B| = 1/(qn), so q is about n^(-1/2) and the variance "
        f"q²G²T ln(1/δ)/ε² falls as n^{order:.1f}, not as n^-2: theorem and table do not go together.",
        f"Holds if the variance that the calibration gives is a power of n with an exponent within {EXACT_SLOPE:g} of −2. {OPEN}",
        (
            ("Fitted exponent of n", f"{order:.2f}"),
            ("Variance at n = 1,000,000 over what 1/n² would give", f"{variance[-1] / variance[0] * 1e6:,.0f} times"),
        ),
        "",
        pd.concat(
            [
                lines("noise", "variance on each feature", "dbdp", sizes, variance[:, None]),
                lines("noise", "1/n² through the first point", "", sizes, (variance[0] * (sizes[0] / sizes) ** 2)[:, None]),
            ]
        ),
        Picture("training rows n", "noise variance", log_x=True, log_y=True),
    )


def gradient_noise(problem: Problem, theta: Floats, row: int, noise: Floats) -> Floats:
    """(k, m) change of one row's gradient under noise (k, d) on its features."""
    x, y = problem.rows.X[row], problem.rows.y[row]
    noisy = Rows(x + noise, np.full(len(noise), y))
    at = np.tile(theta, (len(noise), 1))
    here = row_gradients(problem.model, theta[None], Rows(x[None], np.array([y])))
    return np.asarray(row_gradients(problem.model, at, noisy) - here)


def dbdp_weight(context: Context) -> Verdict:
    """Noise of variance sigma^2 on a row reaches the gradient with variance w sigma^2 (DBDP eq. (13), (16))."""
    problem = context.setup("breast-cancer", lam=0.01)[0].problem
    theta, draws, sigma = problem.optimum, context.choose(2000, 10000), 1e-3
    changed = context.hook("gradient_noise", gradient_noise)
    weights = feature_noise_of(problem.model).data_weights(theta[None], problem.rows).ravel()
    index = np.argsort(weights)[np.linspace(0, problem.n - 1, 25).astype(int)]
    rng = np.random.default_rng(context.seed)
    ratio = []
    for k, row in enumerate(index):
        context.monitor(k / len(index))
        change = changed(problem, theta, int(row), sigma * rng.standard_normal((draws, problem.rows.X.shape[1])))
        top = float(np.linalg.eigvalsh(change.T @ change / draws)[-1])
        ratio.append(top / sigma**2)
    w = weights[index]
    power = slope(w, np.array(ratio))
    outcome = Outcome.HOLDS if abs(power - 1) <= EXACT_SLOPE else Outcome.FAILS
    table = pd.concat(
        [
            lines("weight", name, mechanism, w, np.asarray(values)[:, None])
            for name, mechanism, values in (("measured", "dbdp", ratio), ("w, as the paper has it", "", w), ("w²", "", w**2))
        ]
    )
    return Verdict(
        outcome,
        "The gradient's noise has variance wσ²."
        if outcome is Outcome.HOLDS
        else f"w·N(0, σ²) has variance w²σ²: measured exponent {power:.2f}. Where w < 1 the gradient gets less noise than the "
        "proof counts.",
        "Holds if the variance of the gradient in its noisiest direction, over σ², is a power of w with an exponent within "
        f"{EXACT_SLOPE:g} of 1.",
        (("Fitted exponent of w", f"{power:.2f}"), ("Weights w of the rows looked at", f"{w.min():.3g} to {w.max():.3g}")),
        "",
        table,
        Picture("weight w", "variance of the gradient over σ²", log_x=True, log_y=True),
        f"{draws:,} draws for each of {len(index)} rows, seed {context.seed}.",
    )


def compare_sensitivities(context: Context) -> Verdict:
    """The sensitivity of Proposition 2 is below that of Zhang et al."""
    n, lams = 36177, np.logspace(-5, 0, 11)
    ours_of = context.hook("sensitivity", bounds.proposition2)
    # the step that Zhang's bound is stated for, and the one that Proposition 2 likes best
    steps = {"Proposition 2, same step": 1.0, "Proposition 2, step 2/(L + μ)": 2.0}
    ratios, tables = {}, []
    for model in ("logistic", "svm"):
        settings = [get_model(model).setting(n, 105, float(lam)) for lam in lams]
        theirs = np.array([bounds.zhang(n, s.mu, s.L, s.G) for s in settings])
        tables.append(lines(model, "Zhang et al.", "", lams, theirs[:, None]))
        for name, factor in steps.items():
            ours = np.array([ours_of(factor / (s.L + s.mu), n, 1, s.mu, s.L, s.G) for s in settings])
            tables.append(lines(model, name, "outpert-gd", lams, ours[:, None]))
            ratios[f"{name}, {model}"] = ours / theirs
    judged = [Comparison(name, bool((r < 1).all()), f"up to {r.max():.3g} times", float(r.max())) for name, r in ratios.items()]
    least, most = min(r.min() for r in ratios.values()), max(r.max() for r in ratios.values())
    return Verdict(
        combine(judged),
        f"The ratio lies between {least:.2f} and {most:.2f}.",
        f"Holds if it is smaller at all {len(lams)} regularisations from 1e-5 to 1, both models, both steps; fails otherwise.",
        tuple((f"{name} over Zhang et al.", f"{r.min():.3f} to {r.max():.3f}") for name, r in ratios.items()),
        "",
        pd.concat(tables),
        Picture("λ", "sensitivity", log_x=True, log_y=True),
    )


def noise_like_gradient(context: Context) -> Verdict:
    """The factor (n - 1) sqrt(Delta)/n between the noise of input perturbation and that of [43] is a constant (Kang-IP 5.1)."""
    n, strengths = 10_000, np.array([1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    built = context.build("input-perturbation", steps=100)
    settings = [get_model("logistic").setting(n, 20, float(lam)) for lam in strengths]
    # eq. (9) over c G^2 T log(1/delta)/(n epsilon)^2
    factor = (
        np.array([built.calibrate(one, Budget(1.0, 1e-6)).noise_scale ** 2 for one in settings]) * n**2 / (100 * math.log(1e6))
    )
    order = slope(strengths, factor)
    return Verdict(
        Outcome.HOLDS if abs(order) <= EXACT_SLOPE else Outcome.FAILS,
        f"The variance is {factor.min():.3g} to {factor.max():.3g} times that of [43]: it changes as Δ^{order:.2f}, and Δ is the "
        "regularisation, which practice sets near 1/n.",
        f"Holds if the ratio of both variances for Δ from {strengths[0]:g} to {strengths[-1]:g} is a power of Δ with an exponent "
        f"within {EXACT_SLOPE:g} of 0. {OPEN}",
        (
            ("Fitted exponent of Δ", f"{order:.2f}"),
            *((f"Ratio at Δ = {s:g}", f"{f:.3g}") for s, f in zip(strengths, factor, strict=True)),
        ),
        "",
        lines("ratio", "variance over that of [43]", "input-perturbation", strengths, factor[:, None]),
        Picture("Δ", "ratio of variances", log_x=True, log_y=True),
    )


def _scales(context: Context, other: Callable[[Setting], float]) -> tuple[Floats, Floats, Floats]:
    """Numbers of training rows, the noise of input perturbation on the features, and another method's."""
    sizes, built = np.array([1e3, 1e4, 1e5, 1e6]), context.build("input-perturbation", steps=_STEPS)
    settings = [get_model("logistic").setting(int(n), 20, _LAM) for n in sizes]
    own, theirs = np.array([(built.calibrate(one, _BUDGET).noise_scale, other(one)) for one in settings]).T
    return sizes, own, theirs


def _of_fukuchi(setting: Setting) -> float:
    """Noise of [24] on a row, calibrated exactly, which changes its constants and no power of n."""
    return FukuchiInput().calibrate(setting, _BUDGET).details["local_noise_scale"]


def noise_below_bassily(context: Context) -> Verdict:
    """The noise of input perturbation is below that of [4] by up to n^4 log(n)/T (Kang-IP 5.1).

    Printed are the variances on features and on n times the gradient of a row. On the mean gradient of a step both are n^2 and,
    with a draw for each row, n times smaller [ours].
    """
    sizes, own, theirs = _scales(context, lambda setting: published_sigma(_BUDGET, setting.n, setting.G))
    printed = (theirs / own) ** 2
    mean = printed / sizes
    orders = [slope(sizes, ratio / np.log(sizes / _BUDGET.delta)) for ratio in (printed, mean)]
    meets = abs(orders[0] - 4) <= EXACT_SLOPE
    return Verdict(
        Outcome.ONLY_IF if meets else Outcome.FAILS,
        f"Without its logarithm the factor grows as n^{orders[0]:.2f}, and as n^{orders[1]:.2f} on the mean gradient of a step.",
        f"Holds only if the quantities that are printed are compared if the factor without log(n/δ) is a power of n with an "
        f"exponent within {EXACT_SLOPE:g} of 4; fails otherwise. {OPEN} T = {_STEPS}, Δ = {_LAM:g}, ε = 1, δ = 1e-8.",
        (
            ("Fitted exponent of n, as printed", f"{orders[0]:.2f}"),
            ("Fitted exponent of n, mean gradient of a step", f"{orders[1]:.2f}"),
        ),
        "noise on features is set against noise on n times the gradient of one row, and [4] makes n² steps instead of T"
        if meets
        else "",
        pd.concat(
            [
                lines("ratio", name, "input-perturbation", sizes, ratio[:, None])
                for name, ratio in (("as printed", printed), ("on the mean gradient of a step", mean))
            ]
        ),
        Picture("training rows n", "variance of [4] over that of input perturbation", log_x=True, log_y=True),
    )


def noise_below_fukuchi(context: Context) -> Verdict:
    """The noise of input perturbation on a row is below that of [24] by a factor of about n (Kang-IP, below Table 1)."""
    sizes, own, theirs = _scales(context, _of_fukuchi)
    ratio = (theirs / own) ** 2
    order = slope(sizes, ratio)
    meets = abs(order - 1) <= EXACT_SLOPE
    return Verdict(
        Outcome.HOLDS if meets else Outcome.FAILS,
        f"The factor grows as n^{order:.2f}, from {ratio[0]:.2g} to {ratio[-1]:.2g}. Less noise is worth nothing without a "
        "proof, which only the earlier method has.",
        f"Holds if the ratio of the variances on a row is a power of n with an exponent within {EXACT_SLOPE:g} of 1; fails "
        f"otherwise. {OPEN} T = {_STEPS}, Δ = {_LAM:g}, ε = 1, δ = 1e-8.",
        (("Fitted exponent of n", f"{order:.2f}"),),
        "",
        lines("ratio", "variance of [24] over that of input perturbation", "fukuchi-input", sizes, ratio[:, None]),
        Picture("training rows n", "ratio of variances", log_x=True, log_y=True),
    )


def local_like_fukuchi(context: Context) -> Verdict:
    """Each person's own protection, against whoever sees the perturbed rows, is not much less than in [24] (Kang-IP 4)."""
    sizes, *scales = _scales(context, _of_fukuchi)
    own, theirs = np.array([[float(gaussian_epsilon(_BUDGET.delta, 2 / s)) for s in each] for each in scales])
    order = slope(sizes, own / theirs)
    return Verdict(
        Outcome.HOLDS if order <= EXACT_SLOPE else Outcome.FAILS,
        f"The local ε is {own[0]:,.0f} to {own[-1]:,.0f}, that of [24] {theirs[0]:,.0f} to {theirs[-1]:,.0f}: over that, it "
        f"changes as n^{order:.2f}. Noise that is smaller by a power of n protects a row less by a power of n.",
        "The local ε is that of one row with its noise, exact, at the budget's δ, for rows at the distance 2. Holds if it is at "
        f"most a power of n with an exponent of {EXACT_SLOPE:g} times that of [24]; fails otherwise. {OPEN} T = {_STEPS}, "
        f"Δ = {_LAM:g}, ε = 1, δ = 1e-8.",
        (("Fitted exponent of n", f"{order:.2f}"),),
        "",
        pd.concat(
            [
                lines("local", words, mechanism, sizes, values[:, None])
                for words, mechanism, values in (("[24]", "fukuchi-input", theirs), ("the paper's", "input-perturbation", own))
            ]
        ),
        Picture("training rows n", "local ε of a row", log_x=True, log_y=True),
    )


def noise_below_song(context: Context) -> Verdict:
    """The noise of DBDP-ERM PI is below that of Song et al. by T/(n² ε) (Kang-DBDP 4.3).

    Table 1 has a variance for the one, and the scale of a density exp(-|z|/scale) for the other.
    """

    def noises(n: float, steps: float, epsilon: float) -> tuple[float, float]:
        setting, budget = get_model("logistic").setting(round(n), 20, _LAM), Budget(epsilon, 1e-8)
        own = context.build("dbdp-pi", rounds=1, local_steps=round(steps)).calibrate(setting, budget).noise_scale
        return own**2, SongSGD(batch=1).calibrate(setting, budget).noise_scale

    base, stated, around = np.array([1e4, 100.0, 1.0]), {"n": -2.0, "T": 1.0, "ε": -1.0}, np.array([0.1, 1.0, 10.0])
    # n, T and ε alone
    found = [np.array([noises(*(base * factor**one)) for factor in around]) for one in np.eye(3)]
    printed, alike = (
        {name: slope(around, v[:, 0] / v[:, 1] ** power) for name, v in zip(stated, found, strict=True)} for power in (1, 2)
    )
    meets = all(abs(printed[name] - stated[name]) <= EXACT_SLOPE for name in stated)
    words = [" ".join(f"{name}^{round(order, 2) + 0.0:.2f}" for name, order in orders.items()) for orders in (printed, alike)]
    return Verdict(
        Outcome.ONLY_IF if meets else Outcome.FAILS,
        f"The factor is {words[0]} as printed, and {words[1]} where both are variances: ε cancels.",
        "Holds only if the quantities that are printed are compared if their ratio is a power of n, T and ε with exponents "
        f"within {EXACT_SLOPE:g} of −2, 1 and −1, each varied alone; fails otherwise. {OPEN} w = 1; batches of one row.",
        (("As printed", words[0]), ("Both as variances", words[1])),
        "the variance of one noise is set against the scale of the other" if meets else "",
        lines("ratio", "as printed", "dbdp-pi", base[0] * around, found[0][:, :1] / found[0][:, 1:]),
        Picture("training rows n", "noise of DBDP-ERM PI over that of Song et al.", log_x=True, log_y=True),
    )
