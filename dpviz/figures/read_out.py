"""The numbers of a figure as an HTML table, for readers who do not see the picture."""

import math
import re
from collections.abc import Callable, Sequence
from html import escape, unescape
from itertools import islice, repeat
from typing import Any

import plotly.graph_objects as go

MOST = 40  # rows; a reader who needs more takes the file
_TAGS = re.compile(r"<[^>]*>")


def table(figure: go.Figure, words: str) -> str:
    """One row for each point, bar or cell: its series and its values; areas and what stands without numbers are left out.

    Args:
        words: what the picture shows, the table's caption.
    """
    ticks = [_reading(figure.layout.xaxis), _reading(figure.layout.yaxis)]
    rows = [row for trace in figure.data for row in _rows(trace, *ticks)]
    three = any(len(row) == 4 for row in rows)
    heads = ["series", _title(figure.layout.xaxis) or "x", _title(figure.layout.yaxis) or "y", *(["value"] if three else [])]
    more = f" The first {MOST} of {len(rows):,} values." if len(rows) > MOST else ""
    body = "".join("<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row) + "</tr>" for row in rows[:MOST])
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    return (
        f'<div class="dpviz-read"><table><caption>{escape(words + more)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _rows(trace: Any, across: Callable[[Any], Any], upwards: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    """(series, x, y) or (series, x, y, value) of each mark; positions as the axes read them."""
    if trace.x is None or trace.y is None or getattr(trace, "fill", None):
        return []
    series = trace.name  # once: plotly looks names up slowly
    if trace.type == "heatmap":
        cells = ((x, y, trace.z[j][i]) for j, y in enumerate(trace.y) for i, x in enumerate(trace.x))
        return [(series or "", *cell) for cell in islice(cells, MOST + 1)]
    texts = trace.hovertext if isinstance(trace.hovertext, Sequence) and not isinstance(trace.hovertext, str) else repeat("")
    marks = [mark for mark in zip(texts, trace.x, trace.y, strict=False) if mark[1] is not None and mark[2] is not None]
    return [(series or name, across(x), upwards(y)) for name, x, y in marks]


def _reading(axis: Any) -> Callable[[Any], Any]:
    """The text of a position: its name on the axis, and 10^x where the names say that positions are exponents."""
    named = axis.tickvals is not None and axis.ticktext is not None and axis.type != "log"
    names = dict(zip(axis.tickvals, axis.ticktext, strict=False)) if named else {}
    exponents = len(names) > 1 and all(_is_power(name, at) for at, name in names.items())
    unit = next(iter(names.values())).partition(" ")[2] if exponents else ""
    return lambda x: names.get(x, f"{10.0**x:.4g} {unit}".strip() if exponents else x)


def _is_power(name: Any, at: Any) -> bool:
    """True where a name is the number 10^at, with or without a unit."""
    try:
        number = float(str(name).partition(" ")[0].replace(",", ""))
        return number > 0 and abs(math.log10(number) - float(at)) < 0.005
    except ValueError:
        return False


def _title(axis: Any) -> str:
    return str(axis.title.text or "")


def _text(value: Any) -> str:
    """A value in HTML: numbers with four digits, text without its markup."""
    if isinstance(value, str):
        return escape(unescape(_TAGS.sub(" ", value)).strip())
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return escape(str(value))
