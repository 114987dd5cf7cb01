"""Mistakes in compiled loops, written into their source one at a time.

mutmut switches a mistake on when a function is called, and leaves decorated functions as they are; a loop of numba is compiled
before that. Here one token inside a function is another one in a copy of the project, whose loops are compiled anew for each
mistake. That takes minutes, so `benchmarks.planted` tries a sample.
"""

import ast
import io
import os
import shutil
import threading
import tokenize
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks import mutants
from benchmarks.mutants import ROOT, Mutant

TOO_LONG = 900.0  # seconds after which a mistake is given up; with all loops compiled anew its tests take 60 to 300
_SWAPS = ("+ -", "< <=", "> >=", "== !=", "+= -=", "<< >>", "| &", "min max", "and or", "True False")
#: token -> what stands there instead
OTHER = {a: b for pair in _SWAPS for a, b in (pair.split(), pair.split()[::-1])}
OTHER |= {"*": "+", "//": "*", "%": "//", "*=": "+=", "not": "-"}
_UNCHANGED = (tokenize.COMMENT, tokenize.STRING, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True)
class Change:
    """One token that is another: the function that it is in, its place in the source, and what stands there."""

    function: str
    line: int
    start: int
    stop: int
    new: str

    def of(self, source: str) -> str:
        """The changed source."""
        lines = source.splitlines(keepends=True)
        text = lines[self.line - 1]
        lines[self.line - 1] = text[: self.start] + self.new + text[self.stop :]
        return "".join(lines)


def changes(source: str) -> list[Change]:
    """All changes of a module: operators, comparisons, whole numbers, minimum and maximum, inside of functions.

    Annotations, decorators, defaults and what an error says stay as they are.
    """
    inside: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                for line in range(statement.lineno, (statement.end_lineno or 0) + 1):
                    inside[line] = node.name  # of functions inside a function the inner one comes last
    heads = {line for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) for line in _head(node)}
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        (line, start), (_, stop), text = token.start, token.end, token.string
        if line not in inside or line in heads or token.type in _UNCHANGED or token.line.lstrip().startswith(("raise ", "@")):
            continue
        new = OTHER.get(text) if token.type != tokenize.NUMBER else str(int(text) + 1) if text.isdigit() else None
        if new is None or (text == "*" and token.line[:start].rstrip().endswith(("(", ","))):
            continue
        change = Change(inside[line], line, start, stop, new)
        with suppress(SyntaxError):
            compile(change.of(source), "", "exec")
            found.append(change)
    return found


def _head(node: ast.FunctionDef) -> range:
    """Lines of a function's name, arguments and decorators."""
    return range(min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.body[0].lineno)


class Copy:
    """A copy of the project in whose modules one mistake at a time is written."""

    def __init__(self, folder: Path, modules: list[str]) -> None:
        self.place, self._folder, self._lock = folder / "written", folder, threading.Lock()
        mutants.copy_to(self.place)
        self.changes: dict[str, tuple[str, Change]] = {}
        for module in modules:
            for k, change in enumerate(changes((ROOT / module).read_text("utf-8"))):
                self.changes[f"{mutants.dotted_name(module)}.{change.function}__mutmut_{k}"] = module, change

    def mutant(self, name: str) -> Mutant:
        """A mistake that was not tried yet, with the lines that it changes."""
        module, change = self.changes[name]
        source = (ROOT / module).read_text("utf-8")
        before, after = (text.splitlines()[change.line - 1] for text in (source, change.of(source)))
        return Mutant(name, mutants.NOT_TRIED, (f"-{before}", f"+{after}"))

    def tried(self, mutant: Mutant, seconds: float = TOO_LONG) -> Mutant:
        """A mistake and what its tests say of it; one that takes longer stays as it was."""
        module, change = self.changes[mutant.name]
        with self._lock:
            path, source = self.place / module, (ROOT / module).read_text("utf-8")
            path.write_text(change.of(source), "utf-8")
            loops = self._folder / "loops"
            try:
                places = os.pathsep.join([str(self.place), str(self.place / "tests")])
                code = mutants.tests_say(module, self.place, seconds, PYTHONPATH=places, NUMBA_CACHE_DIR=str(loops))
            finally:
                path.write_text(source, "utf-8")
                shutil.rmtree(loops, ignore_errors=True)
        if code is None:
            return mutant
        return Mutant(mutant.name, "survived" if code == 0 else "killed", mutant.change)
