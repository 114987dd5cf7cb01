"""Membership attacks on ordinary rows: how many members are found at few false alarms, which, and what predicts it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.auditing.attacks.attacked import AttackedRun
from dpviz.auditing.attacks.base import get_attack, list_attacks
from dpviz.auditing.attacks.exposure import FACTS, associations, describe_row, exposure
from dpviz.auditing.attacks.halves import KeptModels
from dpviz.auditing.attacks.judging import RATES, Judged
from dpviz.auditing.attacks.study import attack_over_epsilon, watch_attacks
from dpviz.common.limits import most_in_demo
from dpviz.common.progress import Monitor
from dpviz.dashboard.audit.attack import attacks_persons
from dpviz.dashboard.components import charts, folds, panels, repeat, tables
from dpviz.dashboard.frame import fields
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import Job
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures import membership as pictures
from dpviz.figures.style import Look, Theme
from dpviz.reporting import words

ONE_ROW = "One row, the others known"
COUNTS = ("64", "256", "1024", "4096")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_HEADS = ("Attack", "Found at 1 %", "at 0.1 %", "Allowed", "Without privacy", "AUC", "Advantage")


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The fields in the address: whether ordinary rows are attacked, and how many shadow models the attacker trains."""
    one = "One person, all others known" if attacks_persons(spec) else ONE_ROW
    more = "Models that the attacker trains on random halves of the rows, to learn what members look like."
    return (
        fields.choice("attacked", "Attack on", {"": one, "ordinary": "Ordinary rows"}, ""),
        fields.choice(
            "shadows", "Shadow models", {n: f"{int(n):,}" for n in COUNTS if int(n) <= most_in_demo("shadows")}, "256", more
        ),
    )


def page(spec: RunSpec, own: fields.Group, theme: Theme, answer: Any) -> None:
    """The whole view: the control, the answer in `answer`, the picture, and what explains it below."""
    shadows = int(own["shadows"].draw())
    task = attack(spec, shadows)
    with answer:
        watching.draw_live(task, lambda: _headline(task, spec, shadows), every=1.0)
    tasks.follow(task, lambda found: _picture(found, spec, theme), "Training and attacking", every=1.0)
    tasks.follow(task, lambda found: _below(found, spec, theme, shadows) if task.over else None)


def _headline(task: Job[Any], spec: RunSpec, shadows: int) -> None:
    run = words.title(spec)
    if task.results:
        panels.headline(task.results[-1].sentence(run=run), of=spec)
    else:
        panels.headline(f"{run}: the attacker trains {shadows:,} models on random halves of the rows.", of=spec)


def _picture(found: AttackedRun, spec: RunSpec, theme: Theme) -> None:
    best, other = found.best(), found.non_private
    curves = {name: pictures.Roc(get_attack(name).label, judged.curve) for name, judged in found.judged.items()}
    rates = np.geomspace(curves[best].points["false_alarms"].min(), 1.0, 80)
    bound = found.allowed_detections(rates)
    without = None if other is None else pictures.Roc(get_attack(other.best()).label, other.judged[other.best()].curve)
    fig = pictures.roc(
        curves[best],
        [curve for name, curve in curves.items() if name != best],
        theme,
        allowed=None if bound is None else (rates, bound),
        without=without,
    )
    at = found.judged[best].detections_at(RATES[0])
    summary = (
        f"{get_attack(best).label} finds {_share(at.value)} of the members (95 % limits {_share(at.low)} to {_share(at.high)}) "
        f"at 1 % false alarms; a coin toss finds 1 %. {found.targets:,} models attacked, {len(found.row_ids):,} rows each: "
        f"{found.verdict}."
    )
    charts.chart(fig, "membership", summary, lambda: _curves(found), of=spec)


def _below(found: AttackedRun, spec: RunSpec, theme: Theme, shadows: int) -> None:
    with folds.fold("All attacks in numbers", "attacks"):
        tables.table(_numbers(found), _HEADS)
        panels.note(
            "Advantage: detections minus false alarms at a threshold that was chosen on other models. What these attacks find is "
            "no bound: better attacks may come."
        )
    with folds.fold("Most exposed rows", "exposed"):
        panels.privacy_warning("Real rows, and numbers computed from them without noise. No ε covers them.")
        table(found)
    with st.expander("Does influence predict who is found?"):
        predicts(found, spec, theme)
    with st.expander("Over ε"):
        _over(found, spec, theme, shadows)
    with folds.fold("How is this computed?", "computed"):
        _how(found, shadows)


def _numbers(found: AttackedRun) -> list[tuple[str, ...]]:
    shown = []
    for _, rows in found.table.groupby("attack", sort=False):
        first, second = (rows[rows["false_alarms"] == rate].iloc[0] for rate in RATES)
        cells = (first["detections"], second["detections"], first["allowed"], first["non_private"])
        shown.append((first["label"], *map(_share, cells), words.two(first["auc"]), _share(first["advantage"])))
    return shown


