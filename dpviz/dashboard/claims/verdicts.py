"""The shown claims and the verdict on each: saved with this version, or tested again in this session."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.common.version import engine_version
from dpviz.dashboard.claims import KEYS
from dpviz.dashboard.frame import address, fields
from dpviz.dashboard.frame.fields import Field, Group
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import Job, State
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.papers import saved
from dpviz.papers.claims import PAPERS, Claim, Finding, Outcome, check, claims_of, list_claims
from dpviz.reporting import words

MECHANISM = "mechanism"


def fields_of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """The page's fields in the address: the chosen claims, the open one, and whether they are tested in full."""
    papers = {name: paper.name for name, paper in PAPERS.items()}
    about = {"": "All papers", MECHANISM: f"Those about {list_mechanisms()[spec.mechanism].label}"} | papers
    thorough = {"": "Seconds each", "yes": "In full: minutes each"}
    meanings = {"": "The first one"} | {claim.id: claim.meaning for claim in list_claims().values()}
    return (
        fields.choice("about", "Claims", about, "", few=0),
        fields.choice("claim", "Claim", meanings, "", few=0),
        fields.choice("thorough", "How thoroughly a new test looks", thorough, "", few=0),
    )


@dataclass(frozen=True)
class Shown:
    """A claim on the page.

    Attributes:
        claim: what is claimed.
        finding: the verdict, None where there is none yet.
        task: the test in this session, None where there is none.
        state: where that was when the page began; it may be over since, and the page is then drawn again.
    """

    claim: Claim
    finding: Finding | None
    task: Job[Finding] | None
    state: State | None

    @property
    def again(self) -> bool:
        """True where the verdict is from a test in this session and not a saved one."""
        return self.state is State.DONE

    @property
    def at_work(self) -> bool:
        """True where it is being tested, or waits for it."""
        return self.state is not None and not self.state.over


def shown_claims(spec: RunSpec, about: str, full: bool) -> list[Shown]:
    """The claims that were chosen, with their verdicts."""
    if about == MECHANISM:
        chosen = list(claims_of(spec.mechanism))
    else:
        chosen = [c for c in list_claims().values() if not about or c.paper == about]
    return [_shown(claim, full, spec.seed) for claim in chosen]


def _shown(claim: Claim, full: bool, seed: int) -> Shown:
    task: Job[Finding] | None = tasks.find(key_of(claim, full, seed))
    state = None if task is None else watching.state(task)
    if task is not None and state is State.DONE:
        return Shown(claim, task.results[-1], task, state)
    return Shown(claim, saved.load().findings.get(claim.id), task, state)


def open_field(all_shown: Sequence[Shown]) -> Field[str]:
    """The field of the open claim, among those that are shown; by default a refuted guarantee, else the first that fails."""
    count = Counter(s.claim.meaning for s in all_shown)
    meanings = {
        # a browser sends the text of an option, so that two papers' claims of one wording need different texts
        s.claim.id: words.label_ids(s.claim.meaning) + (f" · {PAPERS[s.claim.paper].name}" if count[s.claim.meaning] > 1 else "")
        for s in all_shown
    }
    field = fields.choice("claim", "Claim", meanings, max(all_shown, key=_weight).claim.id, few=0)
    if st.session_state.get(field.key) not in meanings:  # another choice of claims leaves it out
        field.keep(field.default)
        address.amend(KEYS)
    return field


def _weight(s: Shown) -> tuple[bool, bool]:
    """The weight of a claim in the order of the page: a guarantee that does not hold before all else."""
    failed = s.finding is not None and s.finding.verdict.outcome is Outcome.FAILS
    return failed and s.claim.privacy, failed


def key_of(claim: Claim, full: bool, seed: int) -> str:
    """Equal keys give equal findings."""
    return f"claim {claim.id} {full} {seed} {engine_version()}"


def submit(claims: Sequence[Claim], full: bool, seed: int) -> None:
    """Tests claims in the background, one after the other. A callback."""
    for claim in claims:

        def work(monitor: Monitor, name: str = claim.id) -> Iterator[Finding]:
            yield check(name, full=full, seed=seed, monitor=monitor)

        watching.start(Job(key_of(claim, full, seed), work))


def cancel(at_work: Sequence[Job[Finding]]) -> None:
    """This session wants no more of what waits or runs. A callback."""
    for task in at_work:
        watching.cancel(task)


def test_again(all_shown: Sequence[Shown], own: Group, seed: int) -> None:
    """A choice of thoroughness, a button that tests all claims on the page, and its progress."""
    with st.expander("Test the claims again"):
        full = bool(own["thorough"].draw())
        claims = [s.claim for s in all_shown]
        label = f"Test all {len(claims)} shown" if len(claims) > 1 else "Test it"
        st.button(label, on_click=submit, args=(claims, full, seed), key="test-all")
    working = [s.task for s in all_shown if s.task is not None and s.at_work]
    if working:
        started = [s for s in all_shown if s.task is not None]

        def draw() -> None:
            count = sum(watching.is_over(s.task) for s in started if s.task is not None)
            left, right = st.columns([4, 1], vertical_alignment="center")
            left.progress(count / len(started), f"{count} of {len(started)} claims tested")
            right.button("Cancel", on_click=cancel, args=(working,), key="cancel-tests", width="stretch")

        watching.draw_live(working[0], draw, working=True)
