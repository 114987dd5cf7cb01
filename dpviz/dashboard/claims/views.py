"""The shown claims with their verdicts, saved with this version or tested again: as a sentence, a picture, tables, one claim."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.common.version import __version__, engine_version
from dpviz.dashboard.claims import KEYS
from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame import address, fields
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import Job, State
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import claims as pictures
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.papers import saved, sets
from dpviz.papers.claims import PAPERS, SPLIT_SEEDS, Claim, Finding, Outcome, check, claims_of, list_claims
from dpviz.papers.figures import catalogue
from dpviz.reporting import words
from dpviz.reporting.pictures import method_look

MECHANISM = "mechanism"


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
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
    of_paper = (claim for claim in list_claims().values() if not about or claim.paper == about)
    return [_shown(claim, full, spec.seed) for claim in (claims_of(spec.mechanism) if about == MECHANISM else of_paper)]


def _shown(claim: Claim, full: bool, seed: int) -> Shown:
    task: Job[Finding] | None = tasks.find(key_of(claim, full, seed))
    state = None if task is None else watching.state(task)
    if task is not None and state is State.DONE:
        return Shown(claim, task.results[-1], task, state)
    return Shown(claim, saved.load().findings.get(claim.id), task, state)


def open_field(all_shown: Sequence[Shown]) -> fields.Field[str]:
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


def test_again(all_shown: Sequence[Shown], own: fields.Group, seed: int) -> None:
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


_COUNTED = {
    Outcome.HOLDS: ("holds", "hold"),
    Outcome.ONLY_IF: ("holds only under a condition", "hold only under a condition"),
    Outcome.FAILS: ("fails", "fail"),
    Outcome.BETTER: ("is surpassed", "are surpassed"),
    Outcome.UNDECIDED: ("is undecided", "are undecided"),
}


def sentence(outcomes: Sequence[Outcome | None]) -> str:
    """The number of claims of each outcome; None is that of a claim that was not tested."""
    parts = [f"{n} {_COUNTED[o][n > 1]}" for o in Outcome if (n := outcomes.count(o))] or ["none was tested yet: test them below"]
    message = " and ".join([*filter(None, [", ".join(parts[:-1])]), parts[-1]])
    return f"Of {len(outcomes)} claims, {message}." if len(outcomes) > 1 else f"Of this one claim, {message}."


def headline(shown: Sequence[Shown]) -> None:
    """The number of claims that hold, and the date of the test."""
    panels.headline(sentence([None if s.finding is None else s.finding.verdict.outcome for s in shown]), of=None)
    panels.note(origin(shown))


def origin(shown: Sequence[Shown]) -> str:
    """The day on which the verdicts were computed, and the version that did it."""
    kept, again = saved.load(), sum(s.again for s in shown)
    text = ""
    if again < len(shown) and kept.day is not None:
        by = f"by version {kept.release}" + ("" if kept.release == __version__ else "; test them again below")
        named = [what for s in shown if s.finding is not None for name, what in s.finding.verdict.numbers if name == "Trained on"]
        count = len({one for names in named for one in names.split(", ")})
        draws = f"linear models on small ones with {sets.SMALL_SEEDS} noise draws on each split"
        on = f"on {count} data sets, up to {SPLIT_SEEDS} times {sets.SPLITS} splits of each, {draws}, " if count else ""
        text = f"Computed on {kept.day.day} {kept.day:%B %Y} {on}{by}."
    return f"{text} {again} tested again in this session.".strip() if again else text


def board(shown: Sequence[Shown], one: Shown, field: fields.Field[str], theme: Theme) -> None:
    """One tile for each claim; a click opens it."""
    rows = []
    for s in shown:
        sign, kind = words.VERDICTS[s.finding.verdict.outcome] if s.finding is not None else ("?", "gray")
        outcome = str(s.finding.verdict.outcome) if s.finding is not None else "not tested"
        rows.append((s.claim.id, words.label_ids(s.claim.meaning), PAPERS[s.claim.paper].name, sign, kind, outcome))
    tiles = pd.DataFrame(rows, columns=["claim", "meaning", "paper", "sign", "kind", "outcome"])
    signs = [f"{words.VERDICTS[o][0]} {o} ({n})" for o in Outcome if (n := int((tiles["outcome"] == o).sum()))]
    summary = f"One tile for each claim: {', '.join(signs)}. The framed one is open; a click opens another."
    fig = pictures.board(tiles, theme, one.claim.id)
    charts.chart(fig, "verdicts", summary, partial(table, shown), clicks=lambda ids: field.keep(ids[-1]))


def card(one: Shown, field: fields.Field[str], full: bool, seed: int) -> None:
    """The open claim: what it says, its verdict, why, and a button that tests it again."""
    field.draw()
    claim, finding = one.claim, one.finding
    if finding is not None:
        verdict = finding.verdict
        sign, colour = words.VERDICTS[verdict.outcome]
        st.badge(f"{sign} {verdict.outcome}", color=colour)  # type: ignore[arg-type]
    st.markdown(f"**{words.markdown(words.label_ids(claim.meaning))}**")
    if finding is not None:
        condition = f"**Holds only if** {words.markdown(verdict.condition)}. " if verdict.condition else ""
        st.markdown(condition + words.sentence(words.markdown(words.label_ids(verdict.because))))
    panels.note(f"{PAPERS[claim.paper].citation}, {claim.place}.")
    task = one.task

    def draw() -> None:
        if task is not None and task.state is not State.DONE:
            tasks.controls(task, "Testing")
        if task is None or watching.state(task) in (State.CANCELLED, State.FAILED):
            label = "Test it again" if finding is not None else "Test it now"
            st.button(label, key=f"test-{claim.id}", on_click=submit, args=([claim], full, seed))

    watching.draw_live(task, draw, working=one.at_work)


def details(one: Shown, theme: Theme) -> None:
    """The numbers and the picture behind the open claim's verdict."""
    if one.finding is None:
        return
    fold = st.expander("Numbers and picture of this test", key="claim-details", on_change="rerun")
    if fold.open:
        with fold:
            _finding(one.finding, theme)


