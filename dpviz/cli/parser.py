"""The parser of the commands: complaints of one line, and options that follow from what the engine declares."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line, and which adds some options only when it is used: they load the engine."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._later: list[Callable[[], None]] = []

    def add_settings(self, without: Collection[str] = ()) -> None:
        """Adds an option for each field of a run (`SETTINGS`), but for some."""
        group = self.add_argument_group("fields of a run")

        def add() -> None:
            from dpviz.experiments.run.settings import SETTINGS

            for name, knob in SETTINGS.items():
                if name not in without:
                    text = f"{knob.label}: {knob.describe()}. {knob.help}".strip().replace("%", "%%")
                    group.add_argument(option(name), metavar="VALUE", help=text)

        self._later.append(add)

    def parse_known_args(self, *args: Any, **more: Any) -> Any:
        """Parses with all options."""
        self._complete()
        return super().parse_known_args(*args, **more)

    def format_help(self) -> str:
        """The help with all options."""
        self._complete()
        return super().format_help()

    def _complete(self) -> None:
        while self._later:
            self._later.pop()()

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and ends the program with code 2."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}. See {self.prog} --help.\n")


def option(name: str) -> str:
    """The option of a run's field."""
    return f"--{name.replace('_', '-')}"
