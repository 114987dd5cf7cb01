"""An upload that goes takes along all that was made of it: every cache is filled, and no live object holds its rows."""

import ast
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import LIMIT, of_each

from dpviz.common import memory
from dpviz.dashboard.jobs import cached_runs
from dpviz.dashboard.jobs import pool as jobs
from dpviz.dashboard.jobs.sweep import SweepJob
from dpviz.dashboard.rows import influence_map, selection
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.csv import read_csv
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import decision_boundary, guarantees, inspected
from dpviz.experiments.studies.releases import releases
from dpviz.experiments.sweeps.sweep import SweepSpec

ROOT = Path(__file__).parents[2]
ROWS = 1013  # numbers of rows that nothing else has: all, training, test
LENGTHS = {ROWS, 810, 203}
#: caches that no upload can reach: it is never read from a folder, given in Python or published, and has a cache of its own
NEVER = {"tables of the data folder", "own rows", "published files"}


def upload() -> Upload:
    rng = np.random.default_rng(5)
    text = "age,wage,label\n" + "\n".join(
        f"{age},{wage:.3f},{'yes' if age + 20 * wage > 60 else 'no'}"
        for age, wage in zip(rng.integers(18, 90, ROWS), rng.random(ROWS), strict=True)
    )
    return Upload(read_csv(text.encode()), TableSpec("label"))


def fill(name: str) -> SweepJob:
    """Has every cache and the pool of jobs make something of an upload."""
    spec = RunSpec(dataset=name, mechanism="dbdp", seeds=2)
    decision_boundary.plane_of(spec, 2, cached_runs.outcome(spec).theta.shape[1])
    cached_runs.outcome(RunSpec(dataset=name, ranges="private", seeds=2))
    seen = inspected.inspect(spec)
    inspected.row_influence(spec)
    inspected.retrained(spec, [1, 2])
    inspected.noisy_rows(spec)
    releases(spec, [0.5, 1.0])
    next(table for table in guarantees.watch(spec) if table.metrics)
    influence_map.place(seen, dataset_of(spec), selection.COMPONENTS)
    sweep = SweepSpec(dataset=name, mechanisms=["cms-output"], epsilons=[1.0], seeds=2)
    job = jobs.pool().submit(SweepJob(f"of {name}", sweep.cells(), None))
    assert job.wait(LIMIT)
    return job


def holding_rows() -> list[object]:
    """Arrays and tables with as many rows as the upload, its training part or its test part, of all that is alive."""
    gc.collect()
    found: dict[int, object] = {}
    for thing in gc.get_objects():
        for part in (thing, *gc.get_referents(thing)):
            shape = part.shape if isinstance(part, np.ndarray | pd.DataFrame | pd.Series | pd.Index) else ()
            if LENGTHS & set(shape):
                found[id(part)] = part
    return list(found.values())


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    memory.clear()
    jobs.pool().clear()
    yield
    memory.clear()
    jobs.pool().clear()


@pytest.mark.long
def test_nothing_that_is_alive_holds_rows_of_an_upload_that_went() -> None:
    others = {id(thing): thing for thing in holding_rows()}  # of other tests of this process; held, so that no id comes again
    mine = upload()
    name = mine.name
    fill(name)
    assert set(memory.owned_entries(name)) == {*memory.held_bytes()} - NEVER, "every cache of the program holds something of it"
    assert sum(id(thing) not in others for thing in holding_rows()) > 10, "a test that sees none would see none afterwards either"
    mine.forget()  # its session may hold the object for longer
    assert jobs.pool().find(f"of {name}") is None
    assert memory.owned_entries(name) == {}
    assert [type(thing) for thing in holding_rows() if id(thing) not in others] == []


SOURCES = [*(ROOT / "dpviz").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]


@of_each(SOURCES)
def test_nothing_else_remembers_rows_by_key(path: Path) -> None:
    """Caches that know no owner are for public numbers: their functions take neither rows nor what leads to rows."""
    tree = ast.parse(path.read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "cachetools" not in modules or path.name == "memory.py"
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"cache_data", "cache_resource"} or path.name == "session.py"  # which hears there who has left
    rows = re.compile(r"\b(Any|Bench|Dataset|Influence|Problem|Result|Rows|RunSpec|Upload)\b")
    for node in tree.body:  # those inside functions end with the call
        if isinstance(node, ast.FunctionDef) and "cache" in " ".join(map(ast.unparse, node.decorator_list)):
            # a formula and a type of numbers lead to no rows
            given = re.sub(r"Callable\[\.\.\., Any\]|precision: Any", "", ast.unparse(node.args))
            assert not rows.search(given), node.name
