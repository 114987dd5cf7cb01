"""Numbers that are kept from version to version: what of a value is kept, and when two of them are the same."""

import contextlib
import dataclasses
import io
import json
import math
import re
import shlex
import zlib
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.cli.main import main
from dpviz.cli.progress import Bar
from dpviz.common.progress import Monitor
from dpviz.common.threads import one_thread
from dpviz.common.validate import InvalidInput
from dpviz.figures.svg import picture
from dpviz.privacy.noise import Noise

#: relative to the largest number of an array: sums in single precision differ by up to 2e-6 of it on other processors, and a
#: small coordinate by more of itself
PRECISION = 1e-6
LONG = 12  # numbers of an array that are kept one by one; of longer ones, two weighted sums

Numbers = list[Any]
_NUMBER = re.compile(r"(?<![\w#.+/])[-−]?\d{1,12}(?:,\d{3}\b){0,3}(?:\.\d+)?(?:e[-+]\d\d)?(?![\w+/=])")
_WORD = re.compile(r'"bdata":"[^"]*"|(#[0-9a-f]{6}\b|[^\W\d_]{2,})')  # not those of arrays in base 64
_LISTED = re.compile(r"rgba?\(.*?\)|\[[^\[\]]*\]")  # a colour, or an array in JSON: commas stand between numbers there


def numbers_in(text: str) -> list[float]:
    """The numbers in a text, however it is worded, and in the parts of a picture."""
    text = _LISTED.sub(lambda part: part[0].replace(",", " "), text)
    return [float(number.replace("−", "-").replace(",", "")) for number in _NUMBER.findall(text)]


def words(text: str) -> int:
    """A sum over the words and colours of a text that is another one for other words."""
    return zlib.crc32(" ".join(_WORD.findall(text)).encode())


def numbers(value: Any) -> Numbers:
    """All numbers and names in a value, in order; no sentences."""
    if isinstance(value, bool | np.bool_):
        return [bool(value)]
    if value is None or isinstance(value, Enum):
        return [None if value is None else value.value]
    if isinstance(value, int | float | np.integer | np.floating):
        return [_short(float(value))]
    if isinstance(value, str):
        return [value] if " " not in value else []
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, pd.DataFrame):
        return [x for name in value for x in [str(name), *numbers(value[name].to_numpy())]]
    if isinstance(value, Mapping):
        return [x for name in value for x in [str(name), *numbers(value[name])]]
    if isinstance(value, Noise):
        return [value.id]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [
            getattr(value, f.name) for f in dataclasses.fields(value) if not f.name.startswith("preparation_")
        ]  # a run's own
        return [x for field in fields if field is not None for x in numbers(field)]
    if isinstance(value, list | tuple):
        if len(value) > LONG and all(isinstance(each, float) for each in value):
            return _of_array(np.array(value))
        return [len(value), *(x for each in value for x in numbers(each))]
    raise TypeError(f"nothing is kept of {value!r}")


def _short(value: float) -> float | str:
    return float(f"{value:.8g}") if math.isfinite(value) else repr(value)


def _of_array(values: np.ndarray) -> Numbers:
    if values.dtype.kind in "OUS":
        return [x for value in values.ravel().tolist() for x in numbers(value)]
    flat = np.nan_to_num(values.ravel().astype(float), nan=-7.0, posinf=1e30, neginf=-1e30)
    if len(flat) <= LONG:
        return [list(values.shape), *(_short(float(x)) for x in flat)]
    weights = 1 + np.cos(np.arange(len(flat)))
    return [list(values.shape), _short(float(weights @ flat)), _short(float(weights @ np.abs(flat) ** 1.5))]


def shares(compute: Callable[[Monitor], Any]) -> list[float]:
    """All that a computation tells its monitor; by one thread, whose order is always the same."""
    seen: list[float] = []
    with one_thread(when=True):
        compute(seen.append)
    return seen


def progress(compute: Callable[[Monitor], Any]) -> Numbers:
    """What a computation tells its monitor: whether it is more than one share, the largest, whether they rise, and each."""
    seen = np.round(shares(compute), 6).tolist()
    return [len(seen) > 1, max(seen), seen == sorted(seen), np.unique(seen)]


def kept_or_refused(compute: Callable[[], Any]) -> Numbers:
    """The numbers, or the field that is refused."""
    try:
        return numbers(compute())
    except InvalidInput as refused:
        return ["refused", refused.field]


def refusal(compute: Callable[[], Any]) -> str:
    """What is said of a value that is refused; "" of others."""
    try:
        compute()
    except (InvalidInput, TypeError) as refused:  # the second: a hyperparameter that is declared wrongly
        return str(refused)
    return ""


def same(one: Any, other: Any, near: float = 1e-10) -> bool:
    """True where two kept values agree to the precision.

    Args:
        near: numbers this close are the same, whatever their size.
    """
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, _near(other)))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=PRECISION, abs_tol=near)
    return bool(one == other)


def _near(values: Numbers) -> list[float]:
    """What `same` calls near, for each value: in an array of which each number is kept, by the largest of them."""
    near = [1e-10] * len(values)
    for start, shape in enumerate(values, 1):
        if isinstance(shape, list) and all(type(length) is int for length in shape) and math.prod(shape) <= LONG:
            array = values[start : start + math.prod(shape)]
            if array and all(isinstance(x, float) for x in array):
                near[start : start + len(array)] = [max(1e-10, PRECISION * max(map(abs, array)))] * len(array)
    return near


def answer(command: str) -> Any:
    """What a command prints beside `kept_table.csv`: its document without the version, or its lines; words, and progress."""
    seen = list[float]()
    streams = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    progress = mock.patch.object(Bar, "__call__", lambda _, share: seen.append(share))
    with contextlib.chdir(Path(__file__).parent), streams[0] as out, streams[1] as remarks, progress:
        assert main(shlex.split(command)) == 0
    # without names that are drawn, times, and the engine's hash
    texts = [
        re.sub(r"(?<=rows)-[0-9a-f]{16}|\d\.\d s\b|(?<=\+)[0-9a-f]{12}\b", "", stream.getvalue()) for stream in (out, remarks)
    ]
    if "--json" in command:
        found = {key: value for key, value in json.loads(texts[0]).items() if key != "version"}
        return found | {"progress": bool(seen), "words": words(json.dumps(found)), "lines": len(texts[0].splitlines())}
    return [bool(seen), *([words(line), *numbers_in(line)] for line in "".join(texts).splitlines())]


def view(draw: Callable[..., object], *given: Any, **session: Any) -> str:
    """The elements that a function draws, and the session's state afterwards."""
    queue = mock.Mock(return_value=st.container())
    with mock.patch.object(st.delta_generator.DeltaGenerator, "_enqueue", queue), mock.patch.object(st, "session_state", session):
        draw(*given)
    text = f"{[f'{kind} {proto}' for kind, proto, *_ in (call.args for call in queue.call_args_list)]} {session}"
    return re.sub(r"\d+\.\d{6,}", lambda long: f"{float(long[0]):.6g}", re.sub(r"\s+|\$\$ID-\w+-", " ", text))


def drawn(figure: Any) -> list[Any]:
    """The numbers of a figure and of its drawing, in twelve parts, and their words and colours."""
    return [*np.array_split(numbers_in(text := figure.to_json() + picture(figure, "name")), 12), words(text)]
