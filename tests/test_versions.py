"""The lowest versions that pyproject.toml allows and the newest that there are work: each in an environment of its own."""

import os
import re
import socket
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest
from support import LIMIT

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("app", "dask", "notebook", "excel", "fast", "completion")
#: what the tests below need beside the project
OF_TESTS = ("hypothesis", "openpyxl", "pytest", "pytest-xdist")
#: reading, kernels, releasing, the shell, and what is used of Streamlit's inside
SELECTION = (
    *("tests/datasets/test_strange_files.py", "tests/datasets/test_formats.py", "tests/models/test_kernels.py"),
    *("tests/releasing/test_predicting.py", "tests/dashboard/test_private.py", "tests/cli/test_own_table.py"),
)
ONNX = """
import numpy as np, onnxruntime, skl2onnx, dpviz
X = np.random.default_rng(0).uniform(-4, 4, (500, 3)).astype(np.float32)
for y in (X[:, 0] > 0, np.digitize(X[:, 0], [-1, 1])):
    model = dpviz.PrivateClassifier("objective-tight", epsilon=5.0, ranges=(-4, 4), random_state=1).fit(X, y)
    file = skl2onnx.to_onnx(model.to_sklearn(), X[:1], options={"zipmap": False}).SerializeToString()
    labels, chances = onnxruntime.InferenceSession(file).run(None, {"X": X})
    assert (labels == model.predict(X)).all()
    assert np.allclose(chances, model.predict_proba(X), atol=1e-5)
"""


def required(lowest: bool) -> list[str]:
    """Requirements of the project, of its extras and of the tests, pinned to their lower bounds where those are asked for."""
    lines = list(PROJECT["dependencies"])
    for extra in EXTRAS:
        lines += PROJECT["optional-dependencies"][extra]
    beside = PROJECT["optional-dependencies"]["test"] + PROJECT["optional-dependencies"]["gate"]
    lines += [line for line in beside if re.split(r"[<>=\[]", line)[0] in OF_TESTS]
    return [re.sub(r">=([^,]+).*", r"==\1", line) for line in lines] if lowest else lines


def test_every_requirement_has_a_lower_bound() -> None:
    pinned = required(lowest=True)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+==[0-9.]+", line) for line in pinned), pinned
    assert {line.partition("==")[0] for line in pinned} >= {"numpy", "streamlit", *OF_TESTS}


@pytest.mark.long
@pytest.mark.parametrize("which", ["lowest", "newest"])
def test_these_versions_work(which: str, tmp_path: Path) -> None:
    try:
        socket.create_connection(("pypi.org", 443), timeout=10).close()
    except OSError:
        pytest.skip("pypi.org cannot be reached")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    more = ["skl2onnx", "onnxruntime"] if which == "newest" else []
    call([python, "-m", "pip", "install", "-q", *required(which == "lowest"), *more], tmp_path)
    call([python, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", *SELECTION], tmp_path)
    if which == "newest":
        call([python, "-c", ONNX], tmp_path)


def call(words: list[Path | str], folder: Path) -> None:
    """Runs a program on this checkout, which is not installed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DPVIZ_CACHE": str(folder / "cache"), "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60 * LIMIT)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
