"""What pages show, kept: numbers and a sum of the words, in sentences, tables, pictures, controls and files, in their order.

Where something else is meant, `DPVIZ_KEEP=1 pytest tests/pages/test_kept_pages.py` writes them anew, and the difference is read
before it is committed.
"""

import io
import itertools
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.runtime.state.session_state import SessionState
from streamlit.testing.v1 import local_script_runner
from support import mostly_long
from support_kept import LONG, Numbers, numbers, numbers_in, same, words
from support_pages import opened, settled

from dpviz.auditing.attacks.base import list_attacks
from dpviz.dashboard.components import charts, recorder
from dpviz.dashboard.components.lessons import LESSONS
from dpviz.dashboard.frame import links
from dpviz.dashboard.lessons import view
from dpviz.datasets.table.csv import read_csv
from dpviz.papers import saved
from dpviz.reporting import Chart

PARTS = 3  # of an element with many numbers; two sums of each are kept
_SEEN = (
    "label help placeholder options disabled default min max step format type icon weight gap_config vertical_alignment "
    "flex_container popover columns alt ignore_rerun unsafe_allow_javascript wrap_lines language expanded selection_mode config "
    "hide_anchor page query_string horizontal label_visibility accept_new_options max_upload_size_mb max_selections shortcut "
    "icon_position multiple_files column_order editing_mode divider max_chars tag form_id is_form_submitter"
).split()

A = "dataset=teaching&mechanism=output-gaussian&epsilon=2&seeds=2"  # the run that is kept to compare with

