"""Membership attacks on the ordinary rows of a run, from training to judging."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.auditing.attacks.attacked import AttackedRun
from dpviz.auditing.attacks.base import Shadows, Targets, get_attack, list_attacks, separation
from dpviz.auditing.attacks.halves import SHADOW, TARGET, Halves, KeptModels, signals, train_models
from dpviz.auditing.attacks.judging import Judged
from dpviz.common.progress import Monitor, ignore, part, track
from dpviz.common.validate import InvalidInput, check_integer
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.models import Rows

LEAST_SHADOWS, MOST_SHADOWS = 64, 4096
LEAST_TARGETS, MOST_TARGETS = 16, 1024
MOST_ROWS = 2000  # rows in question, and rows of the population: bounds the memory
_TRAINING = 0.8  # share of the time that is training
#: shadow and target models of the comparison without privacy where each takes several long trainings
_FEW_LONG = (64, 32)


def watch_attacks(
    spec: RunSpec,
    shadows: int,
    targets: int | None = None,
    *,
    attacks: Sequence[str] | None = None,
    baseline: bool = True,
    store: KeptModels | None = None,
    monitor: Monitor = ignore,
) -> Iterator[AttackedRun]:
    """Attacks a run, and yields what was found; once more with the same attacks without privacy beside it.

    Shadow and target models are trained on independent random halves of the training rows, each with noise of its own.
    An attack is given the shadow models with their members, and of the target models what they say alone. The population is
    the test rows, which no model is trained on. At most `MOST_ROWS` rows of each are looked at, drawn without looking at them.

    Args:
        shadows: how many models the attacker trains, `LEAST_SHADOWS` to `MOST_SHADOWS`.
        targets: how many models are attacked, `LEAST_TARGETS` to `MOST_TARGETS`; a quarter of `shadows` by default, at least 64.
        attacks: ids; all by default.
        baseline: whether to attack the minimiser without privacy too.
        store: where trained models are kept and looked for.
        monitor: receives progress; raises to cancel.

    Raises:
        InvalidInput: a bad argument, or the mechanism refuses half of the rows or releases no model.
    """
    shadows = check_integer("shadows", shadows, LEAST_SHADOWS, MOST_SHADOWS)
    targets = check_integer("targets", max(64, shadows // 4) if targets is None else targets, LEAST_TARGETS, MOST_TARGETS)
    names = list(list_attacks() if attacks is None else attacks)
    for name in names:
        get_attack(name)
    if not names:
        raise InvalidInput("attacks", "none is named", f"Name some of: {', '.join(list_attacks())}.")
    spec = replace(resolve(spec).spec, seeds=1)
    compared = baseline and spec.mechanism != "non-private"
    found = _attacked(spec, shadows, targets, names, store, part(monitor, 0.0, 0.6 if compared else 1.0))
    yield found
    if compared:
        plain, few = replace(spec, mechanism="non-private", params={}), not found.setting.convex
        counts = (min(shadows, _FEW_LONG[0]), min(targets, _FEW_LONG[1])) if few else (shadows, targets)
        yield replace(found, non_private=_attacked(plain, *counts, names, store, part(monitor, 0.6, 0.4)))


def attack_run(
    spec: RunSpec,
    shadows: int = 256,
    targets: int | None = None,
    *,
    attacks: Sequence[str] | None = None,
    baseline: bool = True,
    store: KeptModels | None = None,
    monitor: Monitor = ignore,
) -> AttackedRun:
    """Membership attacks on ordinary rows: shadow models of random halves of the rows say who is in other models like them.

    Args:
        spec: the run.
        shadows: models that the attacker trains, 64 to 4,096.
        targets: models that are attacked, 16 to 1,024; a quarter of `shadows` by default, at least 64.
        attacks: ids (`dpviz.auditing.attacks.list_attacks`); all by default.
        baseline: whether to attack the model without privacy too.
        store: where trained models are kept and looked for.
        monitor: receives progress, a share in [0, 1]; raises to cancel.

    Returns:
        Detections of each attack at few false alarms, beside what the guarantee allows, and the most exposed rows.

    Raises:
        InvalidInput: a bad argument, or the mechanism refuses half of the rows or releases no model.

    >>> found = attack_run(RunSpec("iris", epsilon=1.0), shadows=64, targets=64, attacks=["lira-online"], baseline=False)
    >>> found.table["attack"].unique().tolist(), len(found.rows)
    (['lira-online'], 120)
    """
    *_, last = watch_attacks(spec, shadows, targets, attacks=attacks, baseline=baseline, store=store, monitor=monitor)
    return last


def attack_over_epsilon(
    spec: RunSpec,
    epsilons: Sequence[float],
    shadows: int = 256,
    targets: int | None = None,
    *,
    attacks: Sequence[str] | None = None,
    store: KeptModels | None = None,
    monitor: Monitor = ignore,
) -> Iterator[pd.DataFrame]:
    """`AttackedRun.table` at each epsilon, with a column epsilon in front; halves and standard noise draws are the same at all.

    The comparison without privacy is computed once. Arguments as of `watch_attacks`.
    """
    if not len(epsilons):
        raise InvalidInput("epsilons", "there is none", "Give at least one.")
    share, plain = 1 / (len(epsilons) + 1), None
    for k, epsilon in enumerate(epsilons):
        here = part(monitor, share * (k + (k > 0)), share * (2 if k == 0 else 1))
        asked = replace(spec, epsilon=epsilon)
        found = attack_run(asked, shadows, targets, attacks=attacks, baseline=k == 0, store=store, monitor=here)
        plain = found.non_private if k == 0 else plain
        table = replace(found, non_private=plain).table
        table.insert(0, "epsilon", float(epsilon))
        yield table


def _attacked(
    spec: RunSpec, shadows: int, targets: int, names: Sequence[str], store: KeptModels | None, monitor: Monitor
) -> AttackedRun:
    """Trains, attacks and judges one run."""
    setup, halves = setup_for(spec), Halves.make(spec)
    model, problem = setup.problem.model, setup.problem
    at, beside = (_some(len(rows), spec.seed, k) for k, rows in enumerate((problem.rows, setup.test)))
    rows, population = problem.rows.take(at), setup.test.take(beside)
    on_rows = {SHADOW: np.empty((shadows, len(rows)), np.float32), TARGET: np.empty((targets, len(rows)), np.float32)}
    on_others = {role: np.empty((len(of), len(population)), np.float32) for role, of in on_rows.items()}
    for role, block, theta in train_models(halves, [(SHADOW, shadows), (TARGET, targets)], store, part(monitor, 0.0, _TRAINING)):
        here = slice(block.start, block.stop)
        on_rows[role][here], on_others[role][here] = signals(model, theta, rows), signals(model, theta, population)
    known = Shadows(on_rows[SHADOW], halves.member(SHADOW, shadows, at), on_others[SHADOW])
    seen = Targets(on_rows[TARGET], on_others[TARGET], _described(rows), _described(population))
    truth, judged = halves.member(TARGET, targets, at), {}
    for attack, listen in track(part(monitor, _TRAINING, 1 - _TRAINING), map(get_attack, names)):
        listen(0.0)
        count = min(targets, attack.most_targets or targets)
        scores = attack.score(seen.first(count), known, listen)
        judged[attack.id] = Judged(np.asarray(scores, np.float32), truth[:count], spec.seed)
    monitor(1.0)
    of_halves = halves.mechanism, halves.setting, halves.calibration
    return AttackedRun(spec, *of_halves, shadows, targets, setup.split.train[at], judged, separation(known))


def _some(n: int, seed: int, which: int) -> np.ndarray:
    """Ascending positions of at most `MOST_ROWS` of n rows."""
    if n <= MOST_ROWS:
        return np.arange(n)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7, which)))
    return np.sort(rng.choice(n, MOST_ROWS, replace=False))


def _described(rows: Rows) -> np.ndarray:
    """(n, d + 1) features and label."""
    return np.column_stack([rows.X, rows.y])
