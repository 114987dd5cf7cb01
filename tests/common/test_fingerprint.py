"""The fingerprint changes with what is computed, and not with words."""

from __future__ import annotations

import ast
import contextlib
import gc
from pathlib import Path

import pytest

import dpviz
from dpviz.common import fingerprint as module
from dpviz.common import source
from dpviz.common.fingerprint import ROOMS, engine_version, fingerprint, foreign_code

ROOT = Path(dpviz.__file__).parent
SOURCES = {p.relative_to(ROOT).as_posix(): p.read_bytes() for room in ROOMS for p in (ROOT / room).rglob("*.py")}

SMALL = '''
"""A module."""
from dpviz.common.words import Words

LABELS: Words = "Labels stay."

class Mechanism:
    label: ClassVar[Words]
    id: ClassVar[str]

@dataclass
class Calibration:
    scale: float
    family: str
    query: Words
    notes: tuple[Words, ...] = ("Nothing to say.",)

class InvalidInput(ValueError):
    def __init__(self, field: str, cause: Words, fix: Words) -> None:
        """Says what is wrong."""

class CannotAccount(InvalidInput):
    """Another name for it."""

def knob(default: float, label: Words, *, low: float = 0.0, unit: str = "", help: Words = "none at all") -> object: ...

class Mine(Mechanism):
    """A method."""

    id = "my method"
    label = "My method"
    steps: int = knob(20, "Steps to take", low=1, unit="whole steps", help="More is slower.")

    def calibrate(self, n: int) -> Calibration:
        # a comment
        notes: list[Words] = [f"With {n} rows."]
        if n > 3 and self.kind == "by rows":
            notes.append("Many rows.")
        notes += ["The end."]
        return Calibration(2 / n, "gamma sphere", "the last iterate", notes=(*notes, LABELS))

    def refusal(self, mu: float) -> Words | None:
        if mu <= 0:
            raise InvalidInput("mu", f"must be above 0, got {mu:g}", "Use another one.")
        if mu > 9:
            raise CannotAccount("mu", "is too large", "Use a smaller one.")
        return "too flat for it" if mu < 1 else None
'''

WORDS = [
    ('"""A module."""', '"""A module that explains itself."""'),
    ('"""A method."""', ""),
    ("        # a comment\n", ""),
    ("    label = ", "\n\n    label   =   "),
    ('"Labels stay."', '"Labels are not changed."'),
    ('"My method"', '"The method"'),
    ('"Steps to take"', '"Number of steps"'),
    ('"More is slower."', '"More steps take longer."'),
    ('"none at all"', '"nothing"'),
    ('f"With {n} rows."', 'f"The table has {n:,} rows."'),
    ('"Many rows."', '"A large table."'),
    ('"The end."', '"No more."'),
    ('"the last iterate"', '"the last model"'),
    ('"Nothing to say."', '"No remarks."'),
    ('f"must be above 0, got {mu:g}"', 'f"has to be positive, not {mu:.3g}"'),
    ('"Use another one."', '"Take another one."'),
    ('"Use a smaller one."', '"Take a smaller one."'),
    ('"too flat for it"', '"is too flat"'),
]
MEANINGS = [
    ("2 / n", "4 / n"),
    ("2 / n", "2 * n"),
    ("knob(20", "knob(25"),
    ("low=1", "low=2"),
    ("low=1", "high=1"),
    ("low: float = 0.0", "low: float = 0.5"),
    ('"gamma sphere"', '"gaussian noise"'),
    ('id = "my method"', 'id = "your method"'),
    ('unit="whole steps"', 'unit="all rows"'),
    ('"by rows"', '"by row"'),
    ("n > 3", "n >= 3"),
    ("n > 3 and", "n > 3 or"),
    ("n: int", "n: float"),
    ('InvalidInput("mu"', 'InvalidInput("curvature"'),
    ("(*notes, LABELS)", "(*notes,)"),
    ('f"With {n} rows."', 'f"With {n + 1} rows."'),
    ('"the last iterate"', '""'),  # whether a text is empty may decide something
    ('"too flat for it" if mu < 1', '"too flat for it" if mu < 2'),
    ("def calibrate", "@staticmethod\n    def calibrate"),
    ("ValueError", "TypeError"),
]


def of(text: str) -> str:
    return fingerprint({"small.py": text.encode()})


@pytest.mark.parametrize(("old", "new"), WORDS)
def test_a_reworded_sentence_keeps_the_fingerprint(old: str, new: str) -> None:
    assert SMALL.count(old) == 1
    assert of(SMALL.replace(old, new)) == of(SMALL)


@pytest.mark.parametrize(("old", "new"), MEANINGS)
def test_what_may_change_a_number_changes_the_fingerprint(old: str, new: str) -> None:
    assert SMALL.count(old) == 1
    assert of(SMALL.replace(old, new)) != of(SMALL)


def test_a_text_that_some_function_of_that_name_computes_with_is_code() -> None:
    twin = SMALL + "\ndef knob(default: float, label: str) -> object: ...\n"
    assert of(twin.replace('"Steps to take"', '"Number of steps"')) != of(twin)
    assert of(SMALL.replace('knob(20, "Steps to take"', 'knob(*both, "Steps to take"')) != of(
        SMALL.replace('knob(20, "Steps to take"', 'knob(*both, "Number of steps"')
    )


def test_an_annotation_of_its_own_decides_in_a_class() -> None:
    spec = SMALL + '\nclass Table:\n    label: str = "income"\n'
    assert of(spec.replace('"income"', '"age"')) != of(spec)


