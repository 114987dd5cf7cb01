"""What the first page loads: libraries that it does not need would hold it up, each by a fifth of a second or more."""

import subprocess
import sys

from support import LIMIT

FIRST = """
import sys
from dpviz.dashboard.frame import current_run, fields, guessing, links, page, sidebar
from dpviz.dashboard.story import playing, scenes, settings
from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.run.spec import RunSpec

cached_runs.outcome(RunSpec())
print(*sorted({"numba", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "sklearn.model_selection"} & set(sys.modules)))
"""


def test_the_first_page_needs_no_slow_library() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["scipy.optimize"]  # which is there, so that the others would be seen
