"""Claims of four papers as data, each with a test that can come out false."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dpviz._version import engine_version
from dpviz.claims.base import PAPERS, Claim, Lab, Outcome, Picture, Verdict
from dpviz.claims.catalogue import CLAIMS
from dpviz.progress import Monitor, silent
from dpviz.validate import one_of, whole

__all__ = ["PAPERS", "Claim", "Finding", "Outcome", "Picture", "Verdict", "check", "claims", "concerning"]


@dataclass(frozen=True, eq=False)
class Finding:
    """A verdict together with what repeats it.

    Attributes:
        claim: what was tested.
        verdict: what was found.
        command: the shell command that repeats it.
        full: whether it was tested in full.
        seed: of all randomness.
        seconds: how long it took.
        engine: version of the code.
    """

    claim: Claim
    verdict: Verdict
    command: str
    full: bool
    seed: int
    seconds: float
    engine: str


def claims() -> dict[str, Claim]:
    """All claims by id, paper by paper."""
    return {claim.id: claim for claim in CLAIMS}


def concerning(mechanism: str) -> tuple[Claim, ...]:
    """The claims that speak about a mechanism."""
    return tuple(claim for claim in CLAIMS if mechanism in claim.mechanisms)


def command(claim: str, full: bool = False, seed: int = 0) -> str:
    """The shell command that repeats a test."""
    return f"dpviz claims {claim}" + (" --full" if full else "") + (f" --seed {seed}" if seed else "")


def check(claim: str, *, full: bool = False, seed: int = 0, monitor: Monitor = silent) -> Finding:
    """Tests a claim.

    Args:
        claim: its id.
        full: more data sets, budgets and draws; minutes instead of seconds.
        seed: of all randomness, 0 to 2^32 - 1.
        monitor: told of progress; raises to cancel.

    Raises:
        InvalidInput: no such claim, or a bad seed.
    """
    found = claims()[one_of("claim", claim, claims())]
    seed = whole("seed", seed, 0, 2**32 - 1)
    begun = time.perf_counter()
    verdict = found.test(Lab(full=full, seed=seed, monitor=monitor))
    return Finding(
        found, verdict, command(claim, full, seed), full, seed, time.perf_counter() - begun, engine_version()
    )  # fmt: skip
