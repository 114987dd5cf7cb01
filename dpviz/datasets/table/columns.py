"""One column at a time: whether it can be a feature, what its values are, and how they become numbers in [0, 1]."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.digits import counted
from dpviz.common.validate import InvalidInput, number, show
from dpviz.datasets.table.cell_text import MISSING, is_number

_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([ T].*)?|\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[ap]m)?"
    rf"|\d{{1,2}}[-. ]*{_MONTH}[-., ]*\d{{2,4}}|{_MONTH}[. ]*\d{{1,2}},? *\d{{4}}",
    re.IGNORECASE,
)
NUMBER_TEXT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
HEX = re.compile(r"[-+]?0x[0-9a-f]+", re.IGNORECASE)
#: thousands separators, currencies, percent, other minus signs, other digits: a number to people and to no program
_UNIT = r"(?:[%‰$€£¥₹]|[A-Z]{3})?"
_WRITTEN = re.compile(rf"[-+−(]?{_UNIT}\s*[-−]?(?:\d{{1,3}}(?:[,.'’_\s]\d{{3}})+|\d+)(?:[.,]\d+)?\s*{_UNIT}\)?")
_AMOUNT = r"[$€£]?\s*\d[\d.,]*\s*[%kKmM€£$]?"
#: an interval of numbers, such as 30%-<36%, >60%, 10+ or 25 to 34
_BAND = re.compile(rf"(?:[<>≤≥]=?\s*{_AMOUNT}|{_AMOUNT}\s*(?:\+|(?:-|–|to)\s*[<>≤≥]?=?\s*{_AMOUNT}))")
SAME: str = "has the same value in every row"
MANY_LEVELS = 100
FEW_LEVELS = 20
#: share of gaps above which a column is not used by default
MANY_GAPS = 0.1
#: names of numbers that count rows, where nearly all values differ
_NAME_OF_NUMBER = re.compile(r"(^|[\W_])(ids?|no|nr|num|number|key|index|code|rowid|uuid)([\W_]|$)|^unnamed|[a-z](ID|Id|Nr|No)$")
_SOMEBODY = (
    "person|people|patient|subject|user|customer|client|member|account|household|student|employee|respondent|participant|"
    "individual|driver|policyholder|borrower|applicant"
)
#: names of identifiers, whose values may repeat: patient_id, customerID, person, account no; not amount_paid, nor citric acid
_NAME_OF_ID = re.compile(rf"(?i:(^|.*[\W_])(id|uuid)|({_SOMEBODY})s?([\W_]?(id|no|nr|number|key|code))?)|.*[a-z](ID|Id)")
_DIFFERENT, _LARGE = 0.9, 100_000
_ENOUGH, _ENOUGH_WITHOUT_NAME = 20, 100  # rows


def word(value: object) -> str:
    """A value as text, the same for 1, 1.0 and "1"; different numbers never get the same text."""
    if isinstance(value, float | np.floating):
        as_float = float(value)
        return str(int(as_float)) if as_float.is_integer() and abs(as_float) < 1e15 else repr(as_float)
    return str(value)


def obstacle(series: pd.Series, *, declared: bool) -> str | None:
    """The reason for which a column cannot be a feature as it is, or None.

    Args:
        declared: whether its categories are declared, so that nothing needs to be guessed from the values.
    """
    present = series.dropna()
    if present.empty:
        return "has no values"
    values = pd.unique(present)
    if len(values) == 1 and not series.isna().any():
        return SAME
    if is_number(series) or declared:
        return None
    texts = [str(v) for v in values]
    if all(_DATE.fullmatch(text) for text in texts[:200]):
        return "holds dates or times; turn them into numbers, such as an age in years"
    if len(texts) > FEW_LEVELS:
        odd = odd_texts(texts, NUMBER_TEXT)
        if odd and any(map(_BAND.fullmatch, odd)) and len(texts) <= MANY_LEVELS:
            return None
        if odd:
            row = int((series == odd[0]).to_numpy().argmax()) + 1
            example: str = f"{len(odd):,} texts such as {show(odd[0])} in row {row:,}"
            return f"holds numbers, but also {example}; correct those, or say that they are gaps"
        if odd is not None:
            return f"holds whole numbers of many digits such as {show(texts[0])}, like an identifier"
        if odd_texts(texts, _WRITTEN) is not None:
            marked = next(text for text in texts if _WRITTEN.fullmatch(text) and not NUMBER_TEXT.fullmatch(text))
            row = int((series == marked).to_numpy().argmax()) + 1
            return f"holds numbers with other signs, such as {show(marked)} in row {row:,}; write digits and a decimal point only"
    if len(texts) > max(MANY_LEVELS, 0.5 * len(present)):
        return f"has {len(texts):,} different texts, like a name or an identifier"
    return None


def objection(series: pd.Series) -> str | None:
    """The reason for which a column that can be a feature is left out by default, or None."""
    gaps = int(series.isna().sum())
    like = _like_identifier(series)
    if like is None and is_identifier(series):
        like = f"holds {series.nunique():,} different values in {series.notna().sum():,} rows and is named like an identifier"
    if like:
        return like
    if gaps > MANY_GAPS * len(series):
        return f"has gaps in {gaps:,} of {len(series):,} rows, which would be dropped"
    return None


def is_identifier(series: pd.Series) -> bool:
    """True where a column has the name of an identifier, and more different values than a feature has, though some may repeat."""
    if _NAME_OF_ID.fullmatch(str(series.name)) is None:
        return False
    if is_number(series) and not (series.dropna() == np.floor(series.dropna())).all():
        return False
    return series.nunique() > max(FEW_LEVELS, 0.05 * series.notna().sum())


def first_names(names: Sequence[str], most: int = 6) -> str:
    """The first names of a list, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _like_identifier(series: pd.Series) -> str | None:
    """Whole numbers that nearly all differ, and are named, counted or have as many digits as an identifier."""
    if not is_number(series):
        return None
    values = series.dropna().to_numpy(dtype=np.float64)
    if len(values) < _ENOUGH or (values < 0).any() or (values != np.floor(values)).any():
        return None
    different = np.unique(values)
    if len(different) < _DIFFERENT * len(values):
        return None
    start = f"holds {len(different):,} different whole numbers in {len(values):,} rows"
    if _NAME_OF_NUMBER.search(str(series.name)) or _NAME_OF_NUMBER.search(str(series.name).lower()):
        return f"{start} and is named like an identifier"
    if len(values) < _ENOUGH_WITHOUT_NAME:
        return None
    if len(different) == len(values) and different[-1] - different[0] < 1.5 * len(series):
        return f"{start}, counted like an identifier"
    if np.median(different) >= _LARGE and (different % 10 == 0).mean() < 0.3:  # amounts are round more often
        return f"{start}, with as many digits as an identifier"
    return None