def papers(shown: Sequence[Shown]) -> None:
    """A table of the verdicts."""
    with st.expander("All verdicts"):
        tables.table(map(_line, shown), ("Claim", "Verdict", "Paper"))


def figures(shown: Sequence[Shown]) -> None:
    """A table of the verdicts on whole figures, over all panels that were computed, of the papers that are shown."""
    papers_shown = {s.claim.paper for s in shown}
    known = {figure.id: figure for figure in catalogue.FIGURES if figure.paper in papers_shown}
    kept = [one for one in saved.load().figures if one.figure in known]
    fold = st.expander(f"Whole figures: {len(kept)} verdicts", key="whole-figures", on_change="rerun") if kept else None
    if fold is None or not fold.open:
        return
    with fold:
        st.caption("Each sentence is judged on all panels of its figure that were computed; the docs have the panels.")
        lines = [
            (
                f"{known[one.figure].source.name}, {known[one.figure].number}",
                one.text,
                f"{words.VERDICTS[one.verdict.outcome][0]} {one.verdict.headline}",
                ", ".join(dict.fromkeys(one.datasets)),
                words.label_ids(one.verdict.because),
            )
            for one in kept
        ]
        tables.table(lines, ("Figure", "The paper says that it shows", "Verdict", "On", "Numbers"))


def _line(s: Shown) -> tuple[str, str, str]:
    found = s.finding and f"{words.VERDICTS[s.finding.verdict.outcome][0]} {s.finding.verdict.headline}"
    return words.label_ids(s.claim.meaning), found or "? not tested", PAPERS[s.claim.paper].name


def table(shown: Sequence[Shown]) -> pd.DataFrame:
    """All verdicts as one table."""
    return pd.DataFrame([_row(s.claim, s.finding) for s in shown])


def _row(claim: Claim, finding: Finding | None) -> dict[str, str]:
    row = {"paper": PAPERS[claim.paper].citation, "place": claim.place, "id": claim.id, "claim": claim.meaning}
    if finding is None:
        return row | {"verdict": "not tested"}
    verdict = finding.verdict
    return row | {"verdict": verdict.headline, "why": verdict.because, "engine": finding.engine, "command": finding.command}


def _finding(finding: Finding, theme: Theme) -> None:
    verdict, name = finding.verdict, finding.claim.id
    if verdict.numbers:
        tables.table([(words.label_ids(what), value) for what, value in verdict.numbers], ("", "Found"))
    looks = {m: method_look(m, theme) for m in finding.claim.mechanisms if m in list_mechanisms()}
    looks |= {m: method_look(m, theme) for m in ("non-private", "majority")}
    for k, (panel, part) in enumerate(verdict.table.groupby("panel", sort=False) if len(verdict.table) else ()):
        series = ", ".join(dict.fromkeys(part["series"]))
        limit = "" if verdict.picture.limit is None else f"; dotted line: {verdict.picture.limit_label}"
        of = "" if series == verdict.picture.y or series == verdict.picture.y.removesuffix(", %") else f" of {series}"
        bands = " Bands are one standard deviation." if (part["high"] - part["low"]).gt(0).any() else ""
        summary = words.label_ids(f"{panel}: {verdict.picture.y}{of}{limit}.{bands}")
        looks_here = looks | {m: method_look(m, theme) for m in set(part["mechanism"]) if m in list_mechanisms()}
        charts.chart(
            pictures.panel(part, theme, looks_here, picture=verdict.picture), f"{name}-{k}", summary, partial(pd.DataFrame, part)
        )
    panels.note(f"{finding.claim.matters} Rule: {verdict.rule}")
    panels.note(f"{verdict.seeds} {finding.seconds:.1f} s, engine {finding.engine}.")
    repeat.shell(finding.command)
