"""The parser of the commands: complaints of one line, short and whole help, and options that the engine declares."""

import argparse
import difflib
import shutil
from collections.abc import Collection
from typing import Any, NoReturn

from dpviz.cli.examples import EXAMPLES
from dpviz.common.validate import InvalidInput

#: commands by what they are for, in the order of the help
GROUPS = {
    "look": ("show", "run", "sweep", "influence", "groups", "list"),
    "judge": ("calibrate", "audit"),
    "release": ("release", "predict", "ledger"),
    "pages": ("report", "app"),
}
#: fields of a run in the short help
_USUAL = ("dataset", "model", "mechanism", "epsilon", "delta", "lam", "seeds")


class _Formatter(argparse.HelpFormatter):
    """Help at the terminal's width, with the default of every option that has one, and examples a line each."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=shutil.get_terminal_size().columns - 2)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if not isinstance(action.default, str) or not action.default or action.default == argparse.SUPPRESS:
            return text
        stated = f"({action.default})" in text or "default" in text
        return text if stated else f"{text} (default: {action.default.replace('%', '%%')})"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.split("\n")
        return "\n".join(
            line if line.startswith("  ") else super(_Formatter, self)._fill_text(line, width, indent) for line in lines
        )

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        heading = next((group for group, names in GROUPS.items() if names[0] == action.dest and not action.option_strings), None)
        return text if heading is None else f"\n  {heading}\n{text}"


class _Help(argparse.Action):
    """Prints the help: the usual options, or with the word "all" those of further groups too."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        for group in () if values == "all" else parser._action_groups[2:]:
            for action in group._group_actions:
                action.help = argparse.SUPPRESS
            group.description = None
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line, with examples in its help and options for the fields of a run.

    Attributes:
        rest: the group of options that are seldom needed. Help shows such groups after `--help all`.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        # a beginning of an option is none: it could be another one tomorrow
        more.update(allow_abbrev=False, formatter_class=_Formatter, add_help=False)
        super().__init__(*args, **more)
        self.add_argument("-h", "--help", nargs="?", action=_Help, metavar="all", help="this help; all: every option")
        self.rest = self.add_argument_group("more options")
        name = (self.prog.split() or [""])[-1]
        if name in EXAMPLES:
            self.epilog = "\n".join(["Examples:", *(f"  {line}".replace("%", "%%") for line in EXAMPLES[name])])

    def add_settings(self, without: Collection[str] = ()) -> None:
        """Adds an option for each field of a run or a sweep (`SETTINGS`), but for some."""
        from dpviz.experiments.run.settings import SETTINGS
        from dpviz.experiments.run.spec import RunSpec

        for name, knob in SETTINGS.items():
            if name not in without:
                default = getattr(RunSpec, name, None)
                default_text = "" if default is None else f" Default: {knob.text(default)}."
                text = f"{knob.label}: {knob.describe()}.{default_text} {knob.help}".strip().replace("%", "%%")
                option = name.replace("_", "-")
                (self if name in _USUAL else self.rest).add_argument(f"--{option}", metavar=option.upper(), help=text)

    def parse_known_args(self, *args: Any, **more: Any) -> Any:
        """Parses; what a command does not know is an error of the command, with its own help."""
        options, others = super().parse_known_args(*args, **more)
        if others and not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            given, known = others[0].partition("=")[0], list(self._option_string_actions)
            near = [one for one in known if one.startswith(given)] or difflib.get_close_matches(given, known)
            self.error(f"unrecognized arguments: {' '.join(others)}" + (f". Did you mean {near[0]}?" if near else ""))
        return options, others

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and ends the program with code 2."""
        begins: str = " Where a value begins with -, write --option=VALUE." if message.endswith("expected one argument") else ""
        text = f"{self.prog}: {' '.join(message.split())}"
        self.exit(2, f"{text}{'' if text.endswith(('.', '?')) else '.'}{begins} See {self.prog} --help.\n")


def refuse(options: argparse.Namespace, names: Collection[str], cause: str) -> None:
    """Refuses options that mean nothing beside the others.

    Args:
        names: of the options, as attributes.
        cause: for example "belongs to --membership".

    Raises:
        InvalidInput: for the first of them that has a value.
    """
    for name in names:
        if getattr(options, name) not in (None, False, []):
            raise InvalidInput(f"--{name.replace('_', '-')}", cause, "Leave one of them out, or add what is missing.")
