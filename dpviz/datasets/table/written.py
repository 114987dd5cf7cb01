"""Numbers as people write them: 12.5 %, $1,234.50, 1.234,50, 1 234 567. Read only where no other reading is possible."""

import pyarrow as pa
import pyarrow.compute as pc

_SIGN = "[-+]?"
_POINT, _COMMA = r"(\.[0-9]+)", "(,[0-9]+)"
_SPACE = r"[ '’\x{00A0}\x{202F}]"
#: pattern, what is kept of it, what is removed
_UNITS = (
    (r"^([-+]?[0-9].*[0-9]|[-+]?[0-9])\s?%$", r"\1", "Percent signs"),
    (r"^([-+]?)\s?[$€£]\s?([-+]?[0-9].*)$", r"\1\2", "Currency signs"),
    (r"^([-+]?[0-9].*[0-9]|[-+]?[0-9])\s?[$€£]$", r"\1", "Currency signs"),
)


def _thousands(mark: str, point: str) -> tuple[str, str]:
    """(pattern of all numbers with or without these groups of three, of those that are no numbers in any other way)."""
    groups = rf"[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})"
    return rf"^{_SIGN}({groups}+|[0-9]{{1,3}}){point}?$", rf"^{_SIGN}({groups}+{point}|{groups}{{2,}})$"


_GROUPED: str = "read without thousands separators"
#: ways of writing numbers: pattern of all of them, of those that are sure (one must be there), what is removed, the point, words
_STYLES = (
    (*_thousands(",", _POINT), ",", ".", _GROUPED),
    (*_thousands(r"\.", _COMMA), r"\.", ",", _GROUPED),
    (_thousands(_SPACE, r"([.,][0-9]+)")[0], _SPACE, _SPACE, ",", _GROUPED),
    (rf"^{_SIGN}[0-9]+{_COMMA}?$", r"^[-+]?(0|[0-9]{4,}),|,([0-9]{1,2}|[0-9]{4,})$", "", ",", "read with decimal commas"),
)


def plain_numbers(name: str, cells: pa.ChunkedArray, notes: list[str]) -> pa.ChunkedArray:
    """The cells of a column with digits and a decimal point only, where all of them can be read so; else as they are.

    Args:
        cells: texts without spaces around them, null for gaps.
        notes: what was removed is added, with an example.
    """
    before, messages = cells, list[str]()
    for pattern, kept, what in _UNITS:
        if not messages and matches(cells, pattern):
            messages.append(f"{what} in {name}, as in {first_match(cells, pattern)}, were removed.")
            cells = pc.replace_substring_regex(cells, pattern, kept)
    for every, sure, removed, point, change in _STYLES:
        example = first_match(cells, sure) if matches(cells, every) else None
        if example is not None:
            messages.append(f"Numbers in {name}, such as {example}, were {change}.")
            cells = pc.replace_substring(pc.replace_substring_regex(cells, removed, "") if removed else cells, point, ".")
            break
    if not messages or not matches(cells, rf"^{_SIGN}[0-9]+(\.[0-9]*)?$"):
        return before
    notes.extend(messages)
    return cells


def matches(cells: pa.ChunkedArray, pattern: str) -> bool:
    """True where all cells that are no gaps match a pattern."""
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def first_match(cells: pa.ChunkedArray, pattern: str) -> str | None:
    """The first cell that matches a pattern, None where none does."""
    matching = cells.filter(pc.fill_null(pc.match_substring_regex(cells, pattern), False))
    return str(matching[0].as_py()) if len(matching) else None
