"""What pages show, kept: numbers and how many words there are, in sentences, tables, pictures and controls, in their order.

Where something else is meant, `DPVIZ_KEEP=1 pytest tests/pages/test_kept_pages.py` writes them anew, and the difference is read
before it is committed.
"""

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import mostly_long
from support_kept import LONG, Numbers, numbers, numbers_in, same
from support_pages import opened, settled

from dpviz.dashboard.components import recorder
from dpviz.reporting import Chart

PARTS = 3  # of an element with many numbers; two sums of each are kept
_WORD = re.compile(r"[^\W\d_]{2,}")
_CONTROL = ("label", "help", "placeholder", "options", "disabled")
_LAYOUT = ("main", "column", "flex_container")

A = "dataset=teaching&mechanism=output-gaussian&epsilon=2&seeds=2"  # the run that is kept to compare with

#: a page and its address, by the file of its numbers
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "story": ("", {"mechanism": "dp-gd", "epsilon": "0.7"}),
    "one-model": ("One_model", {"mechanism": "output-gaussian", "epsilon": "0.5", "seeds": "3"}),
    "one-model-steps": (
        "One_model",
        {
            "dataset": "iris",
            "mechanism": "dp-gd",
            "training": "true",
            "dp-gd.clip_norm": "0.01",
            "epsilon": "4",
            "start": "trials",
        },
    ),
    "one-model-claimed": ("One_model", {"mechanism": "dbdp", "metric": "roc-auc", "pinned": "mechanism=dp-gd&seeds=2"}),
    "trade-off": ("Trade-off", {"methods": "dp-gd,output-gaussian", "points": "2", "epsilon": "0.5", "want": "70"}),
    "groups": ("Groups", {"mechanism": "dp-gd", "group": "kind", "of": "recall", "why": "true", "epsilon": "0.5"}),
    "person": ("Person", {"dataset": "census-300", "mechanism": "dbdp", "epsilon": "2"}),
    "person-rule": ("Person", {"mechanism": "pidp-sgd", "seeds": "1"}),
    "person-digits": ("Person", {"dataset": "digits", "mechanism": "dbdp", "seeds": "1"}),
    "person-clipped": ("Person", {"mechanism": "dp-gd", "dataset": "census-500", "epsilon": "0.5"}),
    "audit": ("Audit", {"mechanism": "output-gaussian", "runs": "200", "epsilon": "2"}),
    "accounting": ("Accounting", {"mechanism": "output-gaussian", "epsilon": "0.5"}),
    "sensitivity": ("Sensitivity", {"mechanism": "rsgd-ar", "epsilon": "0.5"}),
    "sensitivity-objective": ("Sensitivity", {"mechanism": "kst-objective", "epsilon": "2"}),
    "one-model-label": ("One_model", {"mechanism": "majority", "metric": "balanced-accuracy"}),
    "one-model-local": (
        "One_model",
        {"mechanism": "ldp-duchi", "dataset": "iris", "epsilon": "4", "class_weight": "2", "start": "trials"},
    ),
    "person-filter": ("Person", {"mechanism": "renyi-filter", "colour": "noise", "epsilon": "0.5"}),
    "audit-exceeded": ("Audit", {"mechanism": "dbdp-pi", "runs": "200", "pair": "worst-case"}),
    "excess-risk": ("Sensitivity", {"mechanism": "dp-gd", "dp-gd.steps": "20", "risk": "epsilon", "epsilon": "0.5"}),
    "excess-risk-bounds": ("Sensitivity", {"mechanism": "output-gaussian", "risk": "n", "sizes": "large", "start": "excess-n"}),
    "rates": ("Sensitivity", {"mechanism": "dp-gd", "part": "rates"}),
    "lessons": ("Lessons", {}),
    "data": ("Data", {"dataset": "census-500", "epsilon": "0.5"}),
    "data-ranges": ("Data", {"dataset": "census-300", "bounds": "true", "mechanism": "output-gaussian", "epsilon": "9"}),
    "accounting-pure": ("Accounting", {"mechanism": "cms-output", "releases": "3", "metric": "roc-auc"}),
    "accounting-beside": ("Accounting", {"mechanism": "dp-gd", "pinned": f"{A}&mechanism=dp-gd"}),
    "audit-beside": ("Audit", {"mechanism": "output-gaussian", "runs": "200", "canaries": "100", "pinned": A}),
    "audit-rows": (
        "Audit",
        {"mechanism": "output-gaussian", "attacked": "ordinary", "shadows": "64", "epsilon": "9", "start": "exposure"},
    ),
    "guarantees-beside": ("Guarantees", {"mechanism": "dp-gd", "pinned": A}),
    "guarantees-unproved": ("Guarantees", {"mechanism": "dbdp", "attacker": "accuracy=0.55"}),
    "guarantees-attacker": ("Guarantees", {"seed": "7", "attacker": "tpr=0.05@fpr=0.01"}),
    "sensitivity-passes": ("Sensitivity", {"mechanism": "rsgd", "rsgd.epochs": "20", "part": "training"}),
    "excess-risk-features": ("Sensitivity", {"mechanism": "dp-gd", "risk": "d", "lam": "0.05", "start": "excess-d"}),
    "groups-beside": ("Groups", {"mechanism": "dp-gd", "group": "kind", "pinned": A}),
    "person-beside": ("Person", {"mechanism": "dp-gd", "dataset": "census-300", "pinned": A.replace("teaching", "census-300")}),
    "one-model-beside": ("One_model", {"mechanism": "dp-gd", "pinned": A, "metric": "roc-auc"}),
    "sensitivity-beside": ("Sensitivity", {"mechanism": "rsgd-ar", "pinned": A, "part": "rates", "table": "pidp"}),
    "sensitivity-lambda": ("Sensitivity", {"mechanism": "output-gaussian", "over": "lam", "start": "moves-lam"}),
    "story-beside": ("", {"mechanism": "dp-gd", "pinned": A, "bets": "true"}),
    "story-person": ("", {"mechanism": "output-gaussian", "epsilon": "300", "who": "typical", "trainings": "4"}),
    "trade-off-tuned": (
        "Trade-off",
        {"methods": "dp-gd", "points": "2", "tune": "step_size,lam", "repeats": "2", "folds": "3", "start": "folds"},
    ),
    "groups-age": (
        "Groups",
        {"mechanism": "output-gaussian", "dataset": "census-300", "group": "age", "cuts": "30,50", "of": "f1"},
    ),
}


