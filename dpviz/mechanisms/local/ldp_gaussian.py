"""Local Gaussian reports: everyone adds noise to their own record before it leaves them."""

import math
from dataclasses import dataclass

import numpy as np

from dpviz.common.progress import Monitor
from dpviz.common.random import generator, single_normals, substreams
from dpviz.common.threads import THREADS_FROM, map_streams
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Training, knob
from dpviz.mechanisms.local.local_reports import SHUFFLED, LocalMechanism, NoiseSums, row_blocks
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian, Shuffled
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.accounting.shuffle import gaussian_mu_for, shuffled_gaussian
from dpviz.privacy.budget import Budget


@dataclass(frozen=True)
class LDPGaussian(LocalMechanism):
    """Reports y_i x_i + N(0, s^2 I), s = 2/mu*(epsilon, delta), once per person; the label is in the report.

    The surrogate is the quadratic with the loss's slope at 0 and its largest curvature beta,
    -|phi'(0)| <theta, z> + beta/2 theta' (z z' - s^2 I) theta: its mean over reports z is its value on the clean
    records, so the noise does not shrink the coefficients. Directions in which the corrected second moment is
    below a share of the noise's own spectral edge carry nothing but noise; their curvature is raised to that floor.
    It hangs on sums over the reports alone, so that only their noise is drawn (`NoiseSums`), and that of rows where it is shown.
    """

    id = "ldp-gaussian"
    label = "Local Gaussian reports"
    citation = (
        "Local model: Kasiviswanathan et al., SIAM J. Comput. 40 (2011); noise: Balle, Wang, ICML 2018, Theorem 8; "
        "shuffling: Feldman, McMillan, Talwar, FOCS 2021, Theorem 3.1"
    )
    noise_enters = "Every row: each person adds Gaussian noise to their own report before anyone sees it."
    guarantee = (
        "(ε, δ)-LDP of every report, proved; all training is post-processing. "
        "Shuffling can give a smaller central ε, not for every ε and n."
    )

    floor: float = knob(
        0.1,
        "Noise floor",
        "Least curvature of the surrogate; smaller ones are raised to it.",
        low=0.01,
        high=10.0,
        log=True,
        unit="noise edge",
    )

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        self.check(setting)
        query, source, sensitivity = self.query_in_words(setting)
        mu = gaussian_mu_for(budget, setting.n) if self.central else gaussian_mu(budget)
        s = sensitivity / mu
        local = float(gaussian_epsilon(budget.delta, mu))
        shuffled = shuffled_gaussian(mu, setting.n, budget.delta)
        size = setting.d if setting.linear else setting.d + 1
        off = s * math.sqrt(size / setting.n)
        notes: list[str] = [
            f"One report is {Budget(local, budget.delta)}-LDP. All {setting.n} reports, shuffled, are "
            f"{Budget(shuffled.epsilon, budget.delta)}-DP"
            + (
                f": {shuffled.extra:.2g} of δ pays for reports that are not purely ε-LDP."
                if shuffled.amplified
                else "; at this size shuffling proves nothing better than one report."
            ),
            f"The mean of all reports is off by about {off:.3g}; what distinguishes the classes by less is lost, and the "
            "model then predicts the majority.",
            "The table of rows is the data owner's view; a person's report is released without their row id.",
            *self.learns(setting),
        ]
        calibration = Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query=query,
            sensitivity_source=source,
            noise_scale=s,
            accountant="shuffled Gaussian reports" if self.central else "exact Gaussian mechanism per report (Balle & Wang 2018)",
            conversion="a point of the Gaussian's (ε, δ) curve, then Feldman, McMillan, Talwar 2021" if self.central else "",
            notes=tuple(notes),
            mu=mu,
            details={
                "local_epsilon": local,
                "local_delta": budget.delta,
                "central_epsilon": shuffled.epsilon,
                "central_delta": budget.delta,
                "amplified": float(shuffled.amplified),
                "theorem_local_epsilon": shuffled.local_epsilon,
                "theorem_local_delta": shuffled.local_delta,
                "extra_delta": shuffled.extra,
                "expected_noise_norm": s * math.sqrt(size),
            },
        )
        return calibration.conditional(SHUFFLED) if self.central else calibration

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        report = Gaussian(calibration.sensitivity, calibration.noise_scale)
        return Shuffled(report, setting.n) if self.central else report

    def fit(self, training: Training) -> Fit:
        problem, streams = training.problem, training.streams
        s = training.scales
        noise_norms = np.zeros((len(streams), problem.n)) if training.record else None
        plain = self.training == "plain" or not problem.setting.linear
        if not plain:
            slope = problem.setting.slope_at_zero
            mean, moment = problem.rows.signed_rows.mean(axis=0), problem.rows.signed_rows.T @ problem.rows.signed_rows
            noise = NoiseSums(problem.rows.signed_rows, moment)

        def work(k: int, tick: Monitor) -> Floats:
            own = None if noise_norms is None else noise_norms[k]
            if self.release == "gradient":
                return self._one_pass(problem, s, streams[k], own, tick)
            if plain:
                return self._plain(problem, s, streams[k], own, tick)
            return self._surrogate(problem, s, streams[k], own, noise, mean, moment, slope)

        theta = np.stack(
            map_streams(work, len(streams), training.monitor, parallel=problem.n * problem.m >= THREADS_FROM), axis=1
        )
        if noise_norms is None:
            return Fit(theta, NoiseRecord(self.noise_enters))
        ones = np.ones((1, 1, problem.n))
        return Fit(
            theta,
            NoiseRecord(
                self.noise_enters,
                visits=ones,
                times_noised=np.where(s > 0, 1.0, 0.0)[:, None, None],
                noise_norm=s[:, None, None] * noise_norms,
            ),
        )

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats | None:
        """(n, d) reports as rows: signed records signed back, x + y s xi, or reported features; None for gradient reports."""
        if self.release == "gradient":
            return None
        if not problem.setting.linear:
            return problem.rows.X + calibration.noise_scale * single_normals(stream)(self.signed_records(problem).shape)[:, :-1]
        signed = problem.rows.signed_rows
        if self.training == "surrogate":
            noise = NoiseSums(signed, signed.T @ signed).rows(stream)
        else:
            noise = single_normals(stream)(signed.shape)
        return problem.rows.X + problem.rows.y[:, None] * calibration.noise_scale * noise

    def _surrogate(
        self,
        problem: Problem,
        s: Floats,
        stream: np.random.SeedSequence,
        noise_norms: Floats | None,
        noise: NoiseSums,
        mean: Floats,
        moment: Floats,
        slope: float,
    ) -> Floats:
        """(E, m) minimisers of the corrected surrogate; sums over rows are shared by all budgets."""
        n, d, (total, cross, square) = problem.n, problem.m, noise.draw(stream)
        if noise_norms is not None:
            noise_norms[:] = np.linalg.norm(noise.rows(stream), axis=1)
        reported = mean + np.outer(s, total / n)
        theta = np.empty((len(s), d))
        for e, scale in enumerate(s):
            # E[z z'] = v v' + s^2 I for a report z = v + N(0, s^2 I)
            second = (moment + scale * (cross + cross.T) + scale**2 * square) / n - scale**2 * np.eye(d)
            value, basis = np.linalg.eigh(problem.setting.beta * second)
            # spectral size of the noise in the second moment: 2 s^2 sqrt(d/n) from noise alone (Wigner), 2 s sqrt(d/n)
            # from its product with rows of norm 1 [ours]
            edge = problem.setting.beta * 2 * (scale**2 + scale) * math.sqrt(d / n)
            curvature = np.maximum(value, self.floor * edge) + problem.lam
            theta[e] = basis @ ((basis.T @ (slope * reported[e])) / curvature)
        return theta

    def _plain(
        self, problem: Problem, s: Floats, stream: np.random.SeedSequence, noise_norms: Floats | None, report: Monitor
    ) -> Floats:
        """(E, m) minimisers of the model's own objective on the reports."""
        records = self.signed_records(problem)
        noise = single_normals(stream)(records.shape)
        if noise_norms is not None:
            noise_norms[:] = np.linalg.norm(noise, axis=1)
        theta = np.empty((len(s), problem.m))
        for e, scale in enumerate(s):
            report(e / len(s))
            theta[e] = self.learn(problem, records + scale * noise, stream)
        return theta

    def _one_pass(
        self, problem: Problem, s: Floats, stream: np.random.SeedSequence, noise_norms: Floats | None, report: Monitor
    ) -> Floats:
        """(E, m) models after one pass in which every person reports one noisy gradient."""
        start, order, noise = substreams(stream, 3)
        theta = np.repeat(problem.model.initial(problem.m, [start]), len(s), axis=0)
        normals, step = single_normals(noise), self.step_size * problem.setting.unit_step
        batches = np.array_split(generator(order).permutation(problem.n), self.batches)
        for t, index in enumerate(batches):
            total = np.zeros(problem.m)
            for block in row_blocks(len(index)):
                draw = normals((block.stop - block.start, problem.m))
                total += draw.sum(axis=0, dtype=float)
                if noise_norms is not None:
                    noise_norms[index[block]] = np.sqrt(np.einsum("ij,ij->i", draw, draw))
            clean = problem.model.sum_gradient(theta, problem.rows.take(index), clip_norm=problem.setting.G)
            theta -= step * ((clean + np.outer(s, total)) / len(index) + problem.lam * theta)
            report((t + 1) / self.batches)
        return theta
