"""A hundred uploads that came and went leave no memory behind."""

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dpviz
from dpviz.common import memory
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.csv import read_csv
from dpviz.datasets.table.spec import TableSpec, last_column

MOST = 50_000_000
ROWS, COLUMNS = 5_000, 20


def resident() -> int:
    """Memory of this process in bytes, after all that can go has gone."""
    gc.collect()
    with suppress(AttributeError):  # a C library that is not glibc
        ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def come_and_go(seed: int) -> None:
    """One upload, a run on it, and its end."""
    values = np.random.default_rng(seed).random((ROWS, COLUMNS)).round(3)
    lines = [",".join(map(str, row)) + f",{k % 2}" for k, row in enumerate(values)]
    content = "\n".join([",".join([*(f"c{k}" for k in range(COLUMNS)), "y"]), *lines]).encode()
    table = read_csv(content)
    mine = Upload(table, TableSpec(last_column(table.frame)))
    dpviz.run(dpviz.RunSpec(mine.name, seeds=2, mechanism="dp-gd", params={"steps": 5}))
    assert memory.owned_entries(mine.name)
    mine.forget()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_hundred_uploads_leave_no_memory() -> None:
    for seed in range(5):
        come_and_go(seed)
    before, counted = resident(), uploads.held_bytes()
    for seed in range(100):
        come_and_go(seed)
    assert uploads.held_bytes() <= counted
    assert resident() - before < MOST, "one table alone is 0.8 MB, so that all of them would be more"
