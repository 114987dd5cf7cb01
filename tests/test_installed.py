"""The wheel and the source distribution work in an empty environment, with the lowest and the newest versions."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from support import LIMIT, until

import dpviz

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", out, ROOT], check=True, capture_output=True, timeout=10 * LIMIT)
    return out


def install(scripts: Path, requirement: str) -> None:
    command = [scripts / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement]
    subprocess.run(command, check=True, capture_output=True, timeout=20 * LIMIT)


@pytest.fixture(scope="module")
def scripts(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a new virtual environment with the wheel and no extra."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    made = folder / ("Scripts" if os.name == "nt" else "bin")
    install(made, str(next(built.glob("*.whl"))))
    return made


def outside(folder: Path) -> dict[str, str]:
    """The process environment without this checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DPVIZ_DATA")}
    return kept | {"DPVIZ_CACHE": str(folder / "cache"), "HOME": str(folder)}


@pytest.mark.long
def test_the_wheel_holds_what_it_should(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    wanted = "py.typed __init__.pyi _app/app.py _app/.streamlit/config.toml papers/verdicts.json dashboard/frame/page.css"
    assert {f"dpviz/{path}" for path in wanted.split()} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "data/"))]
    assert len(list(built.glob("*.tar.gz"))) == 1


@pytest.mark.long
def test_engine_and_shell_need_no_dashboard(scripts: Path, tmp_path: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [scripts / "dpviz", *words], cwd=tmp_path, env=outside(tmp_path), capture_output=True, text=True, timeout=10 * LIMIT
        )

    assert command("--version").stdout == f"dpviz {dpviz.__version__}\n"
    made = command("run", "--dataset", "teaching", "--seeds", "2", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["accuracy"]["mean"] > 0.5
    released = command("release", "--dataset", "teaching", "--mechanism", "output-gaussian", "--out", "model")
    assert released.returncode == 0, released.stderr
    for words in (["app"], ["report", "--dataset", "teaching", "--out", "a.html"]):
        refused = command(*words)
        assert refused.returncode == 2
        assert re.search(r"is not installed\. Install the dashboard: pip install 'dpviz\[app\]'", refused.stderr)
        assert "Traceback" not in refused.stderr


@pytest.mark.long
def test_the_app_starts_from_the_wheel(built: Path, scripts: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    install(scripts, f"dpviz[app] @ {wheel.as_uri()}")
    port = 8700 + os.getpid() % 200
    app = subprocess.Popen([scripts / "dpviz", "--no-browser", "--port", str(port)], cwd=tmp_path, env=outside(tmp_path))

    def answers() -> bool:
        assert app.poll() is None
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).read() == b"ok"
        except OSError:
            return False

    try:
        until(answers, "the app's start")
    finally:
        app.terminate()
        app.wait(LIMIT)


def test_the_citation_names_this_release() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited[1] == dpviz.__version__
    assert f"## {dpviz.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_conda_recipe_is_of_this_release_and_asks_for_the_same() -> None:
    recipe = (ROOT / "deploy" / "recipe.yaml").read_text()
    assert f'version: "{dpviz.__version__}"' in recipe
    listed = re.search(r"  run:\n    - python (\S+)\n(.+?)\n  run_", recipe, re.S)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert listed[1] == project["requires-python"]
    assert [line.replace("    - ", "").replace(" ", "") for line in listed[2].splitlines()] == project["dependencies"]


def test_the_core_names_no_library_of_the_dashboard() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {re.split(r"[<>=\[]", name)[0] for name in project["dependencies"]}
    assert not core & {"streamlit", "plotly", "jinja2", "starlette"}
    assert {"numpy", "scipy", "pandas", "scikit-learn"} <= core


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
