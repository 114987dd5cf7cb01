"""Numbers as people write them: 12.5 %, $1,234.50, 1.234,50, 1 234 567. Read only where no other reading is possible."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_SIGN = "[-+]?"
#: pattern, what is kept of it, what is removed
_UNITS: tuple[tuple[str, str, str], ...] = (
    (r"^([-+]?[0-9].*[0-9]|[-+]?[0-9])\s?%$", r"\1", "Percent signs"),
    (r"^([-+]?)\s?[$€£]\s?([-+]?[0-9].*)$", r"\1\2", "Currency signs"),
    (r"^([-+]?[0-9].*[0-9]|[-+]?[0-9])\s?[$€£]$", r"\1", "Currency signs"),
)


_POINT, _COMMA = r"(\.[0-9]+)", "(,[0-9]+)"


@dataclass(frozen=True)
class _Style:
    """A way of writing numbers.

    Attributes:
        change: what was done, after the name of the column and an example.
        every: pattern of all such numbers.
        sure: pattern of those that are no numbers in any other way; one must be there.
        removed: pattern of what is removed.
        point: what stands for the decimal point.
    """

    change: str
    every: str
    sure: str
    removed: str = ""
    point: str = "."


def _thousands(mark: str, point: str) -> tuple[str, str]:
    groups = rf"[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})"
    return rf"^{_SIGN}({groups}+|[0-9]{{1,3}}){point}?$", rf"^{_SIGN}({groups}+{point}|{groups}{{2,}})$"


_THOUSANDS: str = "read without thousands separators"
_SPACE = r"[ '’\x{00A0}\x{202F}]"
_STYLES = (
    _Style(_THOUSANDS, *_thousands(",", _POINT), removed=","),
    _Style(_THOUSANDS, *_thousands(r"\.", _COMMA), removed=r"\.", point=","),
    _Style(_THOUSANDS, _thousands(_SPACE, r"([.,][0-9]+)")[0], _SPACE, removed=_SPACE, point=","),
    _Style("read with decimal commas", rf"^{_SIGN}[0-9]+{_COMMA}?$", r"^[-+]?(0|[0-9]{4,}),|,([0-9]{1,2}|[0-9]{4,})$", point=","),
)


def plain(name: str, cells: pa.ChunkedArray, notes: list[str]) -> pa.ChunkedArray:
    """The cells of a column with digits and a decimal point only, where all of them can be read so; else as they are.

    Args:
        cells: texts without spaces around them, null for gaps.
        notes: what was removed is added, with an example.
    """
    before = cells
    messages: list[str] = []
    for pattern, kept, what in _UNITS:
        if _all(cells, pattern):
            messages.append(f"{what} in {name}, as in {_first(cells, pattern)}, were removed.")
            cells = pc.replace_substring_regex(cells, pattern, kept)
            break
    for style in _STYLES:
        example = _first(cells, style.sure) if _all(cells, style.every) else None
        if example is not None:
            messages.append(f"Numbers in {name}, such as {example}, were {style.change}.")
            if style.removed:
                cells = pc.replace_substring_regex(cells, style.removed, "")
            cells = pc.replace_substring(cells, style.point, ".")
            break
    if not messages or not _all(cells, rf"^{_SIGN}[0-9]+(\.[0-9]*)?$"):
        return before
    notes.extend(messages)
    return cells


def _all(cells: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _first(cells: pa.ChunkedArray, pattern: str) -> str | None:
    matching = cells.filter(pc.fill_null(pc.match_substring_regex(cells, pattern), False))
    return str(matching[0].as_py()) if len(matching) else None
