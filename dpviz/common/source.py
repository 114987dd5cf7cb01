"""What source code means, without its words: the syntax trees of modules with a mark in place of every `Words` text.

Docstrings, comments and layout are left out, and so are texts where an annotation says `Words`: arguments of parameters,
fields of dataclasses, class attributes (`label: ClassVar[Words]`), local variables and what a function returns. Every
other text is code: where it is not certain that a text is only shown, a change of it counts.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: parts of a syntax node that mean nothing
_LAYOUT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_GROWS = ("append", "extend", "insert")


def meanings(sources: dict[str, bytes]) -> dict[str, str]:
    """The meaning of each module by its path, as text; equal for modules that differ in words only."""
    with _uncollected():
        trees = {name: ast.parse(source) for name, source in sources.items()}
    places = Places()
    for tree in trees.values():
        places.collect(tree)
    return {name: _Reader(places).read(tree) for name, tree in trees.items()}


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage is collected meanwhile.

    Python 3.11 keeps one count of depth for all threads that make syntax trees. Only a collection lets another thread, such as
    a visitor's whose page is being read, run in the middle of a tree; then the count is wrong, and a SystemError says so.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@dataclass
class Signature:
    """Which parameters of a function or class are `Words`.

    Attributes:
        named: by name.
        placed: by position.
        rest: whether further positional arguments are (`*notes: Words`).
        anything: whether further names are taken (`**kwargs`).
    """

    named: dict[str, bool]
    placed: list[bool]
    rest: bool = False
    anything: bool = False

    @classmethod
    def of_function(cls, node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> Signature:
        """From the annotations of a function; a method's first parameter does not count."""
        arguments = node.args
        placed = [*arguments.posonlyargs, *arguments.args]
        if method and not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list):
            placed = placed[1:]
        return cls(
            {a.arg: is_words(a.annotation) for a in [*placed, *arguments.kwonlyargs]},
            [is_words(a.annotation) for a in placed],
            arguments.vararg is not None and is_words(arguments.vararg.annotation),
            arguments.kwarg is not None,
        )

    @classmethod
    def of_class(cls, node: ast.ClassDef) -> Signature:
        """From `__init__`, or from the annotated fields."""
        for line in node.body:
            if isinstance(line, ast.FunctionDef) and line.name == "__init__":
                return cls.of_function(line, method=True)
        fields = {n: is_words(a) for n, a in _annotated(node) if not _is_class_variable(a)}
        # inherited fields come first and are not seen here, so only names are certain
        return cls(fields, [] if node.bases else list(fields.values()))

    def at(self, index: int) -> bool:
        """Whether the positional argument with this index is `Words`."""
        return self.placed[index] if index < len(self.placed) else self.rest


