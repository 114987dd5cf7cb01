"""The engine computes in one thread without child processes, as in a browser (Pyodide), where there are neither."""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: forbids threads and processes, and hides libraries and calls that WebAssembly does not have; then runs code
BROWSER = """
import builtins, json, os, sys, threading
HIDDEN = {"streamlit", "plotly", "numba", "fcntl", "resource", "distributed", "multiprocessing.resource_tracker"}
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in HIDDEN or name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])
sys.meta_path.insert(0, Hide())
for name in HIDDEN:
    sys.modules.pop(name, None)
sys.modules["numba"] = None  # asked for by `find_spec`, which then finds none, as where it is not installed
def forbidden(*_, **__):
    raise RuntimeError("can't start new thread or process")
threading.Thread.start = forbidden
import subprocess
subprocess.Popen.__init__ = forbidden
import _thread
_thread.start_new_thread = forbidden
os.environ["OMP_NUM_THREADS"] = "1"
for name in ("fork", "forkpty", "posix_spawn", "sched_getaffinity", "system"):
    if hasattr(os, name):
        setattr(os, name, forbidden) if name != "sched_getaffinity" else delattr(os, name)
"""
RUN = """
import dpviz
spec = dpviz.RunSpec({dataset!r}, model={model!r}, mechanism={mechanism!r}, seeds=4)
result = dpviz.run(spec)
print(json.dumps([result.accuracy.tolist(), result.theta.tolist(), result.calibration.status.value]))
"""


def called(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


RUNS = [("teaching", "logistic", "output-gaussian"), ("breast-cancer", "svm", "dp-gd"), ("teaching", "mlp-4", "dp-sgd")]


@pytest.mark.long
@pytest.mark.parametrize(("dataset", "model", "mechanism"), RUNS)
def test_a_private_model_is_trained_in_one_thread_with_the_same_numbers(dataset: str, model: str, mechanism: str) -> None:
    run = RUN.format(dataset=dataset, model=model, mechanism=mechanism)
    alone = called(BROWSER + run)
    assert alone.returncode == 0, alone.stderr[-2000:]
    with redirect_stdout(StringIO()) as usual:
        exec("import json" + run, {})
    assert json.loads(alone.stdout) == json.loads(usual.getvalue())


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [
        "table = dpviz.sweep('teaching', mechanisms=['output-gaussian', 'dp-gd'], epsilons=[0.5, 1.0], seeds=3)\n"
        "print(json.dumps(table['accuracy'].tolist()))",
        "from dpviz.dashboard.components.lessons import LESSONS\n"
        "print(json.dumps([str(one.measure(one.spec).value) for one in LESSONS if one.id in ('attack', 'best', 'sensitivity')]))",
    ],
    ids=["trade-off", "lessons"],
)
def test_a_trade_off_and_lessons_are_computed_in_one_thread_with_the_same_numbers(code: str) -> None:
    alone = called(f"{BROWSER}import dpviz\n{code}")
    assert alone.returncode == 0, alone.stderr[-2000:]
    usual = called(f"import json, sys\nsys.modules['numba'] = None\nimport dpviz\n{code}")
    assert json.loads(alone.stdout) == json.loads(usual.stdout)


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [
        "import threading; threading.Thread(target=print).start()",
        "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(print)",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.fork()",
        "import multiprocessing.resource_tracker",
        "import numba",
    ],
)
def test_what_a_browser_does_not_have_is_noticed(code: str) -> None:
    assert called(BROWSER + code).returncode == 1
