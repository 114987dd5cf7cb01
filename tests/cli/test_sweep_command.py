"""`dpviz sweep`: the numbers of the library by every way, resumed, and refused in one line."""

import errno
import io
import os
import types
from pathlib import Path

import pandas as pd
import pytest
from support_shell import Shell

from dpviz.cli import sweep as sweep_command
from dpviz.cli.main import main
from dpviz.common.validate import InvalidInput
from dpviz.experiments.sweeps.cells import Cell
from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep

SPEC = SweepSpec(dataset="teaching", mechanisms={"dp-gd": {"steps": 5}, "cms-output": {}}, epsilons=[0.3, 3.0], seeds=12)
FLAGS = "--dataset teaching --mechanisms dp-gd,cms-output --set dp-gd.steps=5 --epsilons 0.3,3 --seeds 12"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    return run_sweep(SPEC)


def sweep(arguments: str) -> int:
    return main(["sweep", *arguments.split()])


def test_flags_and_file_and_library_agree(tmp_path: Path, expected: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.toml").write_text(SPEC.to_toml())
    assert sweep(f"{FLAGS} --out {tmp_path}/flags.parquet") == 0
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "flags.parquet"), expected)
    assert sweep(f"{tmp_path}/spec.toml --out {tmp_path}/file.csv --no-cache") == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "file.csv"), expected, check_dtype=False)
    capsys.readouterr()
    assert sweep(f"--spec {tmp_path}/spec.toml --quiet") == 0
    captured = capsys.readouterr()
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(captured.out)), expected, check_dtype=False)
    assert captured.err == ""
    assert not list(tmp_path.glob(".part-*"))


@pytest.mark.parametrize(("option", "said"), [("", "Finished cells are kept"), ("--no-cache", "Nothing was kept")])
def test_a_table_that_cannot_be_written_says_what_is_kept(
    option: str, said: str, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sweep_command.output, "files", types.SimpleNamespace(write=full))
    flags = f"--dataset teaching --mechanisms majority --epsilons 1 --seeds 1 --quiet {option}"
    assert sweep(f"{flags} --out {tmp_path}/table.csv") == 2
    assert said in capsys.readouterr().err
    assert bool(list(cache.rglob("*.cell"))) == (option == "")


def test_options_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC.to_toml())
    assert sweep(f"{tmp_path}/spec.toml --mechanisms dp-gd --epsilons 0.1:10:3 --seeds 1 --out {tmp_path}/a.csv") == 0
    table = pd.read_csv(tmp_path / "a.csv")
    assert set(table["mechanism"]) == {"dp-gd"}
    assert sorted(set(table["epsilon"])) == [0.1, 1.0, 10.0]
    assert len(table) == 3
    kept = run_sweep(SweepSpec(dataset="teaching", mechanisms={"dp-gd": {"steps": 5}}, epsilons=[0.1, 1.0, 10.0], seeds=1))
    assert table["objective"].to_numpy() == pytest.approx(kept["objective"].to_numpy())


def test_a_second_call_takes_up_finished_cells(
    tmp_path: Path, cache: Path, expected: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true, calls = Cell.attempt, []

    def attempt(cell: Cell, *rest: object) -> pd.DataFrame:
        calls.append(cell)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return true(cell, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Cell, "attempt", attempt)
    with pytest.raises(KeyboardInterrupt):  # the entry point ends the process before Python raises it
        sweep(f"{FLAGS} --out {tmp_path}/a.parquet")
    assert not (tmp_path / "a.parquet").exists()
    victim, whole = sorted((cache / "cells").glob("*.cell"))
    assert whole.stat().st_size > 0
    victim.write_bytes(b"broken")
    calls.clear()
    monkeypatch.setattr(Cell, "attempt", lambda cell, *rest: calls.append(cell) or true(cell, *rest))
    assert sweep(f"{FLAGS} --out {tmp_path}/a.parquet") == 0
    assert len(calls) == 3, "one was damaged, and two were missing"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), expected)
    assert capsys.readouterr().err.count("was damaged") == 1


def test_what_cannot_be_computed_is_named_and_the_rest_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true = Cell.compute

    def compute(cell: Cell, *rest: object) -> pd.DataFrame:
        if cell.spec.mechanism == "cms-output":
            raise InvalidInput("mechanism", "diverged", "Use a smaller step.")
        return true(cell, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Cell, "compute", compute)
    assert sweep(f"{FLAGS} --out {tmp_path}/a.csv --quiet") == 1
    assert set(pd.read_csv(tmp_path / "a.csv")["mechanism"]) == {"dp-gd"}
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "diverged" in line] == lines
    assert len(lines) == 2


#: arguments > the field that is named
BAD = """
--epsilons x > epsilons; --epsilons , > epsilons; --mechanisms , > mechanisms; --set steps=3 > --set;
--set dp-gd.magic=3 > --set; --set rsgd.epochs=3 > --set; --epsilons 1:2 > epsilons;
--epsilons 1:0.1:3 > epsilons; --epsilons 1:2:1 > epsilons; --out a.xlsx > --out; --out /nowhere/a.csv > --out;
--jobs 0 > --jobs; --jobs many > --jobs; missing.toml > spec file; --intercept maybe > intercept
"""


@pytest.mark.parametrize(("arguments", "field"), [case.split(" > ") for case in BAD.strip().replace("\n", " ").split("; ")])
def test_bad_input_is_one_line_and_code_2(arguments: str, field: str, shell: Shell) -> None:
    assert shell.refused(["sweep", *arguments.split()]).startswith(f"dpviz: {field}")


def test_a_bad_file_is_one_line_and_code_2(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "spec.toml").write_text("mechanisms = [['dp-gd']]")
    assert shell.refused(["sweep", f"{tmp_path}/spec.toml"]).startswith("dpviz: mechanisms: ")


def test_a_scheduler_that_does_not_answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dpviz[dask]'")
    true = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout, **rest: true(address, timeout=0.5, **rest))
    assert sweep(f"{FLAGS} --scheduler tcp://127.0.0.1:9") == 2
    assert "does not answer" in capsys.readouterr().err
