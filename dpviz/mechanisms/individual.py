"""Shared parts of individual privacy: from a problem and a release to individual epsilon."""

from collections.abc import Callable

import numpy as np

from dpviz.common.progress import Monitor, ignore
from dpviz.common.threads import THREADS_FROM, map_streams
from dpviz.influence import influence_of
from dpviz.mechanisms.base import Calibration, Floats, NoiseRecord, Training
from dpviz.models import derivatives_of
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.rdp import epsilons
from dpviz.privacy.individual import ORDERS, IndividualEpsilon, gaussian_path, objective_ex_post, objective_publishable
from dpviz.privacy.noise import GAUSSIAN

_EXACT_WORK = 2e9  # n^2 m up to which every row is retrained exactly
_PATH_BYTES = 1 << 26  # iterates kept of a run
_NORMS = 40_000_000  # rows x steps x seeds that are looked at; at least one seed is
_MOST_NORMS = 300_000_000  # rows x steps beyond which no user would wait
_BLOCK = 1 << 18  # rows x steps worked on at once
_ODOMETER: str = (
    "The path depends on the data: a proof needs a filter that stops a row at a budget fixed beforehand; "
    "read after the run the number is an odometer's reading, without that proof."
)


def minimiser_epsilon(problem: Problem, calibration: Calibration) -> IndividualEpsilon | None:
    """For noise added to the exact minimiser of a strongly convex objective."""
    setting, scale = problem.setting, calibration.noise_scale
    if scale <= 0 or not problem.model.convex or problem.model.derivatives is None:
        return None
    influence = influence_of(problem)
    if problem.n**2 * problem.m <= _EXACT_WORK:
        retrained = influence.leave_one_out()
        change, how = retrained.norm + retrained.certificate, "exact leave-one-out"
    else:
        change, how = influence.newton_norm, "leave-one-out by one Newton step, which is not a bound"
    reach = setting.G / (setting.n * setting.lam)  # CMS 2011, Corollary 8, for a row that is added
    noise = calibration.noise_family
    delta = 0.0 if noise.pure else calibration.budget.delta
    known = noise.individual(change, scale, delta, reach, calibration.sensitivity)
    if known is None:
        return None
    epsilon, replace = known
    return IndividualEpsilon(
        epsilon=epsilon[None],
        delta=delta,
        method=f"Per-instance DP of output perturbation (Wang 2019); {how}.",
        replace=None if replace is None else replace[None],
        gaussian=noise == GAUSSIAN,
    )


def gradients_epsilon(
    problem: Problem, calibration: Calibration, record: NoiseRecord, steps: int, bound: float
) -> IndividualEpsilon | None:
    """For full-batch noisy gradients whose `calibration.noise_scale` is the noise on the mean gradient."""
    if record.gradient_energy is None or calibration.noise_scale <= 0:
        return None
    energy = record.gradient_energy[0]
    epsilon, replace = gaussian_path(energy, steps, bound, problem.n * calibration.noise_scale, calibration.budget.delta)
    return IndividualEpsilon(
        epsilon=epsilon,
        delta=calibration.budget.delta,
        method="Accumulated clipped gradients along the realised path (Feldman & Zrnic 2021; Koskela et al. 2023).",
        replace=replace,
        conditions=(_ODOMETER,),
        gaussian=True,
    )


def room_for_path(training: Training, steps: int) -> Floats | None:
    """(E, S', T, m) for the iterates of as many seeds as fit into memory; None where not even one does."""
    budgets, seeds, m = len(training.calibrations), len(training.streams), training.problem.m
    fits = min(seeds, _PATH_BYTES // (8 * budgets * steps * m))
    return np.empty((budgets, fits, steps, m)) if fits else None


def path_epsilon(
    problem: Problem,
    calibration: Calibration,
    path: Floats,
    seeds: int,
    divergence: Callable[[Floats, Floats], Floats],
    worst: float,
) -> IndividualEpsilon | None:
    """For noisy gradients of Poisson batches whose iterates are all released; every row is looked at in every step.

    Args:
        path: (1, S', T, m) iterates at which gradients were taken.
        seeds: how many seeds the run has.
        divergence: (rows, T) gradient norms before clipping and the path (T, m) -> (rows, orders) divergences at `ORDERS`.
        worst: epsilon that no row exceeds, add/remove.
    """
    n, steps = problem.n, path.shape[2]
    if n * steps > _MOST_NORMS:
        return None
    chosen = path[0, : max(1, _NORMS // (n * steps))]
    size = max(64, _BLOCK // steps)
    problem.model.prepare(problem.rows)

    def work(s: int, _: Monitor) -> Floats:
        out = np.empty(n)
        for start in range(0, n, size):
            block = slice(start, min(start + size, n))
            norms = problem.model.gradient_norms(chosen[s], problem.rows.take(block))
            out[block] = epsilons(divergence(norms, chosen[s]), calibration.budget.delta, ORDERS)
        return out

    epsilon = np.stack(map_streams(work, len(chosen), ignore, parallel=n * steps * problem.m >= THREADS_FROM))
    part = "" if len(chosen) == seeds else f" Paths of the first {len(chosen)} of {seeds} noise draws."
    return IndividualEpsilon(
        epsilon=np.minimum(epsilon, worst),
        delta=calibration.budget.delta,
        method=(
            "Rényi sums of the row's own clipped gradients over all steps of the realised path, without the row against "
            f"with it (Feldman & Zrnic 2021; Mironov, Talwar, Zhang 2019).{part}"
        ),
        conditions=(_ODOMETER,),
    )


def after_objective_noise(
    problem: Problem, theta: Floats, lam_sum: float, sigma: float, rho: float = 1e-3
) -> IndividualEpsilon | None:
    """For Gaussian noise in a sum-normalised objective of a linear model, minimised exactly.

    Args:
        theta: (S, m) minimisers of sum phi + lam_sum/2 |theta|^2 + b.theta.
        lam_sum: n lam + Delta.
        sigma: noise scale of b per coordinate.
        rho: probability with which the publishable bound may fail for a row.
    """
    if sigma <= 0:
        return None
    model, rows, n, derivatives = problem.model, problem.rows, problem.n, derivatives_of(problem.model)
    exact, public = np.empty((len(theta), n)), np.empty((len(theta), n))
    for s, t in enumerate(theta):
        slope, curvature = derivatives.slopes(t, rows)
        noise = -(model.sum_gradient(t[None], rows)[0] + lam_sum * t)
        inverse = np.linalg.inv(n * derivatives.hessian(t, rows, lam_sum / n))
        leverage = np.einsum("ij,ij->i", rows.X @ inverse, rows.X)
        exact[s] = objective_ex_post(slope, curvature, rows.norms, leverage, rows.signed_rows @ noise, sigma)
        public[s] = objective_publishable(slope, curvature, rows.norms, lam_sum, sigma, rho)
    return IndividualEpsilon(
        epsilon=exact,
        delta=0.0,
        method="Ex-post privacy loss at the released model (Redberg & Wang 2021).",
        publishable=public,
        conditions=(f"Each publishable bound holds with probability {1 - rho:g} over the noise.",),
    )
