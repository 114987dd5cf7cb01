"""The command line: `dpviz` starts the app; the other commands do without it, one file each."""

import argparse
import difflib
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dpviz.cli import own_file
from dpviz.cli.parser import GROUPS, Parser
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput
from dpviz.common.version import __version__

#: exit code after the reader of the output has gone, as in `dpviz list datasets | head -1`: that of a program ended by SIGPIPE
READER_GONE = 141
FAILED = 1
_PACKAGE = Path(__file__).resolve().parents[1]
#: what only the extra "app" installs; the app and reports need it
_APP_LIBRARIES = ("jinja2", "plotly", "starlette", "streamlit")
_SHELLS = ("bash", "zsh", "tcsh")
#: names of the commands and of their modules, in the order of the help
COMMANDS = [name for names in GROUPS.values() for name in names]
#: words that a person may try -> the command that does it
_SYNONYMS = {
    "accounting": "calibrate --accountants",
    "guarantees": "calibrate --methods",
    "attack": "audit --membership",
    "tune": "release --try",
    "ranges": "release --private-ranges",
    "gallery": "report --all",
    "fetch": "show NAME --download",
    "datasets": "list datasets",
    "mechanisms": "list mechanisms",
    "claims": "list claims",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point.

    Returns:
        0; 2 after one line on bad input; 1 after one line where a computation failed or the output cannot be written, or a part
        of a sweep is missing; 141 where the reader of the output has gone. Ctrl-C gives 130, SIGTERM 143 (`dpviz.cli.start`).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help", *words[2:]]
    if words == ["version"]:
        words = ["--version"]
    of_all = ("-h", "--help", "--version", "--print-completion")
    if not words or (words[0].startswith("-") and words[0].partition("=")[0] not in of_all):
        words = ["app", *words]
    if words[0] == "app":
        return _command(words)
    with suppress(AttributeError):  # a stream of a test or a notebook
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        try:
            return _command(words)
        finally:
            print(end="", flush=True)
    except OSError as error:
        with suppress(OSError):  # Python would write what is left once more at its end, and fail with a traceback
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return READER_GONE
        print(f"dpviz: {words[0]}: {error}.", file=sys.stderr)
        return FAILED


class _Completion(argparse.Action):
    """Prints what makes a shell complete commands and options."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        try:
            import shtab
        except ImportError:
            parser.error("--print-completion needs shtab, which is not installed: pip install shtab")
        print(shtab.complete(parser, shell=values))
        parser.exit()


def _command(words: list[str]) -> int:
    commands = parser(None if words[0].startswith("--print-completion") else words[0])
    if not words[0].startswith("-") and words[0] not in COMMANDS:
        near = difflib.get_close_matches(words[0], [*COMMANDS, *_SYNONYMS], 1)
        commands.error(f"{words[0]!r} is no command." + "".join(f" Did you mean {_SYNONYMS.get(name, name)}?" for name in near))
    options = commands.parse_args(words)
    options.name_of_command = words[0]
    options.typed = shlex.join(["dpviz", *words])
    Bar.shown = not getattr(options, "quiet", False)
    try:
        return int(options.command(options) or 0)
    except InvalidInput as problem:
        named = InvalidInput(own_file.option_of(problem.field), problem.cause, problem.fix)
        more = f" See dpviz {words[0]} --help." if named.field.startswith("--") else ""
        print(f"dpviz: {' '.join(str(named).split())}{more}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as problem:
        if problem.name not in _APP_LIBRARIES:
            raise
        cause = f"{problem.name} is not installed. Install the dashboard: pip install 'dpviz[app]'."
        print(f"dpviz: {words[0]}: {cause}", file=sys.stderr)
        return 2
    except (FloatingPointError, MemoryError) as problem:
        message = " ".join(str(problem).split()) or "memory is not enough. Use fewer noise draws or a smaller dataset."
        print(f"dpviz: {words[0]}: {message}", file=sys.stderr)
        return FAILED


def app_script() -> Path:
    """app.py of the checkout that this package runs from, or the copy that an installed wheel carries.

    Raises:
        InvalidInput: neither is there.
    """
    for script in (_PACKAGE / "_app" / "app.py", _PACKAGE.parent / "app.py"):
        if script.is_file() and (script.parent / ".streamlit" / "config.toml").is_file():
            return script
    raise InvalidInput("app", "app.py was not found beside the package", "Install dpviz again, or run it from a checkout.")


def parser(only: str | None = None) -> Parser:
    """All commands with their options.

    Args:
        only: the command whose options are needed, for those of a run load the engine; all by default.
    """
    made = Parser(prog="dpviz", description="See, tune and audit differentially private ERM.")
    made.add_argument("--version", action="version", version=f"dpviz {__version__}")
    made.add_argument(
        "--print-completion",
        action=_Completion,
        metavar="SHELL",
        choices=_SHELLS,
        help=f"print what completes commands in a shell: {', '.join(_SHELLS)}",
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = import_module(f"dpviz.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=getattr(module, "DESCRIPTION", None))
        if only in (None, name):
            module.add(command)
        if name != "app":
            command.add_argument("--json", action="store_true", help="print one JSON document, described in docs/commands.md")
            command.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
        command.set_defaults(command=module.run)
    return made
