"""Delimiters of columns, and tables whose columns are separated by white space."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

WHITE_SPACE = " "
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", WHITE_SPACE: "white space"}
_BEGINNING = 200_000  # characters
_LINES = 50
NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
_QUOTED_OR_BLANK = re.compile(r'("(?:[^"]|"")*")|[ \t]+')


def find_delimiter(text: str) -> str:
    """The sign that cuts all first lines into equally many values; comma where none does.

    A semicolon, tab or bar goes before the comma where every comma is then inside a number: those are decimal commas.
    White space is taken where no sign cuts the lines, or where it cuts them into numbers with commas.
    """
    lines = [line for line in text.lstrip("\n")[:_BEGINNING].split("\n")[:_LINES] if line.strip() and not is_remark(line)]
    best, best_rank = ",", (False, False, 1)
    for candidate in DELIMITERS:
        if candidate == WHITE_SPACE:
            continue
        try:
            rows = list(csv.reader(lines, delimiter=candidate, skipinitialspace=True))
        except csv.Error:
            continue
        widths = Counter(map(len, rows))
        width = widths.most_common(1)[0][0] if widths else 0
        if width < 2:
            continue
        with_comma = [cell for row in rows for cell in row if "," in cell]
        decimal = candidate != "," and bool(with_comma) and all(NUMBER.fullmatch(cell.strip()) for cell in with_comma)
        rank = (len(widths) == 1, decimal, width)
        if rank > best_rank:
            best, best_rank = candidate, rank
    blank = [tabs(line).split("\t") for line in lines]
    first, *others = map(len, blank or [[]])
    # R writes one name less than values, as its names of rows have none
    even = len({first, *others}) == 1 < first or (len(set(others)) == 1 and others[0] == first + 1 > 2)
    if even and (best_rank[2] == 1 or all(NUMBER.fullmatch(cell) for row in blank[1:] for cell in row)):
        return WHITE_SPACE
    return best


def is_remark(line: str) -> bool:
    """True where a line is a remark: it begins with "#", "%" or, as the first line of adult.test, with its only "|"."""
    start = line.lstrip()
    return start.startswith(("#", "%")) or (start.startswith("|") and start.count("|") == 1)


def join_words(words: Sequence[str], between: str) -> str:
    """Words with a separator between them; one that holds it stands in quotation marks, as in CSV."""
    text = io.StringIO()
    csv.writer(text, delimiter=between, lineterminator="").writerow(words)
    return text.getvalue()


def tabs(text: str) -> str:
    """Lines whose values are separated by any number of blanks or tabs, with one tab between values."""
    stripped = re.sub(r"(?m)^[ \t]+|[ \t]+$", "", text)
    if '"' not in stripped:
        return re.sub(r"[ \t]+", "\t", stripped)
    return _QUOTED_OR_BLANK.sub(lambda match: match[1] or "\t", stripped)