def odd_texts(texts: list[str], pattern: re.Pattern[str]) -> list[str] | None:
    """Texts that do not match, where most do; None where most do not."""
    some = texts[:: 1 + len(texts) // 1000]  # a table can hold a million different texts
    if sum(pattern.fullmatch(text) is not None for text in some) <= 0.4 * len(some):
        return None
    odd = [text for text in texts if not pattern.fullmatch(text)]
    return odd if len(odd) < 0.5 * len(texts) else None


def classes(series: pd.Series) -> dict[str, int]:
    """Label values as text, with their counts, most frequent first."""
    counts = series.value_counts(dropna=True)
    return {word(v): int(c) for v, c in counts.items() if c}


def gap_hint(target: str, counts: Mapping[str, int]) -> str:
    """Advice where one of the label's values may stand for a gap, with a space before it; "" where none does."""
    gap = next((value for value in MISSING if value in counts), None)
    if gap is None:
        return ""
    return f" If {show(gap)} ({counts[gap]:,} rows) is a gap in {target}, say so."


def positives(
    series: pd.Series, target: str, positive: Sequence[str], above: float | None, notes: list[str]
) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """(labels in {-1, +1}, words for them) of a column without gaps."""
    if above is not None:
        if not is_number(series):
            raise InvalidInput("above", f"{target!r} holds text", "Say which values count as +1.")
        if positive:
            raise InvalidInput("above", "is given together with positive values", "Give one of them.")
        hit = series.to_numpy() > number("above", above)
        if hit.all() or not hit.any():
            side = "above" if hit.all() else "at or below"
            raise InvalidInput("above", f"every value of {target!r} is {side} {above:g}", "Choose a value in between.")
        return np.where(hit, 1.0, -1.0), (f"at most {above:g}", f"above {above:g}")
    counts = classes(series)
    if len(counts) < 2:
        raise InvalidInput(
            "target", f"{target!r} takes one value only ({show(next(iter(counts)))})", "Choose a label with two values."
        )
    if len({value.casefold() for value in counts}) < len(counts):
        notes.append(f"Values of {target} that differ only in upper and lower case count as different.")
    some = ", ".join(show(v) for v in list(counts)[:6]) + (", ..." if len(counts) > 6 else "")
    chosen = tuple(positive)
    if not chosen:
        if len(counts) > 2:
            more = " or give a value above which rows count as +1" if is_number(series) else ""
            hint = gap_hint(target, counts)
            raise InvalidInput(
                "positive", f"{target!r} takes {len(counts):,} values ({some})", f"Say which of them count as +1{more}.{hint}"
            )
        chosen = (sorted(counts)[1],)
    for value in chosen:
        if value not in counts:
            raise InvalidInput("positive", f"{target!r} never takes the value {show(value)}", f"Choose among: {some}.")
    words = series.map(word)
    hit = words.isin(chosen).to_numpy()
    if hit.all():
        raise InvalidInput("positive", "every row would count as +1", "Leave at least one value for -1.")
    rest = [v for v in counts if v not in chosen]
    names = (rest[0] if len(rest) == 1 else "other", " or ".join(chosen)[:60])
    if len(counts) > 2:
        notes.append(f"{names[1]} counts as +1, and {counted(len(rest), 'other value')} as -1.")
    return np.where(hit, 1.0, -1.0), names
