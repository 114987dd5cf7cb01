"""A field of a run is declared in two places, and everything else follows: a copy of the package gets one, and shows it."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dpviz.experiments.run import setup
from dpviz.experiments.run.resolve import fit_key
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.knobs import Changes

ROOT = Path(__file__).parents[3]

#: run with the name of what the field `colour` changes
SEEN = """
import sys
from dpviz.cli import one_run, sweep
from dpviz.cli.main import parser
from dpviz.experiments.run.resolve import fit_key, resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.experiments.sweeps.cells import Cell
from dpviz.experiments.sweeps.sweep import SweepSpec

changes = sys.argv[1]
plain, red = RunSpec(seeds=1), RunSpec(seeds=1, colour=3)
assert red.to_query() == {"seeds": "1", "colour": "3"} and RunSpec.from_query("?seeds=1&colour=3") == red
assert RunSpec(**red.to_dict()) == red != plain

around = SweepSpec.around(red, {"dp-gd": {}}, [1.0])
assert [run.colour for run in around.runs()] == [3] and "colour = 3" in around.to_toml()
assert around.key() != SweepSpec.around(plain, {"dp-gd": {}}, [1.0]).key()

assert one_run.run_spec(parser().parse_args(["run", "--seeds", "1", "--colour", "3"])) == resolve(red).spec
assert sweep.spec_of(parser().parse_args(["sweep", "--colour", "3"])) == SweepSpec(colour=3)
try:
    one_run.run_spec(parser().parse_args(["run", "--colour", "10"]))
except ValueError as problem:
    assert problem.field == "colour"
else:
    raise AssertionError("a value out of range was taken")

assert resolve(plain).key() != resolve(red).key()
assert Cell(plain, (1.0,), range(1)).key() != Cell(red, (1.0,), range(1)).key()
fit = changes in ("data", "fit")
assert (fit_key(plain) != fit_key(red)) is fit
assert (setup_for(plain) is not setup_for(red)) is fit
assert (inspected.row_influence(plain) is not inspected.row_influence(red)) is fit

if changes == "data":
    from streamlit.testing.v1 import AppTest

    page = AppTest.from_file("app.py", default_timeout=600).run()
    assert not page.exception
    page.number_input(key="colour").set_value(3).run()
    assert not page.exception
    assert page.query_params["colour"] == "3"
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the app without what is computed from it."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("dpviz", "pages"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", folder)
    return folder


def insert(path: Path, after: str, line: str) -> None:
    text = path.read_text()
    assert text.count(after) == 1
    path.write_text(text.replace(after, f"{after}\n{line}"))


@pytest.mark.long
@pytest.mark.parametrize("changes", [Changes.DATA, Changes.NOISE])
def test_a_field_that_is_declared_is_everywhere(changes: Changes, copy: Path) -> None:
    run = copy / "dpviz/experiments/run"
    shutil.copytree(ROOT / "dpviz/experiments/run", run, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    knob = f'Whole(label="Colour", help="Of a test.", low=0, high=9, changes=Changes.{changes.name})'
    insert(run / "settings.py", "SETTINGS: dict[str, Knob] = {", f'    "colour": {knob},')
    insert(run / "spec.py", "    published_split: bool = False", "    colour: int = 0")
    ours = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", SEEN, changes], cwd=copy, env=os.environ | ours, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


OTHER: dict[str, object] = {"dataset": "breast-cancer", "model": "svm", "mechanism": "cms-output", "delta": 1e-7}
OTHER |= {"intercept": False, "row_scaling": "largest", "ranges": "private"}


def computed(spec: RunSpec) -> tuple[bytes, bytes]:
    """The rows of a run and its non-private model, not from any cache of training problems."""
    setup.clear()
    made = setup.setup_for(spec)
    rows = b"".join(part.tobytes() for rows in (made.problem.rows, made.test) for part in (rows.X, rows.y))
    return rows, made.problem.optimum.tobytes()


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "published_split"])  # which the bundled tables lack
def test_a_field_changes_what_it_is_said_to_change(name: str) -> None:
    """A wrong tag would serve the influence of another run. An automatic λ would follow the mechanism; here it is set."""
    plain = RunSpec("iris", lam=0.01, row_scaling="centred")  # the automatic one is paid for from some ε on
    changed = replace(plain, **{name: OTHER[name] if name in OTHER else getattr(plain, name) + 2})  # type: ignore[arg-type]
    (rows, model), (other_rows, other_model) = computed(plain), computed(changed)
    changes = SETTINGS[name].changes
    assert (rows != other_rows) is (changes is Changes.DATA)
    assert (model != other_model) is (changes in (Changes.DATA, Changes.FIT)) is (fit_key(plain) != fit_key(changed))