def test_where_a_module_stands_counts() -> None:
    assert fingerprint({"a.py": b"x = 1"}) != fingerprint({"b.py": b"x = 1"})
    assert fingerprint({"a.py": b"x = 1", "b.py": b""}) != fingerprint({"a.py": b"", "b.py": b"x = 1"})


def test_the_engine_s_own_words_are_found() -> None:
    """One change at a time in dp-gd, in memory: its help, citation and messages are words, its numbers are not."""
    name = "mechanisms/gradient/dp_gd.py"
    few = {k: v for k, v in SOURCES.items() if k.startswith(("common/", "mechanisms/"))}
    before = source.meanings(few)

    def changed(old: str, new: str) -> bool:
        text = SOURCES[name].decode()
        assert old in text
        return source.meanings(few | {name: text.replace(old, new, 1).encode()}) != before

    def text_after(place: str) -> str:
        return SOURCES[name].decode().split(place, 1)[1].split('"')[1]

    assert not changed(f'"{text_after("citation = ")}"', '"Somebody, some time ago"')
    assert not changed(f'"{text_after("guarantee = ")}"', '"Whatever it says."')
    assert changed(f'"{text_after("id = ")}"', '"another-id"')


def test_words_are_never_compared_with() -> None:
    """A text that decides something must not be declared as `Words`."""
    trees = [ast.parse(s) for s in SOURCES.values()]
    places = source.Places()
    for tree in trees:
        places.collect(tree)
    fields: dict[str, list[bool]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for line in node.body:
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                        shown = source.is_words(line.annotation)
                        fields.setdefault(line.target.id, []).append(shown)
    words = {name for name, shown in fields.items() if all(shown)}
    assert {"citation", "sensitivity_source", "conditions", "guarantee"} <= words
    compared = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in zip(SOURCES, trees, strict=True)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(isinstance(c, ast.Constant) and isinstance(c.value, str) and c.value for c in [node.left, *node.comparators])
        and any(isinstance(s, ast.Attribute) and s.attr in words for s in [node.left, *node.comparators])
    ]
    assert not compared


def test_it_is_remembered_by_the_exact_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    few = {"a.py": b"x = 1  # one"}
    calls: list[int] = []
    true = module.fingerprint

    def counted(sources: dict[str, bytes]) -> str:
        calls.append(1)
        return true(sources)

    monkeypatch.setattr(module, "fingerprint", counted)
    first = module._recalled(few)
    assert module._recalled(few) == first == true(few)
    assert len(calls) == 1
    assert module._recalled({"a.py": b"x = 1  # still one"}) == first
    assert module._recalled({"a.py": b"x = 2"}) != first
    assert len(calls) == 3
    for damaged in (b"", b"[]", b'{"a": 1}', b"\xff"):
        (tmp_path / "fingerprints.json").write_bytes(damaged)
        assert module._recalled(few) == first


def test_the_one_that_is_shipped_is_of_this_source() -> None:
    shipped = module._read(module.SHIPPED)
    of_verdicts = module._sources(module.OF_VERDICTS)
    expected = {module.exact(sources): fingerprint(sources) for sources in (SOURCES, of_verdicts)}
    assert shipped == expected, "write it anew: python -m dpviz.common.fingerprint"
    assert SOURCES.items() < of_verdicts.items()


def test_what_is_shipped_is_taken_for_the_very_source_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "SHIPPED", tmp_path / "shipped.json")
    few = {"a.py": b"x = 1  # one\ny = 2\n"}
    module.SHIPPED.write_text(f'{{"{module.exact(few)}": "0123456789ab"}}')
    assert module._recalled(few) == "0123456789ab"
    assert module._recalled({"a.py": few["a.py"].replace(b"\n", b"\r\n")}) == "0123456789ab"
    assert module._recalled({"a.py": b"x = 1\ny = 2\n"}) == fingerprint(few)
    module.SHIPPED.unlink()
    assert module._recalled(few) == fingerprint(few)


def test_a_cache_folder_that_cannot_be_used_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "file" / "cache"))
    assert module._recalled({"a.py": b"x = 1"}) == fingerprint({"a.py": b"x = 1"})


def test_code_from_outside_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "another_package.py").write_text("class Method: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from another_package import Method  # type: ignore[import-not-found]

    before = foreign_code(Method)
    assert len(before) == 13
    (tmp_path / "another_package.py").write_text("class Method: steps = 2\n")
    assert foreign_code(Method) != before
    assert foreign_code(dpviz.RunSpec) == ""
    typed = type("Typed", (), {"__module__": "__main__"})
    assert foreign_code(typed) == foreign_code(typed) != ""


def test_the_version_says_both() -> None:
    assert engine_version() == f"{dpviz.__version__}+{fingerprint(SOURCES)}"


@pytest.mark.parametrize(("text", "error"), [(b"x = 1", None), (b"x =", SyntaxError)])
def test_no_garbage_is_collected_while_source_is_read(monkeypatch: pytest.MonkeyPatch, text: bytes, error: type | None) -> None:
    """A collection in the middle of a syntax tree lets another thread make one, which ends in a SystemError in Python 3.11."""
    parse, collected = ast.parse, []

    def watched(code: bytes) -> ast.Module:
        collected.append(gc.isenabled())
        return parse(code)

    monkeypatch.setattr(source.ast, "parse", watched)
    assert gc.isenabled()
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        source.meanings({"a.py": text})
    assert collected == [False]
    assert gc.isenabled()
