"""The command line as a person meets it."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dpviz.cli.main import main


class Shell:
    """Calls commands in this process; each method takes the words after `dpviz`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, words: Sequence[str], code: int = 0) -> str:
        """What a command prints that ends with this code, without what was printed before."""
        self._capsys.readouterr()
        assert main(words) == code
        out, self.err = self._capsys.readouterr()
        return out

    def json(self, words: Sequence[str]) -> Any:
        """The one valid document that a command prints with `--json`, and nothing by the way."""

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        found = json.loads(self([*words, "--json"]), parse_constant=refuse)
        assert self.err == ""
        return found

    def refused(self, words: Sequence[str]) -> str:
        """The one line that a command says which is refused; it prints nothing else."""
        self._capsys.readouterr()
        assert main(words) == 2
        said = self._capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1), said.err
        return said.err
