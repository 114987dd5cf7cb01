"""Pages of tables in Markdown, section by section, so that a command renews its own sections and keeps the others."""

from pathlib import Path

START = "\n## "


def read(path: Path) -> dict[str, str]:
    """The sections of a page by their headings; none where there is no page.

    A section begins with an empty line and its heading.
    """
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {one.partition("\n")[0]: f"{START}{one.rstrip()}\n" for one in text.split(START)[1:]}


def heading(section: str) -> str:
    """
    >>> heading("\\n## Iris\\n\\ntext\\n")
    'Iris'
    """
    return section.removeprefix(START).partition("\n")[0]
