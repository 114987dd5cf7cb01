"""Recipes that turn what a mechanism releases back into the standard draws it must have used, one per mechanism.

On rows of zeros a linear model has no data gradient, so training is a linear recursion in its noise and every draw, or the
exact covariance of the end, can be computed. Where noise is added to a finished model the noiseless run is subtracted.
A recipe yields one truth value per thing that was compared.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support_noise import ALPHA, Floats, Trial, blank, filled, mean_is, normal, share_is, sphere, with_values

from dpviz.common.random import generator, spawn, substreams
from dpviz.mechanisms import PublicSteps, Training
from dpviz.mechanisms.gradient.dp_agd import Runs
from dpviz.models import Rows, feature_noise_of
from dpviz.models.problem import Problem
from dpviz.privacy.noise import GAUSSIAN


def end_of_descent(etas: Floats, sigma: Floats | float, lam: float) -> float:
    """Standard deviation of the end of theta <- theta - eta_t (sigma_t xi_t + lam theta) from 0."""
    left = np.append(np.cumprod((1 - etas * lam)[::-1])[::-1][1:], 1.0)  # what later steps leave of step t
    return float(np.sqrt(((etas * sigma * left) ** 2).sum()))


def of_finished_model(trial: Trial) -> Iterator[bool]:
    """Noise on the parameters: the difference to the noiseless run, which shares permutations."""
    problem = filled()
    cal = trial.declared(problem)
    fit = trial.fit(problem, cal)
    yield np.array_equal(fit.distribution.scale, [trial.used(cal).noise_scale])
    draws = (fit.theta[0] - trial.noiseless(problem, cal)) / cal.noise_scale
    yield (normal if cal.noise_family == GAUSSIAN else sphere)(draws)


def of_objective(trial: Trial) -> Iterator[bool]:
    """Noise in the objective, read off the gradient at the released point; AMP's output noise from its own noiseless run."""
    problem = filled()
    cal = trial.declared(problem)
    alone = with_values(cal, sigma_output=lambda _: 0.0)
    theta = trial.theta(problem, alone)
    b = -(problem.model.sum_gradient(theta, problem.rows) + cal.details["Lam"] * theta) / cal.noise_scale
    yield (normal if cal.noise_family == GAUSSIAN else sphere)(b)
    if "sigma_output" in cal.details:
        yield normal((trial.theta(problem, cal) - theta) / cal.details["sigma_output"])


def of_descent(trial: Trial) -> Iterator[bool]:
    """Full-batch descent, step by step where it may be stopped early, else its end."""
    problem = blank()
    cal, eta = trial.declared(problem), trial.built.step_size * problem.setting.unit_step
    steps = trial.built.step_count(problem.setting)
    if not isinstance(trial.built, PublicSteps):
        yield normal(trial.theta(problem, cal) / end_of_descent(np.full(steps, eta), cal.noise_scale, problem.lam))
        return
    ends = [trial.theta(problem, cal, built=trial.built.stopped_after(k)) for k in range(1, steps + 1)]
    before = [np.zeros_like(ends[0]), *ends[:-1]]
    draws = [((1 - eta * problem.lam) * a - b) / (eta * cal.noise_scale) for a, b in zip(before, ends, strict=True)]
    yield normal(np.hstack(draws))


def of_poisson_steps(trial: Trial) -> Iterator[bool]:
    """Noisy SGD, step by step along the recorded iterates."""
    problem, built = blank(), trial.built
    cal = trial.declared(problem)
    fit = trial.fit(problem, cal, record=True)
    path = np.concatenate([fit.record.path[0], fit.theta[0][:, None]], axis=1)
    eta = built.step_size * problem.setting.unit_step
    moved = (path[:, :-1] - path[:, 1:]) / eta
    smoothing = getattr(built, "smoothing", 0.0)
    # the inverse of the smoothing is I - s Laplacian on a ring
    moved = moved + smoothing * (2 * moved - np.roll(moved, 1, axis=2) - np.roll(moved, -1, axis=2))
    draws = (moved - problem.lam * path[:, :-1]) / cal.noise_scale
    yield normal(draws.reshape(trial.seeds, -1))


