"""What the local methods share: everyone sends one noisy report, and all that follows is post-processing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms.base import Floats, Mechanism, knob
from dpviz.models import Model, Rows, Setting
from dpviz.problem import Problem
from dpviz.validate import InvalidInput

SHUFFLED = "a trusted shuffler hides which report is whose, and nobody sees the reports before that"
_BLOCK = 8192


@dataclass(frozen=True)
class LocalMechanism(Mechanism):
    """Knobs of the local methods; not a mechanism itself."""

    release: str = knob(
        "record", "Report", "What a person reports: the signed record y·x, or the gradient at the current model (one-pass SGD).",
        options=("record", "gradient"),
    )  # fmt: skip
    training: str = knob(
        "surrogate", "Training", "On reported records: the quadratic surrogate without the noise's bias, or the plain objective.",
        options=("surrogate", "plain"),
    )  # fmt: skip
    batches: int = knob(20, "Batches", "Steps of the single pass (gradient reports only).", low=1, high=1000, log=True)
    step_size: float = knob(
        1.0, "Step size", "Length of a step (gradient reports only).", low=0.01, high=10.0, log=True, unit="1/L"
    )
    epsilon_is: str = knob(
        "local", "ε is", "Whether ε bounds what one report tells, or what all reports tell once they are shuffled.",
        options=("local", "central by shuffling"),
    )  # fmt: skip

    @property
    def central(self) -> bool:
        """Whether the budget is that of the shuffled reports."""
        return self.epsilon_is != "local"

    def query_in_words(self, setting: Setting) -> tuple[str, str, float]:
        """(query, where its sensitivity comes from, sensitivity) of one person's report before noise."""
        if self.release == "record":
            return "one person's signed record y·x", "|y x| <= 1, so any two records are at most 2 apart", 2.0
        return (
            "one person's gradient at the current model",
            "gradients are at most G long, so any two are at most 2G apart",
            2.0 * setting.G,
        )

    def check_size(self, setting: Setting) -> None:
        """Refuses more batches than rows."""
        if self.release == "gradient" and self.batches > setting.n:
            raise InvalidInput("batches", f"{self.batches} batches for {setting.n} rows", f"Choose at most {setting.n}.")

    def rows_in_words(self) -> str:
        if self.release == "record":
            return (
                "Released is one report of the signed record y·x, label included. Shown is that report with this row's own label "
                "multiplied in again, which only who knows the label can do; without it nobody sees which side a row is on."
            )
        return (
            "Released is one noisy gradient per person, taken at the model of the step in which the person reports. It is no "
            "row and has no units of the data; the person's own values never leave them. The table has the length of the noise."
        )

    def query(self, problem: Problem, theta: Floats, streams: object) -> Floats:
        if self.release == "record":
            return np.broadcast_to(problem.rows.signed.ravel(), (len(theta), problem.rows.signed.size))
        # linear models: a row's gradient points along -y x
        lengths = problem.model.gradient_norms(theta, problem.rows).T[:, :, None]
        directions = problem.rows.signed / np.maximum(problem.rows.norms, 1e-300)[:, None]
        return (-lengths * directions).reshape(len(theta), -1)


def slope_at_zero(model: Model, m: int) -> float:
    """|phi'(0)| of a linear model's loss, asked of the model through a row of length 1 at theta = 0."""
    probe = Rows(np.eye(1, m), np.ones(1))
    return float(np.linalg.norm(model.sum_gradient(np.zeros((1, m)), probe)))


def row_blocks(n: int) -> Iterator[slice]:
    """Rows in pieces that stay in the cache."""
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))
