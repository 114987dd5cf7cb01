"""The glossary: what a technical term means, in one or two sentences, with a source.

A new term is one more entry of `glossary.toml`. Free of streamlit. `explain` gives the help text of a sentence: the entries of
all terms that it uses.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from dpviz.common import toml


@dataclass(frozen=True)
class Entry:
    """A term.

    Attributes:
        term: as it is listed.
        text: what it means.
        source: where that is defined.
        forms: how it is written in sentences, beside the term itself; upper and lower case count as written where a form
            has a capital or is a single letter.
    """

    term: str
    text: str
    source: str
    forms: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the term in a sentence, as a word of its own and in the plural."""
        parts = []
        for form in (self.term, *self.forms):
            as_written = len(form) == 1 or form != form.lower()
            parts.append(rf"{re.escape(form)}" if as_written else rf"(?i:{re.escape(form)}(?:s|es)?)")
        return re.compile(r"(?<![\w])(?:" + "|".join(parts) + r")(?![\w])")


GLOSSARY = tuple(Entry(**entry | {"forms": tuple(entry.get("forms", ()))}) for entry in toml.declarations(__file__)["term"])


def find_terms(text: str) -> list[Entry]:
    """The entries of the terms in a sentence, in the order in which they appear; the longer of two that begin together."""
    hits = [(hit.start(), -len(hit.group()), entry) for entry in GLOSSARY if (hit := entry.pattern.search(text))]
    return [entry for _, _, entry in sorted(hits, key=lambda item: item[:2])]


def explain(*texts: str, most: int = 5) -> str | None:
    """The help text of sentences: a line for each term in them; None where there is none.

    Args:
        most: entries that are shown; ε goes first where there are more.
    """
    entries = find_terms(" ".join(texts))
    if len(entries) > most:
        entries = [entry for entry in entries if entry.term != "ε"][:most]
    return "\n\n".join(line(entry) for entry in entries) or None


def line(entry: Entry) -> str:
    """An entry as Markdown."""
    safe = entry.text.replace("|", "\\|").replace("^", "\\^")
    return f"**{entry.term}**: {safe} ({entry.source})"
