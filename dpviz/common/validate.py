"""Checks on what comes in from outside: one error type that names the field, the cause and the fix.

Numbers follow one rule everywhere. A value is taken if it is a finite number of Python, NumPy, `fractions` or `decimal`;
text is taken only where text is expected (an address, a field on a page, the command line), and only if it is written
with plain digits, as in -12, 0.5 or 1e-5.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WRITTEN: str = "Write it with plain digits, for example 12, 0.5 or 1e-5."


class InvalidInput(ValueError):
    """A value from outside that cannot be used.

    Attributes:
        field: the name of the argument, knob or column.
        cause: what is wrong with it.
        fix: what to do about it.
    """

    def __init__(self, field: str, cause: str, fix: str) -> None:
        super().__init__(f"{field}: {cause}. {fix}")
        self.field = field
        self.cause = cause
        self.fix = fix

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.field, self.cause, self.fix))

    def bare(self) -> InvalidInput:
        """The same problem to be kept: the traceback of one that was raised holds whatever its functions held."""
        return InvalidInput(self.field, self.cause, self.fix)


def show(value: object) -> str:
    """A short, printable form of any value, for use in a message.

    >>> show(1.5)
    '1.5'
    >>> show("a" * 500)[-10:]
    'aaaaaaa...'
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes out no whole number of more than 4,300 digits
        text = "a number with thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


T = TypeVar("T")


def check_instance(field: str, value: T, *kinds: type) -> T:
    """`value` if it is an object of one of the classes.

    >>> check_instance("path", "text", Decimal)
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: path: must be a Decimal, got an object of the class str. ...
    """
    if isinstance(value, kinds):
        return value
    found = type(value).__name__  # the value itself may hold rows
    some, names = (
        " or ".join(each) for each in zip(*((k.__name__, f"{k.__module__}.{k.__qualname__}") for k in kinds), strict=True)
    )
    raise InvalidInput(field, f"must be a {some}, got an object of the class {found}", f"Give one of the class {names}.")


def parse_path(field: str, value: str | os.PathLike[str]) -> Path:
    """A path from text or from an object that stands for one."""
    path = Path(value if isinstance(value, str) else check_instance(field, value, os.PathLike))
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        check_text(field, str(path))
    if "\0" in str(path):
        raise InvalidInput(field, f"{show(str(path))} is no path", "Give a path without a zero byte.")
    return path


def check_text(field: str, text: str) -> None:
    """Refuses text that no file in UTF-8 can hold.

    >>> check_text("positive", "\\ud800")
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: positive: holds half a character ('\\ud800'), which no file can hold. Write it in UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        cause = f"holds half a character ({text[error.start]!r}), which no file can hold"
        raise InvalidInput(field, cause, "Write it in UTF-8.") from error


def escape_controls(text: str) -> str:
    """Text with control characters, and marks that hide or turn text, escaped, so that no terminal obeys them.

    >>> escape_controls("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def number(field: str, value: object, *, fix: str = "Give a finite number.") -> float:
    """`value` as a finite float; text, booleans, NaN and infinities are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise InvalidInput(field, f"must be a number, got {show(value)}", fix)
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    except ValueError:  # a signalling NaN of `decimal`
        result = math.nan
    if not math.isfinite(result):
        raise InvalidInput(field, f"must be finite, got {result}", fix)
    return result


def number_from_text(field: str, text: str, *, fix: str = _WRITTEN) -> int | float:
    """The number that a person typed: an int where only digits stand there, otherwise a finite float.

    Spaces around it are allowed, and the minus sign − that the pages write. Digits of other scripts, `1_000`, `1,5`,
    `nan`, `inf` and numbers too large for a float are refused.

    >>> number_from_text("epsilon", "1e-3")
    0.001
    >>> number_from_text("epsilon", "one")
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: epsilon: must be a number, got 'one'. Write it with plain digits, ...
    """
    plain = text.strip().replace("\u2212", "-")
    if _WHOLE.fullmatch(plain):
        return int(plain)
    if len(plain) > 400 or not _NUMBER.fullmatch(plain):
        raise InvalidInput(field, f"must be a number, got {show(text)}", fix)
    return number(field, float(plain), fix=fix)


def positive(field: str, value: object, *, fix: str = "Give a number above 0.") -> float:
    """`value` as a finite float above 0.

    >>> positive("epsilon", 0)
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: epsilon: must be above 0, got 0. Give a number above 0.
    """
    result = number(field, value, fix=fix)
    if result <= 0:
        raise InvalidInput(field, f"must be above 0, got {result:g}", fix)
    return result


def check_range(field: str, value: object, low: float, high: float) -> float:
    """`value` as a float with low <= value <= high.

    >>> check_range("lam", 0.5, 0, 1)
    0.5
    """
    fix: str = f"Give a number from {low:g} to {high:g}."
    result = number(field, value, fix=fix)
    if not low <= result <= high:
        raise InvalidInput(field, f"must lie between {low:g} and {high:g}, got {result:g}", fix)
    return result


def check_integer(field: str, value: object, low: int, high: int) -> int:
    """`value` as an int with low <= value <= high; 3.0 is accepted as 3, 3.5 is not.

    >>> check_integer("seeds", 3.0, 1, 10)
    3
    >>> check_integer("seeds", 11, 1, 10)
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: seeds: must lie between 1 and 10, got 11. Give a whole number from 1 to 10.
    """
    fix: str = f"Give a whole number from {low} to {high}."
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        integer = int(value)
    else:
        as_float = number(field, value, fix=fix)
        if as_float != int(as_float):
            raise InvalidInput(field, f"must be a whole number, got {as_float:g}", fix)
        integer = int(as_float)
    if not low <= integer <= high:
        raise InvalidInput(field, f"must lie between {low} and {high}, got {show(integer)}", fix)
    return integer


def check_bool(field: str, value: object) -> bool:
    """`value` as a bool; numbers and text are refused.

    >>> check_bool("intercept", True)
    True
    """
    # numpy's own boolean is not a subclass of bool
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InvalidInput(field, f"must be true or false, got {show(value)}", "Give True or False.")


def check_choice(field: str, value: object, options: Iterable[str]) -> str:
    """`value` if it is one of `options`, otherwise an error that names the nearest one.

    >>> check_choice("model", "svm", ["logistic", "svm"])
    'svm'
    >>> check_choice("model", "tree", ["logistic", "svm"])
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: model: unknown value 'tree'. Choose one of: logistic, svm.

    An empty text among the options is not listed.
    """
    names = sorted(options)
    if isinstance(value, str) and value in names:
        return value
    near = difflib.get_close_matches(value, names, n=1) if isinstance(value, str) else []
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise InvalidInput(field, f"unknown value {show(value)}", f"{hint}Choose one of: {', '.join(filter(None, names))}.")
