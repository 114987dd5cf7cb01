"""Claims of five papers as data, each with a test that can come out false."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpviz.common.progress import Monitor, ignore, part
from dpviz.common.validate import check_choice, check_integer
from dpviz.common.version import engine_version
from dpviz.papers.claims.catalogue import CLAIMS
from dpviz.papers.claims.context import Claim, Context
from dpviz.papers.sources import PAPERS
from dpviz.papers.verdict import Outcome, Picture, Verdict

SPLIT_SEEDS = 3  # sets of splits that a verdict on accuracy must be the same on


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


def list_claims() -> dict[str, Claim]:
    """All claims by id, paper by paper."""
    return {claim.id: claim for claim in CLAIMS}


def claims_of(mechanism: str) -> tuple[Claim, ...]:
    """The claims that speak about a mechanism."""
    return tuple(claim for claim in CLAIMS if mechanism in claim.mechanisms)


def command(claim: str, full: bool = False, seed: int = 0) -> str:
    """The shell command that repeats a test.

    >>> command("dbdp-private"), command("dbdp-private", full=True, seed=3)
    ('dpviz list claims --test dbdp-private', 'dpviz list claims --test dbdp-private --full --seed 3')
    """
    return f"dpviz list claims --test {claim}" + (" --full" if full else "") + (f" --seed {seed}" if seed else "")


def agree(found: Sequence[Verdict]) -> Verdict:
    """The first of several verdicts on sets of splits of their own, undecided where another one has another outcome."""
    first = replace(found[0], rule=f"{found[0].rule} Undecided unless {SPLIT_SEEDS} sets of splits say the same.")
    if found[-1].outcome is first.outcome:
        return first
    because = f"{first.because} On other splits another outcome ({found[-1].outcome}): {found[-1].because}"
    return replace(first, outcome=Outcome.UNDECIDED, condition="", because=because)


def check(claim: str, *, full: bool = False, seed: int = 0, monitor: Monitor = ignore) -> Finding:
    """Tests a claim.

    Args:
        claim: its id.
        full: more data sets, budgets and draws; minutes instead of seconds.
        seed: of all randomness, 0 to 2^32 - 1.
        monitor: receives progress; raises to cancel.

    Raises:
        InvalidInput: no such claim, or a bad seed.
    """
    chosen = list_claims()[check_choice("claim", claim, list_claims())]
    seed = check_integer("seed", seed, 0, 2**32 - 1)
    begun = time.perf_counter()
    found: list[Verdict] = []
    for k in range(SPLIT_SEEDS):
        context = Context(full, (seed + k) % 2**32, part(monitor, k / SPLIT_SEEDS, 1 / SPLIT_SEEDS))
        found.append(chosen.test(context))
        if not context.drawn or found[-1].outcome is not found[0].outcome or found[0].outcome is Outcome.UNDECIDED:
            break
    verdict = agree(found) if context.drawn else found[0]
    if context.trained_on:
        verdict = replace(verdict, numbers=(("Trained on", ", ".join(context.trained_on)), *verdict.numbers))
    return Finding(chosen, verdict, command(claim, full, seed), full, seed, time.perf_counter() - begun, engine_version())
