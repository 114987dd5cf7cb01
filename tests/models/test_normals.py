"""Normal draws for whole tables: numpy's numbers, whatever computes them."""

import sys

import numpy as np
import pytest

from dpviz.common.random import generator, spawn
from dpviz.models import kernels
from dpviz.models.normals import single_normals
from tests.models.tables import needs_kernels

MANY = 1 << 18


@needs_kernels
def test_compiled_draws_are_those_of_numpy_bit_by_bit() -> None:
    stream = spawn(3, 1)[0]
    draw, numpy_draws = single_normals(stream), generator(stream)
    for shape in ((MANY + 1, 7), (7,), (3, 5), (0,), (1,), (1_000_003,)):  # odd counts leave half a random number
        drawn, expected = draw(shape), numpy_draws.standard_normal(shape, dtype=np.float32)
        np.testing.assert_array_equal(drawn.view(np.uint32), expected.view(np.uint32))
        if len(drawn) > MANY:
            assert drawn.max() > 4, "beyond the last layer, which ends at 3.65"
            assert drawn.min() < -4


@pytest.mark.parametrize("first", [MANY - 1, MANY])
def test_a_stream_goes_on_as_it_began(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Few draws do not wait for what is compiled, and the same without numba: the numbers are the same."""
    asked: list[bool] = []
    monkeypatch.setattr(kernels, "available", lambda: bool(asked.append(True)))
    stream = spawn(5, 1)[0]
    draw, expected = single_normals(stream), generator(stream)
    for count in (first, 3, MANY):
        np.testing.assert_array_equal(draw((count,)), expected.standard_normal(count, dtype=np.float32))
    assert len(asked) == (first >= MANY)


def test_a_numba_without_tables_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda: True)
    monkeypatch.setitem(sys.modules, "dpviz.models.kernels.draws", None)  # which is an ImportError
    stream = spawn(5, 1)[0]
    expected = generator(stream).standard_normal(MANY, dtype=np.float32)
    np.testing.assert_array_equal(single_normals(stream)((MANY,)), expected)
