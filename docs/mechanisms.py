"""Writes docs/mechanisms.md from the declarations: `python docs/mechanisms.py` (or --check)."""

import sys
from pathlib import Path

import dpviz

TARGET = Path(__file__).with_suffix(".md")


def table() -> str:
    """The page as Markdown."""
    lines = [
        "# Mechanisms",
        "",
        "Written by `python docs/mechanisms.py` from what each mechanism declares. Rates are the published ones; O(·)",
        "hides constants.",
        "",
        "| id | method | family | where the noise goes | neighbours | guarantee | published rate | citation |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, cls in dpviz.list_mechanisms().items():
        rate = f"${cls.rate}$" if cls.rate else "none given"
        cells = [f"`{name}`", cls.label, cls.family, cls.noise_enters, cls.neighbouring.value, cls.guarantee, rate, cls.citation]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "## Knobs", ""]
    for name, cls in dpviz.list_mechanisms().items():
        knobs = cls.knobs()
        if not knobs:
            continue
        lines += [f"### `{name}`", "", "| knob | default | range | meaning |", "|---|---|---|---|"]
        for field, knob in knobs.items():
            default = knob.text(cls.defaults()[field])
            lines.append(f"| `{field}` | {default} | {knob.describe()} | {knob.help} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text() == table() else f"{TARGET} is out of date: run python {__file__}")
    TARGET.write_text(table())
