"""The ledger on a page: what several releases of one table cost together, of a file or of the page's own run."""

import hashlib
import math
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.common.limits import demo
from dpviz.common.progress import Monitor, part
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.frame import fields
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures.style import Theme
from dpviz.mechanisms import Calibration
from dpviz.privacy.budget import Budget, Status
from dpviz.releasing.grid import add_grid_slack
from dpviz.reporting import pictures, words
from dpviz.spending.ledger import Contents, Ledger, Total
from dpviz.spending.of_run import entry_of

RELEASES = fields.number("releases", "Releases of this run", 1, 50, 3, integer=True)
_MOST = 12  # bars of single entries


def draw(run: RunSpec, cal: Calibration, theme: Theme) -> None:
    """The parts of a total and its limit."""
    st.header("Several trainings together", anchor=False)
    above, file = st.container(), None
    if not demo():
        with st.popover("A ledger of yours"):
            file = st.file_uploader("A TOML file, made by dpviz ledger or dpviz.Ledger", key="own.ledger")
    with above:
        _draw_total(run, cal, theme, file)


def _draw_total(run: RunSpec, cal: Calibration, theme: Theme, file: Any) -> None:
    if cal.status is Status.NONE and file is None:
        st.info("This method promises nothing, so no total is finite.", icon="ℹ️")
        return
    built, setting = run.build(), setting_of(run)
    entry = entry_of(built, setting, add_grid_slack(built, cal, setting.m), "this run")
    if file is None:
        count = int(RELEASES.draw())
        title = f"{count} releases of this run" if count > 1 else "One release of this run"
        held, key = Contents(title, "row", cal.neighbouring, cal.budget, (entry,) * count), f"{count}"
    else:
        content = file.getvalue()
        try:
            held, key = Ledger.parse(content), hashlib.sha256(content).hexdigest()
        except InvalidInput as problem:
            panels.failure(f"{problem.field}: {problem.cause}", problem.fix)
            return
    counts = file is not None and cal.status is not Status.NONE and cal.neighbouring is held.relation

    def add_up(monitor: Monitor) -> tuple[Total, Total | None]:
        alone, both = part(monitor, 0.0, 0.5), part(monitor, 0.5, 0.5)
        return held.total(monitor=alone), held.total(entry, monitor=both) if counts else None

    found = tasks.current_result("ledger", "Adding up", add_up, of=run, given=key)
    if found is None:
        return
    total, after = found
    limit = None if file is None else held.limit
    message = sentence(held, total, limit)
    panels.text(message)
    if total.parts:
        charts.chart(_parts(held, total, limit, run, theme), "ledger", message, lambda: table(total))
    if after is not None:
        panels.text(f"With this run the total would be {_budget(after)}, {_verdict(after, held.limit)}.")
    if total.unproved:
        named = ", ".join(dict.fromkeys(one.call or one.when for one in total.unproved[:5]))
        panels.warning(f"Not proved, so the total is not proved either: {named}.")
    if limit is not None:
        tables.frame(table(total), width="stretch")
    st.caption(
        "It holds where all settings were fixed before the first outcome was seen (else: Rogers et al. 2016; Whitehouse et al. "
        "2023), for one table and one neighbouring relation."
    )
    if file is None and total.budget is not None:
        st.code(
            f"dpviz ledger people.toml --limit {math.ceil(100 * total.budget.epsilon) / 100:g} --delta {total.budget.delta:g}\n"
            "dpviz release ... --ledger people.toml",
            language="shell",
            wrap_lines=True,
        )


def sentence(held: Contents, total: Total, limit: Budget | None) -> str:
    """Total, limit and plain sum in one sentence."""
    within = "" if limit is None else f", {_verdict(total, limit)}"
    return (
        f"{held.table}: {_budget(total)} together{within}. Added up one by one they would be ε = {words.three(_sum(total))}, "
        f"δ = {words.three(len(total.parts) * held.limit.delta)}. ε is per {held.unit}."
    )


def _sum(total: Total) -> float:
    return sum(epsilon for _, epsilon in total.parts)


def _budget(total: Total) -> str:
    if not total.parts:
        return "nothing was released"
    return "no finite ε at this δ" if total.budget is None else f"{words.budget(total.budget)} ({words.LABELS[total.status][0]})"


def _verdict(total: Total, limit: Budget) -> str:
    within = not total.parts or (total.budget is not None and total.budget.epsilon <= limit.epsilon * (1 + 1e-9))
    return f"{'within' if within else 'above'} the limit ε = {words.three(limit.epsilon)}"


def _parts(held: Contents, total: Total, limit: Budget | None, run: RunSpec, theme: Theme) -> object:
    """Bars of the latest entries, of their total, and of the limit or of the plain sum."""
    items = [
        lines.Bar(f"{one.call or one.what}"[:28], epsilon, words.three(epsilon), solid=one.proved)
        for one, epsilon in (total.parts[-_MOST:] if limit is not None else total.parts[:1])
    ]
    reached = math.nan if total.budget is None else total.budget.epsilon
    items += [
        lines.Bar("all together", reached, words.three(reached), solid=not total.unproved, strong=True),
        lines.Bar("limit", limit.epsilon, words.three(limit.epsilon))
        if limit is not None
        else lines.Bar("added up", _sum(total), words.three(_sum(total))),
    ]
    return lines.bars(items, pictures.method_look(run.mechanism, theme), theme, x=f"ε at δ = {words.three(held.limit.delta)}")


def table(total: Total) -> pd.DataFrame:
    """One row an entry."""
    return total.table().rename(columns={"epsilon": "ε alone"})
