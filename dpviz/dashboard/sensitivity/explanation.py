"""Explanations of a sensitivity, in sentences with numbers. Free of streamlit, so that every sentence can be tested."""

import numpy as np

from dpviz.common.digits import three
from dpviz.mechanisms import BoundsSensitivity, NoisySteps, protection
from dpviz.models import Setting
from dpviz.privacy.accounting.account import Method, noise_for
from dpviz.privacy.accounting.events import Event, Mixture
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.mixture import mixture_sigma
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.sensitivity.algorithm2 import Trace


def change(new: float, old: float) -> str:
    """ "−12 %", "+0.4 %"."""
    share = 100 * (new / old - 1)
    if abs(share) < 0.05:
        return "no change"
    return f"{'+' if share > 0 else '−'}{three(abs(share))}\u00a0%"


def final_terms(trace: Trace, setting: Setting) -> str:
    """The terms that raise and lower the bound, and its final value."""
    update = trace.event == "update"
    step, rho = float(trace.step[update][0]), float(trace.rho[update][0])
    jump = float(trace.value[update][trace.expands[update]].min())
    m = round(1 / float(trace.epoch[update][1] - trace.epoch[update][0])) if update.sum() > 1 else 1
    grows = f"stretches the distance by {three(rho)}" if rho > 1 else f"brings the two runs closer by the factor {rho:.5g}"
    return (
        f"Two runs on data that differ in one row start at the same point. Only the batch with that row drives "
        f"them apart: its first "
        f"step (size η = {three(step)}) adds 2ηG/ν, which is {three(jump)} at least. Every step of every other batch {grows}, "
        f"{'' if rho > 1 else 'because the regulariser makes the objective curved, '}and the next pass adds again ({m} "
        f"batch{'es' * (m != 1)} a pass). After {trace.epoch[-1]:.0f} pass{'es' * (round(trace.epoch[-1]) != 1)} "
        f"the worst position ends at {three(float(trace.value[-1].max()))}. "
        f"The batch size ν grows with n where batches are a share of the rows: then every jump, and so the end, falls as 1/n."
    )


def averaging(trace: Trace, without: float | None = None) -> str:
    """The effect of averaging.

    Args:
        without: worst value at the end of the same training without them.
    """
    at = np.flatnonzero(trace.event == "average")
    if not len(at):
        return (
            "No averaging here. An average over past iterates also averages past distances, and those were smaller: "
            "that is why averaging would lower the bound."
        )
    before, after = float(trace.value[at[-1] - 1].max()), float(trace.value[at[-1]].max())
    reason = (
        "Early values are smaller than the last one, so the mean is lower: the last averaging takes"
        if after < before
        else "In the last window that is no help: its early values are as large as the last one or larger, because long "
        "steps had just come back. The last averaging takes"
        if trace.restarts
        else "In the last window the early values are as large as the last one, so the mean is no lower. The last averaging takes"
    )
    text = (
        f"Averaging replaces the iterate by the mean of its recent path, so the distance becomes the mean of its recent values. "
        f"{reason} the bound from {three(before)} to {three(after)} ({change(after, before)})."
    )
    if without is not None:
        together = change(float(trace.value[-1].max()), without)
        text += f" Without any averaging it would end at {three(without)}: all of them together make {together}"
        text += (
            ", because every earlier averaging made the distance small from which the next window starts."
            if after >= before and trace.value[-1].max() < without
            else "."
        )
    if trace.restarts:
        text += " Restarts do the opposite: large steps come back, and each of them adds a large jump again."
    return text


def permutation(event: Event, budget: Budget, trace: Trace) -> str:
    """The saving by a secret permutation."""
    if not isinstance(event, Mixture):
        return "The order of the rows is fixed or there is one batch only: the worst position counts."
    worst, best = max(event.sensitivities), min(event.sensitivities)
    fixed = worst / gaussian_mu(budget)
    mixed = mixture_sigma(budget, np.array(event.sensitivities), np.array(event.weights))
    spread = 1 - best / worst
    gain = 1 - mixed / fixed
    verdict = "hardly helps here" if gain < 0.03 else "helps only a little here" if gain < 0.15 else "helps here"
    update = trace.event == "update"
    last = trace.epoch[update] > trace.epoch[-1] - 1 + 1e-9
    forgets = float(np.prod(trace.rho[update][last]))
    reason = (
        "A jump early in a pass is in more of the iterates that are averaged than a late one, which is what tells positions apart"
        if "average" in trace.event
        else f"Whether a jump comes first or last in a pass only decides whether the rest of that pass contracts it, and the "
        f"last pass multiplies by no less than {forgets:.3g} in all"
    )
    return (
        f"A secret permutation puts the replaced row into a random batch, so the bound is a random one of the positions' values. "
        f"{reason}: the luckiest position stands {three(100 * spread)} % below the worst. So the permutation {verdict}: "
        f"σ falls from {three(fixed)} to {three(mixed)} ({change(mixed, fixed)})."
    )


def iteration(event: Event, steps: NoisySteps, budget: Budget) -> str:
    """Noise at the end beside noise in every step."""
    method = Method("hockey-stick", Neighbouring.REPLACE_ONE)
    end, last, every = (noise_for(one, method, budget) for one in (event, steps.last, steps.every))
    return (
        f"Only the last iterate would be released, and the noise of all later steps would hide a row as well. This is privacy "
        f"amplification by iteration (proved: Feldman, Mironov, Talwar, Thakurta 2018, Theorem 22). At this budget the noise in "
        f"the last iterate would have standard deviation {three(last * steps.spread)} in the direction that contracts least; "
        f"{three(every * steps.spread)} if all iterates were published. With all noise at the end it is {three(end)}. "
        f"Noise at the end always needs least there: noise in steps before a row's batch does not hide that row."
    )


def regularisation(mechanism: BoundsSensitivity, setting: Setting, stronger: Setting) -> str:
    """The effect of ten times the regularisation."""
    now, then = (max(b.value for b in protection.sensitivity_bounds(mechanism, s)[:1]) for s in (setting, stronger))
    return (
        f"λ brings two runs closer at every step. Ten times as much of it (λ = {three(stronger.lam)}) takes the bound from "
        f"{three(now)} to {three(then)} ({change(then, now)}). Where training is short, λ has had little time to "
        f"act and buys little; "
        f"for the minimiser itself the bound is 2G/(nλ), and ten times λ means a tenth. The price is a model closer to 0."
    )
