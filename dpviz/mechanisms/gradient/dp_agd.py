"""Gradient descent that spends its budget as it goes: more on gradients only when a noisy one leads nowhere."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import generator, substreams
from dpviz.mechanisms import rules
from dpviz.mechanisms.all_rows import AllRows, by_seeds, rounding
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, ignore, knob
from dpviz.mechanisms.calibration import TrainingValues
from dpviz.mechanisms.capabilities import BoundsDistance, ProtectsQuery
from dpviz.mechanisms.gradient.clip_count import ClipCount, ClipsRows
from dpviz.mechanisms.knobs import clip_norm_knob, relation_knob
from dpviz.models import Ability, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.distance import distance_by_divergence
from dpviz.privacy.accounting.rdp import zcdp_rho
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.noise import GAUSSIAN

_WORK = 50_000_000  # losses evaluated between two reports of progress


@dataclass(frozen=True)
class Prices(TrainingValues):
    """The prices in a run of DP-AGD, in rho of zCDP.

    Attributes:
        rho_total: the whole budget.
        rho_nmax: price of a choice of a step size.
        rho_ng: price of the first gradient.
        gumbel_scale: scale of the Gumbel noise of a choice, worth rho_nmax.
    """

    rho_total: float
    rho_nmax: float
    rho_ng: float
    gumbel_scale: float


@dataclass(frozen=True)
class DPAGD(ClipsRows, ProtectsQuery, BoundsDistance):
    """Noisy direction, noisy choice of a step size; where none helps, shorter steps or a better measured gradient.

    Lee and Kifer measure the gradient better whenever no step size helps. Where the gradient is clear already, all sizes
    were too large: that spent the budget of networks on one gradient. Then the sizes shrink instead, which costs nothing,
    as it follows from the noisy gradient and the noisy choice alone.

    Every draw is paid for before it is made and nothing is drawn that the rest of the budget does not cover, so the
    data-dependent number of steps is covered by zCDP's filter (Whitehouse et al. 2023). The choice is report-noisy-max
    with Gumbel noise, which is the exponential mechanism; subtracting exponential noise instead, as circulating code
    does, is not private at the stated budget.
    """

    id = "dp-agd"
    label = "DP-AGD"
    needs = frozenset({Ability.LINE_LOSSES})
    citation = (
        "Lee, Kifer, KDD 2018, Algorithms 1 to 3; choice: Cesar, Rogers, ALT 2021 (bounded range); "
        "zCDP: Bun, Steinke, TCC 2016; filter: Whitehouse et al., ICML 2023"
    )
    noise_enters = (
        "Every full-batch gradient (Gaussian) and every choice of a step size (Gumbel noise on the losses of the candidates)."
    )
    guarantee = "ρ-zCDP and hence (ε, δ)-DP, proved; the number of steps follows from the data and is covered."

    splits: int = knob(
        0,
        "Splits",
        "Sets the budget of the first choice and gradient: more splits, smaller budgets, more steps (published: 60).",
        low=2,
        high=100,
        automatic=rules.SPLITS,
    )
    gamma: float = knob(
        1.0,
        "Raise",
        "Relative growth of a gradient's budget when no step size lowers the loss (published: 0.1).",
        low=0.01,
        high=10.0,
        log=True,
    )
    clip_norm: float = clip_norm_knob(0.0, rules.CLIP_NORM_OF_SEARCH)
    clip_loss: float = knob(
        3.0,
        "Clip loss",
        "Largest loss that a row may add to a candidate's score. If it is small, rows with a large loss count too little.",
        low=0.01,
        high=100.0,
        log=True,
    )
    candidates: int = knob(10, "Step sizes", "Candidates besides 0, evenly spaced (published: 20).", low=1, high=100)
    longest: float = knob(2.0, "Longest step", "Upper end of the step sizes.", low=0.001, high=100.0, log=True)
    shrink: float = knob(
        0.5,
        "Shrink",
        "Factor on all step sizes where none lowers the loss although noise is below half of the squared gradient "
        "(published: 1, no change).",
        low=0.1,
        high=1.0,
    )
    relation: str = relation_knob("The publication uses add-remove; replace-one needs more noise.")

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return rules.splits(setting)

    def clip_by_rule(self, setting: Setting) -> float:
        return rules.clip_norm_of_search(setting)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        splits = int(self.value("splits", setting))
        replace_one = self.relation == Neighbouring.REPLACE_ONE
        rho = zcdp_rho(budget)
        # Lee & Kifer 2018, in the form of the authors' code: eps_nmax = (eps/2)/splits, rho_nmax = eps_nmax^2/2,
        # rho_ng = C^2/(2 sigma^2) with sigma = C sqrt(2 ln(1.25/delta))/eps_nmax
        epsilon_choice = budget.epsilon / 2 / splits
        published = epsilon_choice**2 / 2
        # eps^2 outgrows rho ~ eps: beyond eps ~ ln(1/delta) the published price would use up rho in a few choices
        rho_choice = min(published, rho / splits)
        rho_gradient = rho_choice / (2 * math.log(1.25 / budget.delta))
        bound = self.bound(setting)
        sensitivity = (2 if replace_one else 1) * bound
        # the losses of all candidates change by amounts in [-C, C] when a row is replaced, in [0, C] when one is added
        spread = (2 if replace_one else 1) * self.clip_loss
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the sum of clipped gradients of one step",
            sensitivity_source=f"a row contributes at most min(C, G), {'a replaced one twice that' if replace_one else 'once'}",
            noise_scale=sensitivity / math.sqrt(2 * rho_gradient),  # Bun & Steinke 2016, Proposition 1.6
            noise_family=GAUSSIAN,
            neighbouring=Neighbouring(self.relation),
            accountant="zCDP with a filter on what is left",
            conversion="ε = ρ + 2 sqrt(ρ ln(1/δ)) (Bun & Steinke 2016, Proposition 1.3)",
            notes=(
                "The publication is calibrated for add-remove"
                + (
                    "; here a gradient sum moves by 2 C and the scores are not monotone, so gradients get twice and "
                    "choices twice the noise."
                    if replace_one
                    else ", with n public; the scores then move in one direction and the choice needs half the noise."
                ),
                "The noise scale is that of the first gradient; later ones are measured better where no step size helped.",
                "Gumbel noise replaces the exponential noise of the authors' code, whose noisy max is not private as priced.",
                *(
                    (f"The price of a choice is capped at ρ/{splits}: the published one would leave too few of them.",)
                    if published > rho_choice
                    else ()
                ),
                *rounding(setting),
                "The losses that choose a step size are summed in single precision; that rounding is outside the proof.",
            ),
            # exponential mechanism of range parameter e is e^2/8-zCDP (Cesar & Rogers 2021)
            for_training=Prices(rho, rho_choice, rho_gradient, gumbel_scale=spread / math.sqrt(8 * rho_choice)),
            details={"eps_nmax": epsilon_choice, "most_choices": math.floor(rho / rho_choice)},
        )

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        # rho-zCDP: Rényi divergences of order a are at most rho a, and the one of order 1 is Kullback and Leibler's
        return distance_by_divergence(calibration.values(Prices).rho_total)

    def fit(self, training: Training) -> Fit:
        problem, calibrations, streams = training.problem, training.calibrations, training.streams
        e, n = len(calibrations), problem.n
        problem.model.prepare(problem.rows, np.float32)

        def train(part: slice, tick: Monitor) -> tuple[NDArray[np.floating], ...]:
            runs = Runs(self, problem, calibrations, streams[part], record=training.record)
            with runs.rows:
                while runs.alive.any():
                    runs.measure()
                    runs.choose(tick)
            seeds = len(runs.theta) // e
            clipped = np.zeros((len(runs.theta), 0)) if runs.clips is None else runs.clips.share(runs.looks)
            return runs.theta.reshape(e, seeds, -1), runs.updates.reshape(e, seeds, 1), clipped.reshape(e, seeds, -1)

        theta, updates, clipped = by_seeds(training, train)
        return Fit(
            theta,
            NoiseRecord(
                self.noise_enters + " A visit is one step taken; losses are also read at every choice.",
                visits=np.broadcast_to(updates, (e, len(streams), n)) if training.record else None,
                clipped=clipped if training.record else None,
            ),
        )

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        return problem.model.sum_gradient(theta, problem.rows, clip_norm=self.clip(problem.setting))


class Runs:
    """R runs side by side, each in its own state.

    Attributes:
        theta: (R, m).
        rho: (R,) budget left; `total` is what it was.
        price: (R,) budget of a gradient, rho_ng.
        longest: (R,) upper end of the step sizes.
        alive: (R,) runs that can still pay.
        fresh: (R,) runs whose next move is a new gradient.
        updates: (R,) steps taken.
        measured: (R,) gradients taken.
        clips: counts the rows' clipped gradients; None where that is not recorded.
        rows: sums over all of them.
    """

    def __init__(
        self, knobs: DPAGD, problem: Problem, calibrations: Sequence[Calibration], streams: Streams, *, record: bool = False
    ) -> None:
        sources = [[substreams(stream, 3) for stream in streams] for _ in calibrations]
        flat = [part for parts in sources for part in parts]
        self.gaussian = [generator(noise) for _, noise, _ in flat]
        self.gumbel = [generator(choice) for _, _, choice in flat]
        self.theta = problem.model.initial(problem.m, [start for start, _, _ in flat])
        self.knobs, self.problem = knobs, problem

        def each(values: Sequence[float]) -> Floats:
            return np.repeat(np.array(values, float), len(streams))

        prices = [c.values(Prices) for c in calibrations]
        self.total = each([p.rho_total for p in prices])
        self.rho = self.total.copy()
        self.price = each([p.rho_ng for p in prices])
        self.choice_price = each([p.rho_nmax for p in prices])
        # noise is a multiple of the noise scale, so that 0 switches all of it off
        on = each([float(c.noise_scale > 0) for c in calibrations])
        self.gradient_scale = each([c.noise_scale for c in calibrations]) * np.sqrt(self.price)
        self.gumbel_scale = on * each([p.gumbel_scale for p in prices])
        r = len(self.theta)
        self.alive, self.fresh = np.ones(r, bool), np.ones(r, bool)
        self.exact, self.noisy = np.zeros_like(self.theta), np.zeros_like(self.theta)
        self.longest, self.chosen = np.full(r, knobs.longest), np.zeros(r)
        self.updates, self.measured = np.zeros(r), np.zeros(r)
        self.clip = knobs.clip(problem.setting)
        self.clips = ClipCount(problem.setting, self.clip, r) if record else None
        self.rows = AllRows(problem, r)

    @property
    def looks(self) -> Floats:
        """(R, n) gradients taken of each row."""
        return np.repeat(self.measured[:, None], self.problem.n, axis=1)

    def _pay(self, who: np.ndarray, price: Floats) -> np.ndarray:
        """Those of `who` that can pay, after paying; the others stop for good."""
        able = self.rho[who] >= price
        self.alive[who[~able]] = False
        self.rho[who[able]] -= price[able]
        return who[able]

    def _draw(self, who: np.ndarray, rho: Floats) -> Floats:
        """Gaussian noise worth rho: standard deviation sensitivity/sqrt(2 rho)."""
        standard = np.array([self.gaussian[r].standard_normal(self.theta.shape[1]) for r in who])
        return (self.gradient_scale[who] / np.sqrt(rho))[:, None] * standard.reshape(len(who), -1)

    def measure(self) -> None:
        """A new noisy gradient for every run that took a step (Lee & Kifer 2018, Algorithm 1)."""
        who = np.flatnonzero(self.alive & self.fresh)
        who = self._pay(who, self.price[who])
        if len(who) == 0:
            return
        rule = None if self.clips is None else self.clips.rule(replicas=who)
        self.exact[who] = self.rows.gradient(self.theta[who], self.clip, rule)
        self.measured[who] += 1
        self.noisy[who] = self.exact[who] + self._draw(who, self.price[who])
        self.fresh[who] = False

    def choose(self, tick: Monitor = ignore) -> None:
        """One private choice of a step size per run; 0 means that the direction is no good."""
        who = np.flatnonzero(self.alive)
        who = self._pay(who, self.choice_price[who])
        if len(who) == 0:
            return
        problem, knobs, theta = self.problem, self.knobs, self.theta[who]
        direction = self.noisy[who] / problem.n + problem.lam * theta  # the regulariser is public: added after the noise
        norm = np.linalg.norm(direction, axis=1)
        direction /= np.maximum(norm, 1e-300)[:, None]
        step_sizes = self.longest[who, None] * np.linspace(0, 1, knobs.candidates + 1)
        scores = np.empty(step_sizes.shape)
        few = max(1, _WORK // (problem.n * step_sizes.shape[1]))
        for i in range(0, len(who), few):
            tick(float(1 - (self.rho / self.total).max()))
            part = slice(i, i + few)
            scores[part] = self.rows.line_losses(
                theta[part], direction[part], self.longest[who[part]], step_sizes.shape[1], knobs.clip_loss
            )
        along, square = np.einsum("ij,ij->i", theta, direction), np.einsum("ij,ij->i", theta, theta)
        scores += 0.5 * problem.n * problem.lam * (square[:, None] - 2 * step_sizes * along[:, None] + step_sizes**2)
        gumbel = np.array([self.gumbel[r].gumbel(size=step_sizes.shape[1]) for r in who])
        index = np.argmin(scores - self.gumbel_scale[who, None] * gumbel, axis=1)
        step = step_sizes[np.arange(len(who)), index]
        moved = index > 0
        self.theta[who] -= step[:, None] * direction
        self._after_steps(who[moved], step[moved])
        # noise of standard deviation sigma in m coordinates has squared norm m sigma^2, known beforehand; where it is less
        # than half of the direction's, the steps are too long and a better gradient would not help [ours]
        noise = math.sqrt(self.theta.shape[1]) * self.gradient_scale[who] / np.sqrt(self.price[who]) / problem.n
        too_long = ~moved & (norm**2 >= 2 * noise**2) & (knobs.shrink < 1)
        self.longest[who[too_long]] *= knobs.shrink
        self.measure_better(who[~moved & ~too_long])

    def _after_steps(self, who: np.ndarray, step: Floats) -> None:
        self.fresh[who] = True
        self.updates[who] += 1
        self.chosen[who] = np.maximum(self.chosen[who], step)
        # every 10 steps the grid is fitted to the step sizes that were chosen (Lee & Kifer 2018, from the authors' code)
        due = who[self.updates[who] % 10 == 0]
        self.longest[due] = np.minimum(1.1 * self.chosen[due], self.knobs.longest)
        self.chosen[due] = 0.0

    def measure_better(self, who: np.ndarray) -> None:
        """Adds a draw worth gamma rho_ng and averages by precision, which is worth (1 + gamma) rho_ng (GradAvg)."""
        who = self._pay(who, self.knobs.gamma * self.price[who])
        if len(who) == 0:
            return
        share = 1 / (1 + self.knobs.gamma)
        again = self.exact[who] + self._draw(who, self.knobs.gamma * self.price[who])
        self.noisy[who] = share * self.noisy[who] + (1 - share) * again
        self.price[who] *= 1 + self.knobs.gamma
