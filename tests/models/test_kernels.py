"""Kernels: elementary functions, entries of rows, how they are compiled and kept."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpviz.models import products
from dpviz.models.losses import exponential, limited
from tests.models.tables import needs_kernels, pair, thin

pytestmark = needs_kernels

if products.has_kernels():
    from numba import njit

    from dpviz.models import kernels


@pytest.mark.parametrize(("kind", "reach", "error"), [(np.float32, 87, 3e-7), (np.float64, 708, 6e-16)])
def test_the_exponential_is_that_of_numpy(kind: Any, reach: float, error: float) -> None:
    @njit(fastmath={"contract"})
    def each(x: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = exponential(x[i])

    x = np.concatenate([np.linspace(-reach, reach, 40_001), np.linspace(-1, 1, 10_001)]).astype(kind)
    out = np.empty_like(x)
    each(x, out)
    expected = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(out - expected) / expected) <= error
    ends = np.empty(3, kind)
    each(np.array([np.nan, np.inf, -np.inf], kind), ends)
    assert np.isnan(ends[0]), "what is not a number stays so"
    assert ends[1] > 1e37
    assert 0 <= ends[2] < 1e-37


def test_limits_are_those_of_numpy() -> None:
    @njit
    def each(x: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = limited(x[i], np.float32(-1), np.float32(2))

    x = np.array([-3.0, -1.0, 0.0, 2.0, np.inf, -np.inf, np.nan], np.float32)
    out = np.empty_like(x)
    each(x, out)
    np.testing.assert_array_equal(out, np.clip(x, -1, 2))


@pytest.fixture
def asked_anew() -> Iterator[None]:
    products.has_kernels.cache_clear()
    yield
    products.has_kernels.cache_clear()


def test_without_numba_there_are_none(monkeypatch: pytest.MonkeyPatch, asked_anew: None) -> None:
    rows, dense = pair()
    assert products.uses_kernels(rows)
    assert not products.uses_kernels(dense)
    products.has_kernels.cache_clear()
    with monkeypatch.context() as patch:
        found = importlib.util.find_spec
        patch.setattr(products, "find_spec", lambda name: None if name == "numba" else found(name))
        assert not products.uses_kernels(rows)
    products.has_kernels.cache_clear()
    monkeypatch.setenv("DPVIZ_COMPILED", "0")
    assert not products.uses_kernels(rows)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_entries_by_row_and_by_block_are_those_of_the_rows(precision: type[np.floating]) -> None:
    x = thin().astype(precision)
    (n, d), sparse = x.shape, csr_array(x)
    rows, blocks = kernels.by_row(sparse), kernels.by_column(sparse)
    by_row, by_block = np.zeros((2, n, d), precision)
    by_row[np.repeat(np.arange(n), np.diff(rows.ends).astype(int)), rows.columns] = rows.values
    group = np.repeat(np.arange(len(blocks.ends) - 1), np.diff(blocks.ends).astype(int))
    by_block[group // d * kernels.ROWS + blocks.columns, group % d] = blocks.values
    np.testing.assert_array_equal(by_row, x)
    np.testing.assert_array_equal(by_block, x)


@pytest.mark.long
def test_compiled_code_is_kept_until_the_formula_of_a_loss_changes(tmp_path: Path) -> None:
    """A second process compiles nothing; a loss of the same name with another formula is compiled."""
    code = (
        "import sys, numpy as np\n"
        "from dpviz.models import kernels, products, rows\n"
        "from dpviz.models.losses import Logistic\n"
        "exec('class Other(Logistic):\\n @staticmethod\\n def slope_at(m, one):\\n  return m * ' + sys.argv[1])\n"
        "loss, table = Other(), rows.Rows(np.eye(200), np.ones(200))\n"
        "products.products(table, np.float64).batches(np.ones((1, 1, 200)), products.BatchIndices.join([np.arange(9)]), loss)\n"
        "kernel = kernels.compile_kernel(kernels.batches, kernels.NARROW, loss.slope_at)\n"
        "print(len(kernel.stats.cache_misses))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    misses = []
    for formula in ("one", "one", "(one + one)"):
        run = subprocess.run([sys.executable, "-c", code, formula], env=environment, capture_output=True, text=True, check=True)
        misses.append(int(run.stdout))
    assert misses == [1, 0, 1]
