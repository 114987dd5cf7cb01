"""A card for each claim: what it says, where it stands, what its test found, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.common.fingerprint import engine_version
from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import charts, tables, words
from dpviz.dashboard.shell import fields
from dpviz.dashboard.shell.fields import Field, Group
from dpviz.dashboard.work import tasks, watching
from dpviz.dashboard.work.job import State
from dpviz.experiments.spec import RunSpec
from dpviz.figures import claims as pictures
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.papers.claims import PAPERS, Claim, Finding, Outcome, check, concerning, list_claims

MECHANISM = "mechanism"


def of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """What the page keeps in the address: which claims, and whether they are tested in full."""
    papers = {name: paper.short for name, paper in PAPERS.items()}
    about = {"": "All four papers", MECHANISM: f"Those about {list_mechanisms()[spec.mechanism].label}"} | papers
    thorough = {"": "Seconds each, a minute for networks", "yes": "In full: minutes each"}
    return (
        fields.choice("about", "Claims", about, "", few=0),
        fields.choice("thorough", "How thoroughly", thorough, "", few=0),
    )


def choose(spec: RunSpec, own: Group) -> tuple[list[Claim], bool]:
    """Which claims are shown, and whether they are tested in full."""
    left, right = st.columns([3, 2])
    with left:
        about = own["about"].draw()
    with right:
        full = bool(own["thorough"].draw())
    if about == MECHANISM:
        return list(concerning(spec.mechanism)), full
    return [c for c in list_claims().values() if not about or c.paper == about], full


def key_of(claim: Claim, full: bool, seed: int) -> str:
    """Equal keys give equal findings."""
    return f"claim {claim.id} {full} {seed} {engine_version()}"


def submit(shown: Sequence[Claim], full: bool, seed: int) -> None:
    """Tests claims in the background, one after the other."""
    for claim in shown:

        def work(monitor: Monitor, name: str = claim.id) -> Iterator[Finding]:
            yield check(name, full=full, seed=seed, monitor=monitor)

        watching.start(tasks.Task(key_of(claim, full, seed), work, series="claims"))


def cancel(at_work: Sequence[tasks.Task[Finding]]) -> None:
    """This session wants no more of what waits or runs."""
    for task in at_work:
        watching.cancel(task)


def overview(shown: Sequence[Claim], full: bool, seed: int) -> None:
    """How many hold, in one sentence, and buttons for all of them."""
    found = [tasks.find(key_of(c, full, seed)) for c in shown]
    done = [t.results[-1].verdict.outcome for t in found if t is not None and t.state is State.DONE]
    counts = ", ".join(f"{done.count(o)} {words.markdown(str(o))}" for o in Outcome if done.count(o))
    with st.container(key="headline"):
        st.markdown(
            f"{len(shown)} claims; tested now: {len(done)}"
            + (f": {counts}." if done else ". A verdict is computed when a claim is tested.")
        )
    left, right = st.columns([1, 3])
    left.button("Test all shown", on_click=submit, args=(shown, full, seed), width="stretch")
    at_work = [t for t in found if t is not None and not watching.over(t)]
    if at_work:
        right.button(f"Cancel the {len(at_work)} that wait or run", on_click=cancel, args=(at_work,))


def card(claim: Claim, full: bool, seed: int, theme: Theme, opened: bool) -> None:
    """One claim."""
    task = tasks.find(key_of(claim, full, seed))

    def draw() -> None:
        if tasks.find(key_of(claim, full, seed)) is not task:
            st.rerun()  # started by the button below, which reruns this part alone
        with st.container(border=True):
            st.header(words.markdown(claim.meaning), anchor=False)
            st.caption(words.markdown(f"{PAPERS[claim.paper].citation}, {claim.place}. {claim.matters}"))
            if task is not None and task.state is not State.DONE:
                tasks.controls(task, claim.id)
            if task is None or watching.state(task) in (State.CANCELLED, State.FAILED):
                left, right = st.columns([1, 3], vertical_alignment="center")
                left.button("Test it now", key=f"test-{claim.id}", on_click=submit, args=([claim], full, seed), width="stretch")
                right.markdown("Not tested yet.")
            elif task.state is State.DONE:
                _finding(task.results[-1], theme, opened)

    watching.live(task, draw)


def _finding(found: Finding, theme: Theme, opened: bool) -> None:
    verdict, name = found.verdict, found.claim.id
    sign, colour = words.VERDICTS[verdict.outcome]
    st.badge(f"{sign} {verdict.outcome}", color=colour)  # type: ignore[arg-type]
    condition = f"**Holds only if** {words.markdown(verdict.condition)}. " if verdict.condition else ""
    st.markdown(condition + words.markdown(words.labelled(verdict.because)))
    if not st.toggle("Numbers and picture", value=opened, key=f"show-{name}"):
        return
    if verdict.numbers:
        tables.table(verdict.numbers, ("", "Now"))
    looks = {m: charts.method_look(m, theme) for m in found.claim.mechanisms if m in list_mechanisms()}
    looks |= {m: charts.method_look(m, theme) for m in ("non-private", "majority")}
    for k, (panel, part) in enumerate(verdict.table.groupby("panel", sort=False) if len(verdict.table) else ()):
        series = ", ".join(dict.fromkeys(part["series"]))
        limit = "" if verdict.picture.limit is None else f"; dotted line: {verdict.picture.limit_label}"
        of = "" if series == verdict.picture.y or series == verdict.picture.y.removesuffix(", %") else f" of {series}"
        bands = " Bands are one standard deviation." if (part["high"] - part["low"]).gt(0).any() else ""
        summary = f"{panel}: {verdict.picture.y}{of}{limit}.{bands}"
        looks_here = looks | {m: charts.method_look(m, theme) for m in set(part["mechanism"]) if m in list_mechanisms()}
        charts.chart(
            pictures.panel(part, theme, looks_here, picture=verdict.picture), f"{name}-{k}", summary, partial(pd.DataFrame, part)
        )
    st.caption(words.markdown(f"Rule: {verdict.rule}"))
    st.caption(words.markdown(f"{verdict.seeds} {found.seconds:.1f} s, engine {found.engine}."))
    st.code(found.command, language="bash")