#: a page and its address, by the file of its numbers
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "story": ("", {"mechanism": "dp-gd", "epsilon": "0.7", "scene": "3"}),
    "one-model": ("One_model", {"mechanism": "output-gaussian", "epsilon": "0.2", "seeds": "3"}),
    "one-model-steps": (
        "One_model",
        {
            "dataset": "iris",
            "mechanism": "dp-gd",
            "training": "true",
            "dp-gd.clip_norm": "0.01",
            "epsilon": "4",
            "press": "start.trials",
        },
    ),
    "one-model-claimed": ("One_model", {"mechanism": "dbdp", "metric": "roc-auc", "pinned": "mechanism=dp-gd&seeds=2"}),
    "trade-off": (
        "Trade-off",
        {
            "methods": "dp-gd,output-gaussian",
            "points": "2",
            "epsilon": "0.5",
            "want": "70",
            "mechanism": "dp-gd",
            "tune": "step_size,lam",
            "dp-gd.steps": "5",
            "press": "tune-start",
        },
    ),
    "groups": ("Groups", {"mechanism": "dp-gd", "group": "kind", "of": "recall", "why": "true", "epsilon": "0.5"}),
    "person": ("Person", {"dataset": "census-300", "mechanism": "dbdp", "epsilon": "2"}),
    "person-rule": ("Person", {"mechanism": "pidp-sgd", "seeds": "1"}),
    "person-digits": ("Person", {"dataset": "digits", "mechanism": "dbdp", "seeds": "1"}),
    "person-clipped": ("Person", {"mechanism": "dp-gd", "dataset": "census-500", "epsilon": "0.5"}),
    "audit": ("Audit", {"mechanism": "output-gaussian", "runs": "200", "epsilon": "2"}),
    "accounting": ("Accounting", {"mechanism": "output-gaussian", "epsilon": "0.5"}),
    "sensitivity": ("Sensitivity", {"mechanism": "rsgd-ar", "epsilon": "0.5", "part": "training"}),
    "sensitivity-objective": ("Sensitivity", {"mechanism": "kst-objective", "epsilon": "2"}),
    "one-model-label": ("One_model", {"mechanism": "majority", "metric": "balanced-accuracy", "training": "true"}),
    "one-model-local": (
        "One_model",
        {"mechanism": "ldp-duchi", "dataset": "iris", "epsilon": "4", "class_weight": "2", "press": "start.trials"},
    ),
    "person-filter": ("Person", {"mechanism": "renyi-filter", "colour": "noise", "epsilon": "0.5"}),
    "audit-exceeded": ("Audit", {"mechanism": "dbdp-pi", "runs": "200", "pair": "worst-case"}),
    "excess-risk": ("Sensitivity", {"mechanism": "dp-gd", "dp-gd.steps": "20", "risk": "epsilon", "epsilon": "0.5"}),
    "excess-risk-bounds": (
        "Sensitivity",
        {"mechanism": "output-gaussian", "risk": "n", "sizes": "large", "press": "start.excess-n"},
    ),
    "rates": ("Sensitivity", {"mechanism": "dp-gd", "part": "rates"}),
    "lessons": ("Lessons", {}),
    "claims": ("Claims", {"about": "kang-pidp", "claim": "pidp-beats-dp-sgd", "seed": "3"}),
    "claims-all": ("Claims", {"mechanism": "dbdp"}),
    "lessons-sheet": ("Lessons", {"lesson": "sheet", "given": "sensitivity:10,attack:60"}),
    "data-own": ("Data", {"upload": "true"}),
    "data": ("Data", {"dataset": "census-500", "epsilon": "0.5"}),
    "data-ranges": ("Data", {"dataset": "census-300", "bounds": "true", "mechanism": "output-gaussian", "epsilon": "9"}),
    "accounting-pure": (
        "Accounting",
        {"mechanism": "cms-output", "releases": "3", "metric": "roc-auc", "pinned": A.replace("output-gaussian", "dbdp")},
    ),
    "accounting-beside": ("Accounting", {"mechanism": "dp-gd", "model": "mlp-4", "pinned": f"{A}&mechanism=dp-gd"}),
    "audit-beside": ("Audit", {"mechanism": "output-gaussian", "runs": "200", "canaries": "100", "pinned": A}),
    "audit-rows": (
        "Audit",
        {"mechanism": "output-gaussian", "attacked": "ordinary", "shadows": "64", "epsilon": "9", "press": "start.exposure"},
    ),
    "guarantees-beside": ("Guarantees", {"mechanism": "dp-gd", "pinned": A}),
    "guarantees-unproved": ("Guarantees", {"mechanism": "dbdp", "attacker": "accuracy=0.55", "pinned": A}),
    "guarantees-attacker": ("Guarantees", {"seed": "7", "attacker": "tpr=0.05@fpr=0.01"}),
    "sensitivity-passes": ("Sensitivity", {"mechanism": "rsgd", "rsgd.epochs": "20", "part": "training"}),
    "excess-risk-features": ("Sensitivity", {"mechanism": "dp-gd", "risk": "d", "lam": "0.05", "press": "start.excess-d"}),
    "groups-beside": (
        "Groups",
        {"dataset": "census-1000", "mechanism": "dp-gd", "group": "region", "pinned": A.replace("teaching", "census-1000")},
    ),
    "person-beside": ("Person", {"mechanism": "dp-gd", "dataset": "census-300", "pinned": A.replace("teaching", "census-300")}),
    "one-model-beside": ("One_model", {"mechanism": "dp-gd", "pinned": A, "metric": "roc-auc"}),
    "sensitivity-beside": ("Sensitivity", {"mechanism": "rsgd-ar", "pinned": A, "part": "rates", "table": "pidp"}),
    "sensitivity-lambda": (
        "Sensitivity",
        {"mechanism": "output-gaussian", "over": "lam", "press": "start.moves-lam", "pinned": A, "part": "training"},
    ),
    "story-beside": ("", {"mechanism": "dp-gd", "pinned": A, "bets": "true"}),
    "story-present": ("", {"present": "1", "scene": "2", "mechanism": "dp-gd", "epsilon": "0.7"}),
    "story-person": ("", {"mechanism": "output-gaussian", "epsilon": "300", "who": "typical", "trainings": "4", "scene": "4"}),
    "trade-off-tuned": (
        "Trade-off",
        {
            "methods": "dp-gd",
            "points": "2",
            "tune": "step_size,lam",
            "repeats": "2",
            "folds": "3",
            "press": "start.folds",
            "pinned": A,
            "metric": "log-loss",
        },
    ),
    "groups-age": (
        "Groups",
        {
            "dataset": "census-1000",
            "mechanism": "output-gaussian",
            "group": "age",
            "cuts": "30,50",
            "of": "mean_score",
            "pinned": "dataset=census-1000&mechanism=majority&seeds=2",
        },
    ),
}
NARROW = (*(name for name in CASES if name.endswith("-beside")), "excess-risk-features", "trade-off-tuned", "guarantees-unproved")
#: what sessions hold: a narrow window, a table that was read, a group of rows
STATES: dict[str, dict[str, Any]] = {
    **{name: {charts.NARROW: True} for name in NARROW},
    "data-own": {"dpviz.table": ("people.csv", read_csv((Path(__file__).parents[1] / "kept_table.csv").read_bytes()))},
    "person-rule": {"dpviz.group": np.arange(40, 80)},
    "story": {"dpviz.scene": "1"},  # from which the browser is scrolled
}