def shown(page: str, start: str = "", **query: str) -> list[Numbers]:
    """Kind, number of words and numbers of each element of a page and its sidebar, when its work has ended.

    Args:
        start: names of work that a button starts.
    """
    found, drawn = list[Numbers](), settled(opened(page, **query))
    for section in start.split():
        drawn = settled(drawn.button(key=f"start.{section}").click().run())
    for element in itertools.chain(drawn.main, drawn.sidebar):
        value = getattr(element, "value", "")
        text = value.to_csv() if isinstance(value, pd.DataFrame) else f"{value}{getattr(element.proto, 'spec', '')}"
        text += "".join(f" {getattr(element.proto, name, '')}" for name in _CONTROL)
        values = numbers_in(text)
        key = getattr(element.proto, "id", "").split("-", 2)[-1]  # the styles of a page name it
        if (key or element.type not in _LAYOUT) and not text.startswith("<script"):
            parts = np.array_split(values, min(len(values) // LONG + 1, PARTS))
            found.append([key or element.type, len(_WORD.findall(text)), *numbers(parts)])
    return found


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Numbers]:
    """Parts of a page by their names: whether they show real rows and name their run, and the words and tables of pictures."""
    found, keep = dict[str, Numbers](), recorder.keep

    def keep_part(key: str, part: Any, *, rows: bool = False, of: Any = None) -> None:
        found[key] = [rows, of is not None]
        if isinstance(part, Chart):
            table = pd.DataFrame(part.data).drop(columns="when", errors="ignore")
            found[key] += [*numbers_in(part.words), *numbers(table if len(table) <= LONG else table.select_dtypes("number"))]
        keep(key, part, rows=rows, of=of)

    monkeypatch.setattr(recorder, "keep", keep_part)
    return found


SLOW = ("audit-rows", "guarantees-attacker", "guarantees-beside", "sensitivity-beside")


@pytest.mark.parametrize("name", mostly_long(CASES, *(name for name in CASES if name not in SLOW)))
def test_numbers_are_those_that_were_kept(name: str, data_folder: Path, tables: dict[str, Numbers]) -> None:
    page, query = CASES[name]
    file, found = Path(__file__).parent / "kept" / f"{name}.json", [*shown(page, **query), *sorted(map(list, tables.items()))]
    if os.environ.get("DPVIZ_KEEP"):
        file.write_text("[" + ",\n".join(map(json.dumps, found)) + "]\n", "utf-8")
    kept, found = json.loads(file.read_text("utf-8")), json.loads(json.dumps(found))
    other = [(one, two) for one, two in itertools.zip_longest(found, kept) if not same(one, two)]
    assert not other, f"found and kept: {other[:3]}"
