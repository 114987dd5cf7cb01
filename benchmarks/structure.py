"""Numbers about the structure of the source: rooms, imports between them, private imports, longest files and functions.

    python -m benchmarks.structure            # the numbers
    python -m benchmarks.structure --list     # and what they count, line by line

A room is a folder directly below dpviz/. Needs the standard library only.
"""

import argparse
import ast
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: which rooms lie on the same floor, lowest first; an import may go to a lower floor only
FLOORS = (
    ("common", "figures"),
    ("datasets", "models", "privacy"),
    ("influence",),
    ("mechanisms",),
    ("experiments",),
    ("auditing",),
    ("spending",),
    ("papers", "estimator", "releasing", "reporting"),
    ("dashboard", "cli"),
)
_FLOOR = {room: k for k, floor in enumerate(FLOORS) for room in floor}


def _floor(room: str) -> int:
    """Where a room lies; rooms of another package lie on one floor."""
    return _FLOOR.get(room, 0)


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        module: where it comes from.
        name: what is imported from there, "" for the module itself.
        line: where it stands.
        early: whether it happens when the importing module is loaded, and not in a function or for type checks only.
    """

    module: str
    name: str
    line: int
    early: bool


@dataclass(frozen=True)
class Module:
    """A file of the package, parsed."""

    path: Path
    package: Path

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @property
    def name(self) -> str:
        """Its dotted name; a package's is that of its folder."""
        parts = self.path.relative_to(self.package.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """The folder below the package that it lies in, "" for the package itself."""
        parts = self.path.relative_to(self.package).parts
        return parts[0] if len(parts) > 1 else ""

    def at(self, line: int) -> str:
        """A place in this file, for lists."""
        return f"{self.path.relative_to(self.package.parent)}:{line}"

    @cached_property
    def imports(self) -> list[Import]:
        """All that it imports from the package."""
        return [found for found in _imports(self.tree, True) if found.module.split(".")[0] == self.package.name]


def _imports(node: ast.AST, early: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, "", child.lineno, early) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module and not child.level:
            yield from (Import(child.module, alias.name, child.lineno, early) for alias in child.names)
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports(child, early and not later and not types)


def modules(package: Path) -> list[Module]:
    """All files of a package."""
    return [Module(path, package) for path in sorted(package.rglob("*.py"))]


def target(found: Import, names: Iterable[str]) -> str:
    """The module that an import reaches: the submodule where the name is one, otherwise the module."""
    full = f"{found.module}.{found.name}"
    return full if full in names else found.module


def between_rooms(all_modules: list[Module]) -> dict[tuple[str, str], list[str]]:
    """Places of imports by (importing room, imported room); the package's own __init__ is no room."""
    rooms = {m.name: m.room for m in all_modules}
    edges: dict[tuple[str, str], list[str]] = {}
    for m in all_modules:
        for found in m.imports:
            there = rooms.get(target(found, rooms), "")
            if m.room and there and there != m.room:
                edges.setdefault((m.room, there), []).append(m.at(found.line))
    return edges


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of more than one node that reach each other (Tarjan's strongly connected components)."""
    graph: dict[str, set[str]] = {}
    for here, there in edges:
        graph.setdefault(here, set()).add(there)
        graph.setdefault(there, set())
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    out: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                out.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return out


def early_edges(all_modules: list[Module]) -> set[tuple[str, str]]:
    """(importing, imported) modules while loading; a package's __init__ that lists its own modules is not counted."""
    names = {m.name for m in all_modules}
    edges = {(m.name, target(found, names)) for m in all_modules for found in m.imports if found.early}
    return {(here, there) for here, there in edges if there in names and not there.startswith(f"{here}.") and here != there}


def folder_floors(all_modules: list[Module]) -> dict[str, int]:
    """Modules on the longest chain of imports inside each folder, from one that imports none of its neighbours upwards."""
    names = {m.name: m.path.parent for m in all_modules}
    below: dict[str, set[str]] = {}
    for m in all_modules:
        near = {target(found, names) for found in m.imports if found.early}
        below[m.name] = {n for n in near if names.get(n) == m.path.parent and m.path.name != "__init__.py"} - {m.name}

    def floor(name: str, above: tuple[str, ...] = ()) -> int:
        return 1 + max((floor(n, (*above, name)) for n in below[name] if n not in above), default=0)

    out: dict[str, int] = {}
    for m in all_modules:
        folder = str(m.path.parent.relative_to(m.package.parent))
        out[folder] = max(out.get(folder, 0), floor(m.name))
    return out


def private_imports(all_modules: list[Module]) -> list[str]:
    """Imports of a private module or name of another module, and uses of a module's private name."""
    names = {m.name for m in all_modules}
    found = []
    for m in all_modules:
        aliases = {i.name for i in m.imports if f"{i.module}.{i.name}" in names}
        for i in m.imports:
            if any(_private(part) for part in (*i.module.split("."), i.name)):
                found.append(f"{m.at(i.line)} {i.module} {i.name}".rstrip())
        for node in ast.walk(m.tree):
            whose = node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
            if isinstance(node, ast.Attribute) and whose in aliases and _private(node.attr):
                found.append(f"{m.at(node.lineno)} {whose}.{node.attr}")
    return found


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def model_tests(all_modules: list[Module]) -> list[str]:
    """isinstance calls outside models/ on a class that is defined there."""
    classes = {n.name for m in all_modules if m.room == "models" for n in ast.walk(m.tree) if isinstance(n, ast.ClassDef)}
    return [
        f"{m.at(node.lineno)} {ast.unparse(node)}"
        for m in all_modules
        if m.room != "models"
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        and any(getattr(n, "id", getattr(n, "attr", "")) in classes for n in ast.walk(node.args[1]))
    ]


def broad_handlers(all_modules: list[Module]) -> list[str]:
    """Handlers of Exception, BaseException or everything that do not end by raising the same again."""
    found = []
    for m in all_modules:
        for node in ast.walk(m.tree):
            if isinstance(node, ast.ExceptHandler):
                caught = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"Exception"}
                again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
                if caught & {"Exception", "BaseException"} and not again:
                    found.append(m.at(node.lineno))
    return found


def functions(all_modules: list[Module]) -> list[tuple[int, str]]:
    """(lines, place and name) of all functions, longest first."""
    found = [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{m.at(node.lineno)} {node.name}")
        for m in all_modules
        for node in ast.walk(m.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return sorted(found, reverse=True)


def report(package: Path) -> list[tuple[str, str, list[str]]]:
    """(what, number, what it counts) in the order in which it is printed."""
    every = modules(package)
    rooms = sorted({m.room for m in every} - {""})
    edges = between_rooms(every)
    upward = [f"{a} -> {b}: {p}" for (a, b), places in sorted(edges.items()) for p in places if _floor(a) < _floor(b)]
    level = [f"{a} -> {b}: {p}" for (a, b), places in sorted(edges.items()) for p in places if _floor(a) == _floor(b)]
    of_rooms, of_modules = circles(edges), circles(early_edges(every))
    loose = [m.at(1) for m in every if not m.room and m.path.name != "__init__.py"]
    skips = [m.at(k) for m in every for k, line in enumerate(m.text.splitlines(), 1) if "fmt: skip" in line or "fmt: off" in line]
    lines = sorted(((len(m.text.splitlines()), str(m.path.relative_to(package.parent))) for m in every), reverse=True)
    longest = functions(every)
    inside = sorted(((count, folder) for folder, count in folder_floors(every).items()), reverse=True)
    lists = {
        "upward imports": upward,
        "imports between rooms of one floor": level,
        "circles of rooms": [" ".join(c) for c in of_rooms],
        "circles of modules while loading": [" ".join(c) for c in of_modules],
        "modules at the root beside __init__": loose,
        "private imports across modules": private_imports(every),
        "isinstance on models": model_tests(every),
        "except Exception": broad_handlers(every),
        "fmt: skip": skips,
    }
    return [
        ("files", f"{len(every)}", []),
        ("lines", f"{sum(n for n, _ in lines):,}", []),
        ("rooms", f"{len(rooms)}", rooms),
        ("floors", f"{len({_floor(r) for r in rooms})}", [", ".join(floor) for floor in FLOORS]),
        ("floors inside a folder, most", f"{inside[0][0]} ({inside[0][1]})", [f"{n} {folder}" for n, folder in inside]),
        ("imports between rooms (pairs)", f"{len(edges)}", [f"{a} -> {b} ({len(p)})" for (a, b), p in sorted(edges.items())]),
        *((what, f"{len(found)}", found) for what, found in lists.items()),
        ("median file, lines", f"{statistics.median(n for n, _ in lines):g}", []),
        ("largest file, lines", f"{lines[0][0]} ({lines[0][1]})", [f"{n} {name}" for n, name in lines[:10]]),
        ("median function, lines", f"{statistics.median(n for n, _ in longest):g}", []),
        ("longest function, lines", f"{longest[0][0]} ({longest[0][1]})", [f"{n} {name}" for n, name in longest[:10]]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", action="store_true", help="also what the numbers count")
    parser.add_argument("package", nargs="?", type=Path, default=ROOT / "dpviz", help="a package's folder (default: dpviz)")
    options = parser.parse_args()
    for what, number, found in report(options.package):
        print(f"{what:<38} {number}")
        for line in found if options.list else ():
            print(f"    {line}")


if __name__ == "__main__":
    main()
