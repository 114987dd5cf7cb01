"""The whole figure, as `dpviz.sweep` computes it, in units of one scikit-learn fit of the same matrix in its fastest way."""

import functools
import gc
import statistics
from collections import defaultdict
from dataclasses import asdict, replace

import numpy as np

from benchmarks.peers.environments import Peer
from benchmarks.peers.fastest import SOLVERS, fastest, ways
from benchmarks.peers.measure import Row, Times, three
from benchmarks.peers.races import LAM
from benchmarks.peers.rows import Track, those_that_fit
from dpviz.common.threads import processors
from dpviz.experiments.sweeps.cells import attempts, problems
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import list_mechanisms

SHARED = "the minimum that all are compared with"
FITS = 5  # of scikit-learn, before and after the figure


def _forget() -> None:
    """Empties what calibrations and accountants keep: what an earlier round left would be a present."""
    for kept in gc.get_objects():
        if type(kept) is functools._lru_cache_wrapper and kept.__module__.startswith(("dpviz.experiments", "dpviz.privacy")):
            kept.cache_clear()


def figure(dataset: str, budgets: int, seeds: int, *, papers: bool = False) -> SweepSpec:
    """All mechanisms that take logistic regression x budgets from 0.01 to 10 x seeds, by default with nothing set.

    Args:
        papers: whether regularisation and scaling are those of most papers.
    """
    epsilons = [float(e) for e in np.geomspace(0.01, 10.0, budgets)]
    settings = {"lam": LAM, "row_scaling": "unit"} if papers else {}
    return SweepSpec(dataset, mechanisms=those_that_fit(dataset), epsilons=epsilons, seeds=seeds, **settings)


def whole_figure(track: Track, peer: Peer, *, budgets: int, seeds: int, repeats: int, papers: bool = False) -> list[Row]:
    """All mechanisms that take logistic regression x budgets x seeds, nothing stored and nothing read from a store.

    A round is some fits of scikit-learn, the minimum and the figure, and the same fits again. What is loaded when it is first
    used counts in the first round only, as scikit-learn's first fit does not count at all.
    """
    spec = figure(track.dataset, budgets, seeds, papers=papers)
    chosen = list(spec.mechanisms)
    refused = [name for name in list_mechanisms() if name not in chosen]
    fits, rounds, totals = Times(), [], []
    way = fastest(peer, {"do": "fit", "lam": LAM}, ways(processors(), SOLVERS))
    missing: dict[str, set[float]] = defaultdict(set)

    def fit(count: int) -> list[np.ndarray]:
        taken = []
        for _ in range(count):
            answer = peer.ask("fit", lam=LAM, **way.request)
            fits.add(answer["wall"], answer["cpu"])
            taken.append(np.array([answer["wall"], answer["cpu"]]))
        return taken

    fit(1), fits.wall.clear(), fits.cpu.clear()
    _ = track.setup.non_private
    for _ in range(repeats):
        near = fit(FITS)
        _forget()
        shared, whole, cells = Times(), Times(), spec.cells()
        # computed once for all mechanisms and kept, but a part of the figure
        shared.take(lambda: replace(track.setup, problem=replace(track.setup.problem)).non_private)
        tables = whole.take(lambda cells=cells: list(attempts(cells)))
        near += fit(FITS)
        unit = np.median(near, axis=0)
        totals.append(np.array([shared.wall[0] + whole.wall[0], shared.cpu[0] + whole.cpu[0]]) / unit)
        part = defaultdict(float, {SHARED: shared.cpu[0] / unit[1]})
        for cell, table in zip(cells, tables, strict=True):
            # cells are computed side by side, so that each reports its processor time only
            part[cell.spec.mechanism] += table.attrs["seconds"] / unit[1]
            missing[cell.spec.mechanism] |= {epsilon for epsilon, _ in problems(table)}
        rounds.append(part)
    wall, cpu = np.median(totals, axis=0)
    mean = {name: float(np.median([part[name] for part in rounds])) for name in (SHARED, *chosen)}
    most = sorted(mean, key=lambda name: -mean[name])
    each = ", ".join(f"{name} {three(mean[name])}" for name in most)
    gone = {name: sorted(which) for name, which in missing.items() if which}
    notes = [
        f"{len(chosen)} mechanisms x {budgets} budgets from 0.01 to 10 x {seeds} seeds = {len(chosen) * budgets * seeds:,} "
        f"models with accuracies, objectives and closed forms; {repeats} round(s): "
        f"{', '.join(three(value) for value, _ in totals)} fits.",
        *way.notes,
        f"One fit of scikit-learn takes {statistics.median(fits.wall):.3f} s ({statistics.median(fits.cpu):.3f} s CPU).",
        f"Where the time goes, in fits by CPU time of each mechanism's own threads: {each}.",
    ]
    if refused:
        notes.append(f"Not for this model: {', '.join(refused)}.")
    notes += [f"{name} cannot be computed at ε = {', '.join(f'{e:g}' for e in which)}." for name, which in gone.items()]
    full = budgets == 10 and seeds == 10 and not papers
    return [
        Row(
            f"The whole figure, {'settings of papers' if papers else 'defaults'}, in fits of scikit-learn ({way.words})",
            f"{three(wall)} fits",
            f"{three(cpu)} fits",
            "at most 350 fits" if full else "",
            bool(wall <= 350) if full else None,
            tuple(notes),
            {"fits": {name: mean[name] for name in most}, "rounds": np.array(totals).tolist(), "fit": asdict(fits)},
        )
    ]
