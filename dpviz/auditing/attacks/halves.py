"""Models trained on random halves of a run's rows: shadow models, target models and what both say of single rows.

Every half is a training problem of its own for the mechanism's public `fit`, calibrated for its number of rows, which is
public; halves are trained side by side and kept in blocks. Model k of a role depends on the seed, its role and k alone, so
that more shadow models begin with those that are there.

Models of random halves as files in the person's own cache folder, checked when read, so that attacks are resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.common import threads
from dpviz.common.arrays import Floats
from dpviz.common.files import FileStore
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import InvalidInput
from dpviz.common.version import engine_version
from dpviz.datasets.catalogue import is_in_memory
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import mechanism_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Mechanism, Training, protection
from dpviz.models import Model, Rows, Setting
from dpviz.models.problem import Problem


class KeptModels(FileStore):
    """Blocks of parameters by key. Nothing of rows that are in memory only (uploads, tables from Python) goes to the disk."""

    room, suffix, what, then = "halves", ".models", "Models", "called again, they are trained anew"
    most = most_of_all = 1 << 28

    def get(self, key: str, dataset: str, shape: tuple[int, int]) -> Floats | None:
        """Parameters (models, m) that are kept under a key, or None; a damaged file counts as not there and is written anew.

        Args:
            dataset: what they were trained on.
        """
        content = None if is_in_memory(dataset) else self.read(key)
        if content is None or len(content) != 8 * shape[0] * shape[1]:
            return None
        models = np.frombuffer(content, "<f8").reshape(shape).astype(float)
        return models if np.isfinite(models).all() else None

    def put(self, key: str, dataset: str, models: Floats) -> None:
        """Keeps parameters."""
        if not is_in_memory(dataset):
            self.write(key, models.astype("<f8").tobytes())


BLOCK, JOINED = 16, 112  # models that are kept in one file: trained one by one, and together, where a kernel has this width
SHADOW, TARGET = "shadow", "target"
_ROLES = (SHADOW, TARGET)
_KEY = 6  # of the streams of random halves among those of a seed


@dataclass(frozen=True, eq=False)
class Halves:
    """Random halves of the training rows of a run, and how a model is trained on one.

    Attributes:
        spec: the run; its seed is that of halves and noise.
        problem: all training rows.
    """

    spec: RunSpec
    problem: Problem

    @classmethod
    def make(cls, spec: RunSpec) -> Halves:
        """The halves of a run's training rows.

        Raises:
            InvalidInput: the mechanism refuses half of the rows, or releases no model.
        """
        problem = setup_for(spec).problem
        made = cls(spec, problem)
        mechanism = spec.build()
        mechanism.require(made.setting)
        if mechanism.releases_label:
            cause = f"{mechanism.label} releases one label, which says nothing about single rows"
            raise InvalidInput("mechanism", cause, "Choose another mechanism or another model.")
        return made

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with the hyperparameters of the run, of which automatic ones follow from all its rows."""
        return mechanism_of(self.spec, self.size)

    @property
    def size(self) -> int:
        """Rows of a half."""
        return self.problem.n // 2

    def member(self, role: str, count: int, positions: NDArray[np.intp]) -> NDArray[np.bool_]:
        """(count, len(positions)) which of the rows at some positions each of the first models of a role is trained on."""
        return self.masks(role, range(count))[:, positions]

    def masks(self, role: str, models: Sequence[int]) -> NDArray[np.bool_]:
        """(k, n) which rows some models of a role are trained on: uniform among all halves."""
        n, draws = self.problem.n, (np.random.default_rng(self._stream(role, k, 0)) for k in models)
        halves = (draw.permutation(n)[: self.size] for draw in draws)
        return np.array([np.bincount(half, minlength=n) > 0 for half in halves])

    def half(self, role: str, k: int) -> Problem:
        """The training problem of model k of a role."""
        rows = self.problem.rows.take(np.flatnonzero(self.masks(role, [k])[0]))
        return Problem(rows, self.problem.model, self.problem.lam)

    @property
    def setting(self) -> Setting:
        """Public facts about a half."""
        return replace(self.problem.setting, n=self.size)

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of the run's budget for half of the rows."""
        return protection.calibrate(self.mechanism, self.setting, resolve(self.spec).budget)

    @property
    def joins(self) -> bool:
        """True where models are trained together."""
        return self.mechanism.joins_members and self.setting.linear

    def train(self, role: str, models: Sequence[int], monitor: Monitor = ignore) -> Floats:
        """(k, m) released parameters of models of a role; zeros where training diverged.

        All rows with weights 0 and 1, over the public number of rows of a half, have the gradients of the halves.
        """
        if len(models) > 1 and not self.joins:
            return np.concatenate([self.train(role, [k], inside) for k, inside in track(monitor, models)])
        if len(models) > 1:
            problem, members = replace(self.problem, public_n=self.size), self.masks(role, models).T
        else:
            problem, members = self.half(role, models[0]), None
        streams = [self._stream(role, k, 1) for k in models]
        given = Training(problem, [self.calibration], streams, record=False, monitor=monitor, members=members)
        return train(self.mechanism, given, keep_diverged=True).fit.theta[0]

    def _stream(self, role: str, k: int, purpose: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.spec.seed, spawn_key=(_KEY, _ROLES.index(role), k, purpose))

    def key(self, role: str, block: range) -> str:
        """SHA-256 of all that decides a block of models; the name of its file."""
        values = json.loads(resolve(self.spec).key())
        del values["seeds"]
        values |= {"halves": role, "block": [block.start, block.stop], "auditing": engine_version("auditing")}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def train_models(
    halves: Halves, wanted: Sequence[tuple[str, int]], store: KeptModels | None, monitor: Monitor = ignore
) -> Iterator[tuple[str, range, Floats]]:
    """(role, which models, (k, m) parameters) block by block, kept in a store as soon as they are there.

    Args:
        wanted: (role, how many models), in this order.
        monitor: receives the share of all models that are there; raises to cancel.
    """
    size = JOINED if halves.joins else BLOCK
    here, _ = halves.spec.dataset, halves.calibration
    blocks = [(role, range(k, min(k + size, count))) for role, count in wanted for k in range(0, count, size)]

    def work(b: int, tick: Monitor) -> Floats:
        role, block = blocks[b]
        shape, key = (len(block), halves.problem.m), halves.key(role, block)
        kept = store.get(key, here, shape) if store else None
        if kept is not None:
            return kept
        models = halves.train(role, block, tick)
        if store:
            store.put(key, here, models)
        return models

    def listen(shares: Sequence[float]) -> None:
        monitor(
            sum(share * len(block) for share, (_, block) in zip(shares, blocks, strict=True)) / sum(len(b) for _, b in blocks)
        )

    for (role, block), models in zip(
        blocks, threads.parallel_map(work, len(blocks), listen, workers=threads.processors()), strict=True
    ):
        yield role, block, models


def signals(model: Model, theta: Floats, rows: Rows) -> NDArray[np.float32]:
    """(k, n) y f(x), in single precision: ln(p / (1 - p)) of the probability of a row's label where the model has one."""
    scores = model.scores(theta, rows)
    return np.ascontiguousarray((rows.y[:, None] * scores).T, dtype=np.float32)
