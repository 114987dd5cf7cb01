"""What commands print arrives, or the command says in one line why it does not."""

import errno
import io
import os
import subprocess
import sys

import pytest

from dpviz.cli.main import main


class Failing(io.StringIO):
    """A stream whose reader has gone, or whose disk is full."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._error = OSError(number, os.strerror(number))

    def write(self, text: str) -> int:
        raise self._error


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 1), (errno.EPIPE, 141)])
def test_output_that_fails(number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(number))
    assert main(["list", "mechanisms"]) == code
    said = capsys.readouterr().err.splitlines()
    assert len(said) == (1 if number == errno.ENOSPC else 0)
    assert all("output: cannot be written (No space left on device)" in line for line in said)


def test_what_is_said_by_the_way_stops_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stderr", Failing(errno.EPIPE))
    assert main(["run", "--epsilon", "x"]) == 2
    assert (
        main(["sweep", "--dataset", "teaching", "--mechanisms", "majority", "--epsilons", "1", "--seeds", "1", "--no-cache"]) == 0
    )
    assert "majority" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_signs_that_a_terminal_lacks_are_spelled(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    screen = io.TextIOWrapper(written, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["list", "mechanisms"]) == 0
    text = written.getvalue().decode(encoding)
    assert "epsilon-DP" in text
    assert "\\u" not in text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_the_end_of_the_process_says_nothing_more() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-m", "dpviz", "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "cannot be written" in ended.stderr