def of_bassily(trial: Trial) -> Iterator[bool]:
    """Both forms with so little noise that no projection is met; the end is a linear recursion with published steps."""
    problem, built = blank(n=10), trial.built
    n, m, sigma = problem.n, problem.m, 1e-3
    faithful = built.mode == "faithful"
    cal = trial.declared(problem, noise_scale=sigma * (n if faithful else 1))
    t = np.arange(1, (n * n if faithful else built.step_count(problem.setting)) + 1)
    etas = 2 * built.radius / np.sqrt(t * (built.bound(problem.setting) ** 2 + m * sigma**2))
    if built.rule == "strongly-convex":
        etas = np.minimum(1 / (problem.lam * t), np.inf if faithful else problem.setting.unit_step)
    yield normal(trial.theta(problem, cal) / end_of_descent(etas, sigma, problem.lam))


def of_song(trial: Trial) -> Iterator[bool]:
    """One step over all rows: the exact distribution; two passes over uneven batches: the exact second moment."""
    problem, built = blank(n=11), trial.built
    unit, whole = problem.setting.unit_step, dataclasses.replace(built, batch=11, passes=1)
    cal = whole.calibrate(problem.setting, trial.budget)
    yield sphere(trial.theta(problem, cal, built=whole) / (built.step_size * unit * cal.noise_scale))
    cal = trial.declared(problem)
    sizes = np.tile([5, 6], built.passes)
    etas = built.step_size * unit / np.sqrt(np.arange(1, len(sizes) + 1))
    m, steps = problem.m, len(sizes)
    # the draw of step t in iterate k, shrunk by the regulariser of the steps between
    part = np.array([[np.prod(1 - problem.lam * etas[t + 1 : k + 1]) * (t <= k) for t in range(steps)] for k in range(steps)])
    released = part[steps // 2 :].mean(axis=0) if built.average else part[-1]
    spread = np.linalg.norm(released * etas * cal.noise_scale * 5 / sizes)
    yield mean_is((trial.theta(problem, cal) ** 2).sum(axis=1), m * (m + 1) * spread**2)


def of_dp_agd(trial: Trial) -> Iterator[bool]:
    """The noise on a gradient, on one that is measured better, and the Gumbel noise of a choice, replayed."""
    problem, built = blank(lam=5.0), trial.built
    cal, streams = trial.declared(problem), spawn(11, trial.seeds)
    runs = Runs(built, problem, [trial.used(cal)], streams)
    runs.measure()
    yield normal(runs.noisy / cal.noise_scale)
    better = Runs(built, problem, [trial.used(cal)], streams)
    better.measure()
    better.measure_better(np.arange(trial.seeds))
    yield normal(better.noisy * np.sqrt(1 + built.gamma) / cal.noise_scale)
    choices = [generator(substreams(s, 3)[2]) for s in streams]
    first, etas = runs.noisy.copy(), np.linspace(0, built.longest, built.candidates + 1)
    for step in range(3):
        direction = runs.noisy / problem.n + problem.lam * runs.theta
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        reached = runs.theta[:, None] - etas[:, None] * direction[:, None]
        losses = 0.5 * problem.n * problem.lam * (reached**2).sum(axis=2)  # those of the rows are all alike
        gumbel = np.array([rng.gumbel(size=len(etas)) for rng in choices])
        chosen = np.argmin(losses - cal.details["gumbel_scale"] * gumbel, axis=1)
        runs.choose()
        yield bool(np.allclose(runs.theta, reached[np.arange(trial.seeds), chosen], atol=1e-6)) and bool(runs.alive.all())
        moved, better = np.flatnonzero(runs.fresh), runs.price / cal.details["rho_ng"]
        runs.measure()
        draws = runs.noisy[moved] * np.sqrt(better[moved])[:, None]
        yield normal((np.hstack([first[moved], draws]) if step == 0 else draws) / cal.noise_scale)


def of_dp_svrg(trial: Trial) -> Iterator[bool]:
    """The full gradients' noise and that of every inner step, or the end of the published form."""
    problem, built = blank(), trial.built
    cal, eta = trial.declared(problem), built.step_size * problem.setting.unit_step
    t, k, m = built.rounds, built.inner_steps, problem.m
    fit = trial.fit(problem, cal, record=True)
    if built.noise == "published":
        shrink = 1 / (1 + eta * problem.lam)
        state = np.zeros(t * k)  # coefficients of all draws in x
        for r in range(t):
            inner = []
            for i in range(k):
                state = shrink * state
                state[r * k + i] -= shrink * eta
                inner.append(state)
            state = np.mean(inner, axis=0) if built.snapshot == "average" else state
        yield normal(fit.theta[0] / (cal.noise_scale * np.linalg.norm(state)))
        return
    before = fit.record.path[0].reshape(trial.seeds, t, k, m)
    ends = np.concatenate([before[:, 1:, 0], fit.theta[0][:, None]], axis=1)  # what each round hands on
    last = k * ends - before[:, :, 1:].sum(axis=2) if built.snapshot == "average" else ends
    after = np.concatenate([before[:, :, 1:], last[:, :, None]], axis=2)
    moved = (before - (1 + eta * problem.lam) * after) / eta
    yield normal((moved[:, :, 0] / cal.noise_scale).reshape(trial.seeds, -1))
    limit = np.minimum(
        2 * built.bound(problem.setting), problem.setting.beta * np.linalg.norm(before - before[:, :, :1], axis=3)
    )[:, :, 1:, None]
    deviation = cal.details["noise_multiplier_inner"] * limit / (built.sampling_rate * problem.n)
    yield normal(((moved[:, :, 1:] - moved[:, :, :1]) / deviation).reshape(trial.seeds, -1))


def of_pidp(trial: Trial) -> Iterator[bool]:
    """One step: where rows received noise the step differs from its noiseless run by that noise, elsewhere by nothing."""
    problem = filled()
    cal = trial.declared(problem)
    fit = trial.fit(problem, cal, record=True)
    share = np.asarray(fit.record.times_noised)[0].sum(axis=1) / trial.built.batch_size  # of the step's rows
    with_noise = share > 0
    eta = trial.built.step_size * problem.setting.unit_step
    moved = (trial.noiseless(problem, cal) - fit.theta[0]) / (eta * cal.noise_scale)
    yield not moved[~with_noise].any()
    yield normal(moved[with_noise] / share[with_noise, None])
    if trial.built.rule == "threshold":
        return  # on rows of zeros no influence is above it
    # two rounds of two steps in which every row receives noise: each step has a draw of its own
    longer, problem = dataclasses.replace(trial.built, rounds=2, local_steps=2, start="zero", fraction=1.0), blank()
    cal = longer.calibrate(problem.setting, trial.budget)
    spread = end_of_descent(np.full(4, eta), cal.noise_scale, problem.lam)
    yield normal(trial.theta(problem, cal, built=longer) / spread)


def of_dbdp_pi(trial: Trial) -> Iterator[bool]:
    """One step: the published row, its noise by eq. (15), and the model that it trained."""
    problem, built = filled(), trial.built
    cal = trial.declared(problem)
    fit = trial.fit(problem, cal, record=True)
    draws, right = [], []
    for s, stream in enumerate(spawn(11, trial.seeds)):
        moved = built.noisy_rows(problem, trial.used(cal), stream) - problem.rows.X
        changed = np.flatnonzero(moved.any(axis=1))
        if not len(changed):
            continue
        row, start = problem.rows.take(changed), built.starting_points(problem, [stream])[0]
        weight = feature_noise_of(problem.model).data_weights(start, row)[0]
        draws.append(moved[changed[0]] * (np.sqrt(weight) if built.scaling == "root" else weight) / cal.noise_scale)
        noisy = Rows(row.X + moved[changed], row.y)
        gradient = problem.model.sum_gradient(start[None], noisy)[0] + problem.lam * start
        right.append(np.allclose(fit.theta[0, s], start - built.step_size * problem.setting.unit_step * gradient))
    yield all(right)
    yield normal(np.array(draws))


def of_rows(trial: Trial) -> Iterator[bool]:
    """Noise on rows before training: its size, and that the model is trained on these very rows."""
    problem, built = filled(), trial.built
    cal = trial.declared(problem)
    streams = spawn(11, trial.seeds)
    shared = getattr(built, "sharing", "per-record") == "shared"
    noise = [built.noisy_rows(problem, trial.used(cal), s) - problem.rows.X for s in (streams if shared else streams[:30])]
    yield not shared or all(np.allclose(x, x[:1]) for x in noise)
    yield normal(np.concatenate([x[:1] if shared else x for x in noise]) / cal.noise_scale)
    for s in streams[:3]:
        noisy = Problem(Rows(built.noisy_rows(problem, cal, s), problem.rows.y), problem.model, problem.lam)
        one = built.fit(Training(problem, [cal], [s])).theta
        yield bool(np.allclose(one, built.fit(Training(noisy, [cal.noiseless()], [s])).theta, rtol=1e-3, atol=1e-5))


def of_fukuchi(trial: Trial) -> Iterator[bool]:
    """To first order in little noise: vector noise through the inverse, and matrix noise through the noiseless minimiser."""
    problem = filled(lam=1e-3)
    cal = trial.declared(problem, noise_scale=1e-7)
    centre = trial.noiseless(problem, cal)[0]
    k = cal.details["quadratic_curvature"]
    hessian = k * problem.rows.X.T @ problem.rows.X + problem.n * problem.lam * np.eye(problem.m)
    moved = (trial.theta(problem, cal) - centre) @ hessian / 1e-7
    # xi - Xi theta, where Xi has variance 1 on the diagonal and 1/2 beside it
    covariance = np.eye(problem.m) * (1 + 0.5 * centre @ centre) + 0.5 * np.outer(centre, centre)
    yield normal(np.linalg.solve(np.linalg.cholesky(covariance), moved.T).T)


def of_gaussian_reports(trial: Trial) -> Iterator[bool]:
    """Reports of records and the model learnt from them, or one pass over reported gradients."""
    built = trial.built
    if built.release == "gradient":
        problem, eta = blank(), built.step_size
        cal = trial.declared(problem)
        sizes = np.array([len(part) for part in np.array_split(np.arange(problem.n), built.batches)])
        etas = np.full(built.batches, eta * problem.setting.unit_step)
        spread = end_of_descent(etas, cal.noise_scale / np.sqrt(sizes), problem.lam)
        yield normal(trial.theta(problem, cal) / spread)
        return
    problem = filled()
    cal = trial.declared(problem)
    streams = spawn(11, trial.seeds)[:30]
    signed = [built.noisy_rows(problem, trial.used(cal), s) * problem.rows.y[:, None] for s in streams]
    yield normal((np.concatenate(signed) - np.tile(problem.rows.signed_rows, (30, 1))) / cal.noise_scale)
    for s, reports in zip(streams[:3], signed, strict=False):
        theta = built.fit(Training(problem, [trial.used(cal)], [s], record=False)).theta[0, 0]
        yield bool(np.allclose(theta, learnt(built, problem, reports, trial.used(cal).noise_scale), rtol=1e-3, atol=1e-4))


def learnt(built: Any, problem: Problem, reports: Floats, s: float) -> Floats:
    """The model that Gaussian reports of signed records give."""
    if built.training == "plain":
        return problem.model.minimise(Rows(reports, np.ones(problem.n)), problem.lam)
    beta, d = problem.setting.beta, problem.m
    value, basis = np.linalg.eigh(beta * (reports.T @ reports / problem.n - s**2 * np.eye(d)))
    curvature = np.maximum(value, built.floor * beta * 2 * (s**2 + s) * np.sqrt(d / problem.n)) + problem.lam
    return basis @ (basis.T @ (0.5 * reports.mean(axis=0)) / curvature)


def of_duchi_reports(trial: Trial) -> Iterator[bool]:
    """Length and half sphere of every report, and that one person's report makes the model of a set of one."""
    built, epsilon = trial.built, trial.budget.epsilon
    problem = filled(n=120_000, d=3)
    problem = Problem(Rows(problem.rows.X / np.linalg.norm(problem.rows.X, axis=1)[:, None], problem.rows.y), problem.model, 1.0)
    cal = trial.declared(problem)
    epsilon = cal.details["local_epsilon"]
    # weaker noise is a larger epsilon
    used = with_values(cal, local_epsilon=lambda declared: declared / trial.share)
    agree = np.exp(epsilon) / (1 + np.exp(epsilon))
    if built.release == "record":
        reports = built.noisy_rows(problem, used, spawn(11, 1)[0])
        yield bool(np.allclose(np.linalg.norm(reports, axis=1), cal.details["B"], rtol=1e-5))
        cosine = np.einsum("ij,ij->i", reports, problem.rows.X) / cal.details["B"]
        yield share_is(int((cosine > 0).sum()), problem.n, agree)
        yield stats.kstest(np.abs(cosine), stats.uniform.cdf).pvalue > ALPHA  # Archimedes: on a sphere in 3 dimensions
    one = Problem(problem.rows.take(np.arange(1)), problem.model, 1.0)
    person, count = one.rows.signed_rows[0], 2_000
    built = dataclasses.replace(built, batches=1)
    theta = built.fit(Training(one, [used], spawn(12, count), record=False)).theta[0]
    if built.release == "gradient":  # at 0 a gradient is half as long as its bound, and points along -yx
        agree = 0.75 * agree + 0.25 * (1 - agree)
        yield bool(np.allclose(np.linalg.norm(theta, axis=1), one.setting.unit_step * cal.details["B"], rtol=1e-4))
    elif built.training == "surrogate":
        yield bool(np.allclose(np.linalg.norm(theta, axis=1), 0.5 * cal.details["B"] / one.setting.L, rtol=1e-4))
    yield share_is(int((theta @ person > 0).sum()), count, agree)
    # whatever half sphere a report is from, its distance from every coordinate plane is uniform
    unit = np.abs(theta) / np.linalg.norm(theta, axis=1, keepdims=True)
    yield len(np.unique(theta, axis=0)) == count
    yield all(stats.kstest(unit[:, j], stats.uniform.cdf).pvalue > ALPHA for j in range(3))


def of_majority(trial: Trial) -> Iterator[bool]:
    """The label that the count plus Laplace noise gives, replayed, and how often it is the wrong one."""
    problem = blank()
    cal, count = trial.declared(problem), problem.rows.y.sum()
    streams = spawn(11, 4000)
    label = trial.built.fit(Training(problem, [trial.used(cal)], streams)).constant_label
    laplace = np.array([generator(s).laplace() for s in streams])
    yield bool((label[0] == np.where(count + cal.noise_scale * laplace >= 0, 1.0, -1.0)).all())
    if cal.noise_scale > 0:
        yield share_is(int((label[0] > 0).sum()), 4000, 0.5 * np.exp(-abs(count) / cal.noise_scale))


def of_nothing(trial: Trial) -> Iterator[bool]:
    """No noise: every replica is the minimiser."""
    problem = filled()
    theta = trial.theta(problem, trial.declared(problem))
    yield bool((theta == problem.optimum).all())


_POISSON = {"sampling_rate": 0.5, "epochs": 1.5}
_ONE_STEP = {"rounds": 1, "local_steps": 1}

Recipe = tuple[Callable[[Trial], Iterator[bool]], dict[str, Any]]


class Recipes(dict[str, Recipe]):
    """Without a recipe `test_every_mechanism_has_a_recipe` fails and says what to do; no other test does."""

    def __missing__(self, name: str) -> Recipe:
        return lambda _: pytest.skip(f"{name} has no recipe"), {}


#: mechanism id -> (recipe, knobs that make it short)
RECIPES = Recipes(
    {
        "majority": (of_majority, {}),
        "non-private": (of_nothing, {}),
        "bolt-on-psgd": (of_finished_model, {"passes": 2, "batch_size": 10}),
        "cms-output": (of_finished_model, {}),
        "nsgd": (of_finished_model, {"epochs": 2}),
        "outpert-gd": (of_finished_model, {"steps": 5}),
        "output-gaussian": (of_finished_model, {}),
        "rsgd": (of_finished_model, {"epochs": 2}),
        "rsgd-ar": (of_finished_model, {"epochs": 4, "tau": 2}),
        "amp": (of_objective, {}),
        "cms-objective": (of_objective, {}),
        "kst-objective": (of_objective, {}),
        "objective-tight": (of_objective, {}),
        "bassily-sgd": (of_bassily, _POISSON | {"radius": 0.1}),
        "dp-agd": (of_dp_agd, {}),
        "dp-gd": (of_descent, {"steps": 3, "step_size": 1.9}),
        "dp-lssgd": (of_poisson_steps, _POISSON | {"step_size": 1.0}),
        "dp-sgd": (of_poisson_steps, _POISSON | {"step_size": 1.0}),
        "dp-svrg": (of_dp_svrg, {"rounds": 2, "inner_steps": 3, "sampling_rate": 0.5, "step_size": 1.0}),
        "pidp-sgd": (of_pidp, _ONE_STEP | {"step_size": 1.0, "threshold": 1e-6, "fraction": 0.5}),
        "renyi-filter": (of_descent, {"full_steps": 3, "step_size": 1.9}),
        "song-sgd": (of_song, {"batch": 5, "passes": 2, "step_size": 1.0}),
        "dbdp": (of_rows, {"steps": 3}),
        "dbdp-pi": (of_dbdp_pi, _ONE_STEP | {"step_size": 0.1}),
        "fukuchi-input": (of_fukuchi, {}),
        "input-perturbation": (of_rows, {"steps": 3}),
        "ldp-duchi": (of_duchi_reports, {"batches": 3}),
        "ldp-gaussian": (of_gaussian_reports, {"batches": 3}),
    }
)