@dataclass
class Places:
    """Where `Words` stand in the modules collected so far.

    Attributes:
        attributes: names of class attributes (`ClassVar[Words]`).
        signatures: of all functions, methods and classes by their bare name.
        parents: the one base of a class that declares no fields of its own; it is made as its base is.
    """

    attributes: set[str] = field(default_factory=set)
    signatures: dict[str, list[Signature]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)

    def collect(self, node: ast.AST) -> None:
        """Adds what the annotations below this node declare."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                signature = Signature.of_function(child, method=isinstance(node, ast.ClassDef))
                self.signatures.setdefault(child.name, []).append(signature)
            elif isinstance(child, ast.ClassDef):
                signature = Signature.of_class(child)
                if len(child.bases) == 1 and not signature.named:
                    self.parents[child.name] = getattr(child.bases[0], "id", "")
                else:
                    self.signatures.setdefault(child.name, []).append(signature)
                self.attributes |= {n for n, a in _annotated(child) if _is_class_variable(a) and is_words(a)}
            self.collect(child)

    def in_call(self, call: ast.Call) -> tuple[list[bool], list[bool]]:
        """Whether each positional and each keyword argument of a call is `Words`.

        Functions are known by their bare name: where several share it, all must agree.
        """
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        signatures = [*self.signatures.get(name, []), *self.signatures.get(self.parents.get(name, ""), [])]
        if not signatures:
            return [False] * len(call.args), [False] * len(call.keywords)
        starred = [k for k, a in enumerate(call.args) if isinstance(a, ast.Starred)]
        certain = starred[0] if starred else len(call.args)
        placed = [k < certain and all(s.at(k) for s in signatures) for k in range(len(call.args))]
        named = []
        for keyword in call.keywords:
            said = [s.named.get(keyword.arg or "", False) for s in signatures if (keyword.arg or "") in s.named or s.anything]
            named.append(bool(said) and all(said))
        return placed, named


def is_words(annotation: ast.expr | None) -> bool:
    """Whether an annotation is `Words` or holds nothing else: `Words | None`, `tuple[Words, ...]`, `dict[str, Words]`."""
    if isinstance(annotation, ast.Name):
        return annotation.id == "Words"
    if isinstance(annotation, ast.BinOp):
        sides = [s for s in (annotation.left, annotation.right) if not (isinstance(s, ast.Constant) and s.value is None)]
        return all(map(is_words, sides))
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if annotation.value.id in ("dict", "Mapping"):
            return is_words(inside[-1])
        return all(is_words(e) or (isinstance(e, ast.Constant) and e.value is Ellipsis) for e in inside)
    return False


def _annotated(node: ast.ClassDef) -> list[tuple[str, ast.expr]]:
    lines = [line for line in node.body if isinstance(line, ast.AnnAssign)]
    return [(line.target.id, line.annotation) for line in lines if isinstance(line.target, ast.Name)]


def _is_class_variable(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Subscript) and getattr(annotation.value, "id", "") == "ClassVar"


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class _Reader:
    """Writes a syntax tree out as text."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._out: list[str] = []
        self._names: list[Collection[str]] = [()]  # variables that hold words, innermost scope last
        self._returns = [False]

    def read(self, tree: ast.Module) -> str:
        self._code(tree)
        return " ".join(self._out)

    def _code(self, node: object) -> None:
        if isinstance(node, ast.AST):
            special = getattr(self, f"_{type(node).__name__.lower()}", None)
            if special is None:
                self._parts(node)
            else:
                special(node)
        elif isinstance(node, list):
            self._out.append("[")
            for item in node:
                if not (isinstance(item, ast.Expr) and _is_text(item.value)):  # a docstring
                    self._code(item)
            self._out.append("]")
        else:
            self._out.append(repr(node))

    def _parts(self, node: ast.AST, words: Collection[str] = ()) -> None:
        """All parts of a node; those named in `words` hold words."""
        self._out.append(f"({type(node).__name__}")
        for name, value in ast.iter_fields(node):
            if value is not None and value != [] and name not in _LAYOUT:
                self._out.append(name)
                self._either(value, name in words)
        self._out.append(")")

    def _either(self, node: object, words: bool) -> None:
        if words:
            self._text(node)
        else:
            self._code(node)

    def _text(self, node: object) -> None:
        """What stands where words are declared. Texts become marks; whether one is empty may decide something."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._out.append("words" if node.value else "''")
        elif isinstance(node, ast.JoinedStr):
            self._out.append("words")
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self._code(part.value)
        elif isinstance(node, ast.Tuple | ast.List):
            self._out.append(f"({type(node).__name__}")
            for item in node.elts:
                self._text(item)
            self._out.append(")")
        elif isinstance(node, ast.Dict):
            self._out.append("(Dict")
            for key, value in zip(node.keys, node.values, strict=True):
                self._code(key)
                self._text(value)
            self._out.append(")")
        elif isinstance(node, ast.IfExp):
            self._parts(node, ("body", "orelse"))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            self._parts(node, ("left", "right"))
        elif isinstance(node, ast.Starred):
            self._parts(node, ("value",))
        else:
            self._code(node)

    def _holds_words(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._names[-1]

    def _classdef(self, node: ast.ClassDef) -> None:
        self._names.append(self._places.attributes - {name for name, _ in _annotated(node)})
        self._parts(node)
        self._names.pop()

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        declared = [n for n in ast.walk(node) if isinstance(n, ast.AnnAssign) and is_words(n.annotation)]
        self._out.append(f"({type(node).__name__} {node.name}")
        self._code(node.decorator_list)
        self._code(node.returns)
        self._code(arguments)
        self._names.append(
            {getattr(n.target, "id", "") for n in declared} | {a.arg for a in parameters if is_words(a.annotation)}
        )
        self._returns.append(is_words(node.returns))
        self._code(node.body)
        self._names.pop()
        self._returns.pop()
        self._out.append(")")

    _asyncfunctiondef = _functiondef

    def _arguments(self, node: ast.arguments) -> None:
        placed = [*node.posonlyargs, *node.args]
        self._out.append(f"(arguments {len(node.posonlyargs)} {len(node.args)} {len(node.kwonlyargs)}")
        for argument in [*placed, *node.kwonlyargs, node.vararg, node.kwarg]:
            self._code(argument)
        for argument, default in [
            *zip(placed[len(placed) - len(node.defaults) :], node.defaults, strict=True),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]:
            self._out.append(f"{argument.arg}=")
            self._either(default, is_words(argument.annotation))
        self._out.append(")")

    def _call(self, node: ast.Call) -> None:
        placed, named = self._places.in_call(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS and self._holds_words(node.func.value):
            placed[-1:] = [True]
        self._out.append("(Call")
        self._code(node.func)
        for argument, words in zip(node.args, placed, strict=True):
            self._either(argument, words)
        for keyword, words in zip(node.keywords, named, strict=True):
            self._out.append(f"{keyword.arg}=")
            self._either(keyword.value, words)
        self._out.append(")")

    def _annassign(self, node: ast.AnnAssign) -> None:
        self._parts(node, ("value",) if is_words(node.annotation) else ())

    def _assign(self, node: ast.Assign) -> None:
        self._parts(node, ("value",) if all(map(self._holds_words, node.targets)) else ())

    def _augassign(self, node: ast.AugAssign) -> None:
        self._parts(node, ("value",) if self._holds_words(node.target) else ())

    def _return(self, node: ast.Return) -> None:
        self._parts(node, ("value",) if self._returns[-1] else ())