def shown(page: str, state: dict[str, Any], press: str = "", **query: str) -> list[Numbers]:
    """Kind, words and numbers of each element of a page and its sidebar, when its work has ended.

    Args:
        state: what its session holds.
        press: keys of buttons that are pressed one after the other.
    """
    found, drawn = list[Numbers](), opened(page, **query)
    for key, value in state.items():
        drawn.session_state[key] = value
    drawn = settled(drawn)
    for key in press.split():
        drawn = settled(drawn.button(key=key).click().run())
    for element in itertools.chain(drawn.main, drawn.sidebar):
        value = getattr(element, "value", "")
        text = value.to_csv() if isinstance(value, pd.DataFrame) else f"{value}{getattr(element.proto, 'spec', '')}"
        text += "".join(f" {getattr(element.proto, name, '')}" for name in _SEEN)
        values = numbers_in(text)
        key = getattr(element.proto, "id", "").split("-", 2)[-1]  # the styles of a page name it
        parts = np.array_split(values, min(len(values) // LONG + 1, PARTS))
        found.append([f"{element.type} {key}".strip(), words(text), *numbers(parts)])
    return found


def file_of(mime: str, data: Any) -> Numbers:
    """Type, words and numbers of a file that a button saves; of what is no table only the type."""
    if mime != "text/csv":
        return [mime]
    table = pd.read_csv(io.BytesIO(data())).drop(columns="when", errors="ignore")
    return [
        mime,
        words(table.to_csv()),
        *numbers(table.select_dtypes("number")),
        *numbers(np.array(numbers_in(table.select_dtypes(exclude="number").to_csv(index=False)))),
    ]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Parts of a page by their names: if they show real rows and name their run, words of pictures, saved files, sizes, and what
    controls call."""
    found, keep, button, observe = dict[str, Any](), recorder.keep, st.download_button, view.tasks.observe
    parse, register = local_script_runner.parse_tree_from_messages, SessionState.register_widget

    def keep_part(key: str, part: Any, *, rows: bool = False, of: Any = None) -> None:
        found[key] = [rows, of is not None]
        if isinstance(part, Chart):
            found[key] += [words(part.words), *numbers_in(part.words)]
        keep(key, part, rows=rows, of=of)

    def save(label: str, data: Any, file_name: str, mime: str = "application/zip", **more: Any) -> bool:
        found[f"file {file_name}"] = partial(file_of, mime, data)
        return bool(button(label, data, file_name, mime, **more))

    def observed(section: str, *given: Any, **more: Any) -> Any:
        # an equal run may name all its knobs or those that were set; of what else is given the numbers only, as it may hold the
        # engine's hash, and the address of a function, which comes last
        of = [(key, value.to_query() if key == "of" and value else value) for key, value in more.items() if key != "given"]
        given_numbers = numbers_in(re.sub(r"(?s)mappingproxy\(\{.*?\}\)| at 0x.*", "", f"{more.get('given')}"))
        found[f"work {section}"] = [words(f"{of}"), *given_numbers]
        return observe(section, *given, **more)

    def parsed(messages: list[Any]) -> Any:
        elements = [message.delta.new_element for message in messages if message.delta.HasField("new_element")]
        sizes = " ".join(sorted(f"{one.WhichOneof('type')} {one.width_config} {one.height_config}" for one in elements))
        found["sizes"] = [words(sizes), *numbers_in(sizes)]
        return parse(messages)

    def registered(state: Any, control: Any, key: str | None) -> Any:
        given = f"{[one if isinstance(one, str | int | float) else type(one).__name__ for one in control.callback_args or ()]}"
        found[f"call {key}"] = [getattr(control.callback, "__name__", ""), words(given), *numbers_in(given)]
        return register(state, control, key)

    monkeypatch.setattr(SessionState, "register_widget", registered)
    monkeypatch.setattr(local_script_runner, "parse_tree_from_messages", parsed)
    monkeypatch.setattr(saved, "load", partial(saved.load, Path(__file__).with_name("kept_verdicts.json")))
    monkeypatch.setattr(list_attacks()["quantile-regression"], "most_targets", 2)  # each takes a regression
    monkeypatch.setattr(view, "LESSONS", [LESSONS[k] for k in (5, 7, 9)])
    # AppTest, which opens a page as the main script, knows no other page
    monkeypatch.setattr(links, "pages", partial(links._pages, Path(__file__).parents[2] / "app.py"))
    monkeypatch.setattr(st, "page_link", lambda path, **more: st.caption(f"{path} {more}"))
    monkeypatch.setattr(recorder, "keep", keep_part)
    monkeypatch.setattr(view.tasks, "observe", observed)
    monkeypatch.setattr(st, "download_button", save)
    return found


SLOW = ("guarantees-attacker", "guarantees-beside", "sensitivity-beside")


@pytest.mark.parametrize("name", mostly_long(CASES, *(name for name in CASES if name not in SLOW)))
def test_numbers_are_those_that_were_kept(name: str, data_folder: Path, tables: dict[str, Any]) -> None:
    page, query = CASES[name]
    file, found = Path(__file__).parent / "kept" / f"{name}.json", shown(page, STATES.get(name, {}), **query)
    found += [[key, tables[key]() if callable(tables[key]) else tables[key]] for key in sorted(tables)]
    if os.environ.get("DPVIZ_KEEP"):
        file.write_text("[" + ",\n".join(map(json.dumps, found)) + "]\n", "utf-8")
    kept, found = json.loads(file.read_text("utf-8")), json.loads(json.dumps(found))
    other = [(one, two) for one, two in itertools.zip_longest(found, kept) if not same(one, two)]
    assert not other, f"found and kept: {other[:3]}"
