"""Elements and texts of a static picture: SVG elements, and plotly's markup (b, sup, br, span) as lines of text."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, SubElement

LINE = 1.3  # heights of a line of text, in font sizes
SIGN = 0.53  # mean width of a sign, in font sizes
_STYLES = {"b": {"font-weight": "bold"}, "sup": {"baseline-shift": "super", "font-size": "70%"}}


def add(parent: Element, name: str, **attributes: object) -> Element:
    """A new element below another; numbers are rounded to a tenth of a pixel, `_` in names becomes `-`."""
    return SubElement(
        parent, name, {key.replace("_", "-"): format_number(value) for key, value in attributes.items() if value is not None}
    )


def format_number(value: object) -> str:
    """A number in pixels without needless digits; any other value as text."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass
class _Lines(HTMLParser):
    lines: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=lambda: [[]])
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.lines.append([])
        elif tag in _STYLES:
            self.open.append(tag)
        elif tag == "span":  # in a colour of its own
            self.open.append((dict(attrs).get("style") or "").partition("color:")[2])

    def handle_endtag(self, tag: str) -> None:
        if tag == "span" and self.open:
            self.open.pop()
        elif tag in self.open:
            self.open.remove(tag)

    def handle_data(self, data: str) -> None:
        self.lines[-1].append((data, tuple(self.open)))


def lines(text: str) -> list[list[tuple[str, tuple[str, ...]]]]:
    """(text, styles) of the parts of every line."""
    parser = _Lines()
    parser.feed(text)
    parser.close()
    return parser.lines


def width(text: str, size: float) -> float:
    """Pixels that the longest line takes, about."""
    return max(sum(len(part) for part, _ in line) for line in lines(text)) * SIGN * size


def height(text: str, size: float) -> float:
    """Pixels that all lines take."""
    return len(lines(text)) * LINE * size


def write(
    parent: Element,
    text: str,
    x: float,
    y: float,
    *,
    size: float,
    colour: str,
    across: str = "center",
    down: str = "middle",
    rotated: bool = False,
    paper: str | None = None,
) -> None:
    """Writes a text.

    Args:
        x, y: the place of its anchor.
        across: "left", "center" or "right": where the anchor is in the text.
        down: "top", "middle" or "bottom": the same.
        rotated: whether it is read from bottom to top; the anchor is that of the rotated text.
        paper: colour behind it.
    """
    text_lines, tall = lines(text), height(text, size)
    if rotated:
        shift = {"left": 0.0, "center": -tall / 2, "right": -tall}[across]
        anchor = {"bottom": "start", "middle": "middle", "top": "end"}[down]
        x += shift + size
        place = {"transform": f"rotate(-90 {format_number(x)} {format_number(y)})"}
    else:
        top = y - {"top": 0.0, "middle": tall / 2, "bottom": tall}[down]
        anchor = {"left": "start", "center": "middle", "right": "end"}[across]
        place = {}
        if paper is not None:
            wide = width(text, size)
            left = x - {"left": 0.0, "center": wide / 2, "right": wide}[across]
            add(parent, "rect", x=left, y=top, width=wide, height=tall, fill=paper)
        y = top + size
    made = add(parent, "text", font_size=float(size), fill=colour, text_anchor=None if anchor == "start" else anchor, **place)
    for k, line in enumerate(text_lines):
        row = add(made, "tspan", x=float(x), y=float(y + k * LINE * size))
        for part, styles in line:
            holder = row
            for style in styles:
                holder = add(holder, "tspan", **_STYLES.get(style, {"fill": style}))
            if len(holder):
                holder[-1].tail = (holder[-1].tail or "") + part
            else:
                holder.text = (holder.text or "") + part
