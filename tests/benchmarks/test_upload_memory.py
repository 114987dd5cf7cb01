"""Reading, encoding and the first training of a table together take about five times its encoded rows."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import LIMIT

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read in /proc")
def test_many_short_categories_do_not_grow_a_thousandfold() -> None:
    command = [sys.executable, "-m", "benchmarks.upload_memory", "--rows", "60000"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=LIMIT).stdout
    found = {name: float(value) for name, value in (line.rsplit(maxsplit=1) for line in said.splitlines())}
    assert found.pop("encoded MB") > 200, "large beside what the process needs anyway"
    assert set(found) == {"reading", "encoding", "training"}
    assert max(found.values()) < 5.6, found  # a copy more would be 1; the rest is what the allocator keeps
    assert found["training"] > 0.2, "the control: training is seen"