def _over(found: AttackedRun, spec: RunSpec, theme: Theme, shadows: int) -> None:
    epsilons = sorted({*EPSILONS, found.spec.epsilon})

    def work(monitor: Monitor) -> pd.DataFrame:
        parts = attack_over_epsilon(found.spec, epsilons, shadows, store=KeptModels.personal(), monitor=monitor)
        return pd.concat(list(parts), ignore_index=True)

    given, ask = (shadows, epsilons), "Attack at other ε"
    answer = tasks.current_result("attacks-over", "Attacks over ε", work, of=found.spec, given=given, ask=ask)
    if answer is None:
        return
    table = answer[answer["false_alarms"] == RATES[0]]
    best = table.loc[table.groupby("epsilon")["detections"].idxmax()].sort_values("epsilon")
    best = best.assign(non_private=table["non_private"].max())
    ends = [best.iloc[0], best.iloc[-1]]
    summary = "At 1 % false alarms the best attack finds " + " and ".join(
        f"{_share(end['detections'])} of the members at ε = {words.three(end['epsilon'])}" for end in ends
    )
    x = best["epsilon"]
    drawn = [
        lines.Line(
            "best attack, 95 % limits",
            x,
            best["detections"],
            Look("", theme.labels[0], "solid", "circle"),
            points=True,
            low=best["low"],
            high=best["high"],
        ),
        lines.Line("allowed by the guarantee", x, best["allowed"], Look("", theme.noise, "dash", "x")),
        lines.Line("best attack without privacy", x, best["non_private"], Look("", theme.ink, "solid", "x")),
        lines.Line("coin toss", x, best["false_alarms"], Look("", theme.majority, "dot", "x")),
    ]
    top = 1.3 * float(np.nanmax(best[["high", "non_private", "false_alarms"]].to_numpy(float)))
    here, span = ((found.spec.epsilon, "this run"),), (0.0, top)
    fig = lines.curves(drawn, theme, x="ε", y="members found", log_y=False, marks=here, y_range=span, percent=True)
    charts.chart(fig, "attacks-over", f"{summary}.", lambda: answer)


def _how(found: AttackedRun, shadows: int) -> None:
    if not folds.in_closed_fold():
        panels.text(
            f"{found.shadows:,} shadow models and {found.targets:,} target models are trained on independent random halves "
            f"({found.setting.n:,} rows), each calibrated for that many rows and with noise of its own. An attack knows the "
            "members of the shadow models; of a target it knows what the model says, and never its members. s is the logit "
            "of the probability of a row's label."
        )
        for name in found.judged:
            attack = list_attacks()[name]
            panels.text(f"{attack.label}: {attack.idea} {attack.citation}.")
            st.latex(attack.formula)
        panels.text(
            "The bound is the trade-off curve of what is proved: two halves of one size differ in a replaced row, and the "
            "curve is concave, so it bounds means over rows too. Limits count target models, whose rows share noise."
        )
    repeat.python_of(found.spec, f"found = dpviz.attack_run(spec, {shadows})\nfound.table")


def _curves(found: AttackedRun) -> pd.DataFrame:
    def curve_of(name: str, judged: Judged, private: bool) -> pd.DataFrame:
        curve = judged.curve.assign(attack=name, private=private)
        bound = found.allowed_detections(curve["false_alarms"].to_numpy()) if private else None
        return curve.assign(allowed=np.nan if bound is None else bound)

    parts = [curve_of(name, judged, True) for name, judged in found.judged.items()]
    if found.non_private is not None:
        parts += [curve_of(name, judged, False) for name, judged in found.non_private.judged.items()]
    return pd.concat(parts, ignore_index=True)


def _share(value: float) -> str:
    """ "1.31 %": two digits, where one would hide the difference."""
    return "none" if np.isnan(value) else f"{100 * value:.2f}\u00a0%"


_MOST = 12  # exposed rows in the table


def attack(spec: RunSpec, shadows: int) -> Job[Any]:
    """The attacks on a run's rows, as a job that this session watches."""
    fixed = replace(spec, seeds=1)
    key = f"ordinary rows {resolve(fixed).key()} {shadows}"
    return tasks.attack_job(
        key,
        lambda monitor: watch_attacks(fixed, shadows, store=KeptModels.personal(), monitor=monitor),
        "ordinary",
        fixed.dataset,
    )


def table(found: AttackedRun) -> None:
    """The most exposed rows with who they are, and all of them as a download."""
    rows = found.rows.head(_MOST)
    lines = [
        (
            str(row_id),
            words.two(row["separation"]),
            f"{int(row['attacks_that_find'])} of {len(found.judged)}",
            describe_row(found, int(row_id)),
        )
        for row_id, row in rows.iterrows()
    ]
    tables.table(lines, ("Row", "Apart", "Attacks that find it", "Who"), real=True)
    panels.note(
        "Apart: how many standard deviations a row's signal is larger under shadow models that were trained on it. An attack "
        "finds a row where it calls it a member more often in models trained on it than chance explains."
    )
    tables.download(lambda: found.rows.reset_index(), "exposed")


def predicts(found: AttackedRun, spec: RunSpec, theme: Theme) -> None:
    """The distance of the rows' signals against influence, leverage, individual epsilon or margin, on request."""
    answer = tasks.current_result(
        "exposure", "Influence", lambda monitor: exposure(found), of=found.spec, given=found.shadows, ask="Compare the rows"
    )
    if answer is None:
        return
    known = associations(answer)
    fact = st.selectbox("Compare with", list(known["fact"]), format_func=FACTS.__getitem__, key="own.exposure-fact")
    row = known[known["fact"] == fact].iloc[0]
    fig = pictures.risk(
        answer[fact].to_numpy(float),
        answer["separation"].to_numpy(float),
        theme,
        fact=FACTS[fact],
        found=(answer["attacks_that_find"] > 0).to_numpy(),
        names=[f"row {i}" for i in answer.index],
    )
    summary = (
        f"Rank correlation of {FACTS[fact]} with how far a row's signals lie apart: {words.two(row['correlation'])} (95 % limits "
        f"{words.two(row['low'])} to {words.two(row['high'])}, {int(row['rows']):,} rows)."
    )
    charts.chart(fig, "exposure", summary, lambda: answer.reset_index(), rows=True, of=spec)
