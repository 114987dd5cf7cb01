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
    assert all("No space left on device" in line for line in said)


def test_signs_that_a_terminal_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["list", "mechanisms"]) == 0
    assert b"\\u03b5-DP" in written.getvalue()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_the_end_of_the_process_says_nothing_more() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-m", "dpviz", "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "No space left" in ended.stderr
