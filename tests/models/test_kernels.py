"""The pieces of kernels: elementary functions, tables, networks; how kernels are compiled and kept."""

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

from dpviz.models import Rows, get_model, kernels
from dpviz.models.elementary import exponential, limited
from tests.models.tables import D, labels, needs_kernels, pair, thin

pytestmark = needs_kernels

if kernels.available():
    from numba import njit

    from dpviz.models.kernels.functions import tangent
    from dpviz.models.kernels.merging import merged
    from dpviz.models.kernels.noisy_rows import in_strips
    from dpviz.models.kernels.table import SparseTable


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


def test_the_tangent_is_that_of_numpy_and_ends_are_ends() -> None:
    @njit(fastmath={"contract"})
    def each(x: Any, out: Any, ends: Any) -> None:
        for i in range(len(x)):
            out[i] = tangent(x[i])
            ends[i] = limited(x[i], np.float32(-1), np.float32(2))

    x = np.concatenate([np.linspace(-12, 12, 40_001), [0.0, 1e-20, np.inf, -np.inf, np.nan]]).astype(np.float32)
    out, ends = np.empty_like(x), np.empty_like(x)
    each(x, out, ends)
    np.testing.assert_array_max_ulp(out[:-1], np.tanh(x[:-1].astype(float)).astype(np.float32), 4)
    np.testing.assert_array_equal(ends, np.clip(x, -1, 2))
    assert np.isnan(out[-1])


@pytest.fixture
def asked_anew() -> Iterator[None]:
    kernels.available.cache_clear()
    yield
    kernels.available.cache_clear()


def test_without_numba_there_are_none(monkeypatch: pytest.MonkeyPatch, asked_anew: None) -> None:
    rows = Rows(thin(), np.ones(len(thin())))
    rows.__dict__["sparse"] = True
    with monkeypatch.context() as patch:
        found = importlib.util.find_spec
        patch.setattr("dpviz.models.kernels.find_spec", lambda name: None if name == "numba" else found(name))
        assert not kernels.available()
        assert rows.table is None
        assert rows.network_table is None
    kernels.available.cache_clear()
    with monkeypatch.context() as patch:
        patch.setenv("DPVIZ_COMPILED", "0")
        assert not kernels.available()
    kernels.available.cache_clear()
    assert rows.table is not None


def expanded(by_column: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Rows in their own columns, from rows in these and merged ones."""
    whole, d = by_column.copy(), by_column.shape[1] - len(pairs) // 2
    for p in range(len(pairs) // 2 - 1, -1, -1):
        for column in pairs[2 * p : 2 * p + 2].astype(int):
            whole[:, column] += whole[:, d + p]
    return whole[:, :d]


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_table_by_blocks_has_the_entries_of_its_rows(precision: type[np.floating]) -> None:
    table = SparseTable(thin())
    (ends, columns, values, dense, which, pairs), (starts, places, others) = table.rows(precision), table.blocks(precision)
    by_row, by_block = np.zeros((table.n, table.width)), np.zeros((table.n, table.width))
    by_row[np.repeat(np.arange(table.n), np.diff(ends.astype(int))), columns] = values
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts.astype(int)))
    by_block[group // table.width * kernels.BLOCK + places, group % table.width] = others
    np.testing.assert_array_equal(by_block, by_row)
    assert table.width == table.d + len(pairs) // 2 > table.d
    own = expanded(by_row, pairs)
    own[:, which] += dense.reshape(table.n, -1)
    np.testing.assert_array_equal(own, thin().astype(precision))


def test_columns_that_often_occur_together_are_merged() -> None:
    rng = np.random.default_rng(0)
    x = (rng.random((2000, 8)) < [0.5, 0.5, 0.5, 0.02, 0, 0.9, 0.9, 0.3]).astype(float)
    x[:, 1] = x[:, 2] = x[:, 0]  # three columns that are there together, and then one
    x[:, 5] *= 0.7  # often there with the next column, whose entries are other ones
    x[:1000] *= 0.5
    found, pairs = merged(csr_array(x))
    np.testing.assert_array_equal(expanded(found.toarray(), pairs), x)
    assert found.nnz < 0.7 * np.count_nonzero(x)
    stands_for = {8 + p: {int(a), int(b)} for p, (a, b) in enumerate(pairs.reshape(-1, 2))}
    assert {0, 1} <= stands_for[8] or {1, 2} <= stands_for[8] or {0, 2} <= stands_for[8], "the most frequent pair first"
    assert 8 in stands_for[9], "merged columns are merged again"
    assert all(5 not in pair for pair in stands_for.values())


def test_tables_with_nothing_to_merge_stay_as_they_are() -> None:
    numbers = np.random.default_rng(0).standard_normal((300, 5))
    for x in (numbers, np.eye(300), np.ones((20, 1100)), np.zeros((40, 3))):
        found, pairs = merged(csr_array(x))
        assert len(pairs) == 0
        np.testing.assert_array_equal(found.toarray(), x)


def test_noise_in_strips_is_noise_with_labels() -> None:
    noise, y = np.random.default_rng(0).standard_normal((37, 3)), labels(37)
    out = np.empty((37, 3), np.float32)
    assert in_strips(noise, y, out) is out
    signed = (noise.astype(np.float32) * y[:, None].astype(np.float32)).reshape(-1, 3)
    for first in (0, 16, 32):
        strip = signed[first : first + 16]
        np.testing.assert_array_equal(out[first : first + 16].reshape(3, -1), strip.T)
    with pytest.raises(ValueError, match="strides"):
        in_strips(noise, y, np.empty((3, 37), np.float32).T)


@pytest.mark.parametrize("units", [3, 40, 150])
@pytest.mark.parametrize("clip_norm", [np.inf, 0.4])
def test_sums_of_networks_are_those_in_double_precision(units: int, clip_norm: float) -> None:
    model, (rows, dense) = get_model(f"mlp-{units}"), pair(1500)
    theta = 0.5 * np.random.default_rng(1).standard_normal((3, model.setting(1500, D, 0.01).m))
    some = np.random.default_rng(2).integers(1500, size=700)
    for mine, others in ((rows, dense), (rows.batch(some), dense.batch(some))):
        found = model.sum_gradient(theta.astype(np.float32), mine, clip_norm=clip_norm)
        expected = model.sum_gradient(theta, others, clip_norm=clip_norm)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    with pytest.raises(IndexError):
        model.sum_gradient(theta.astype(np.float32), rows.batch(np.array([1500])), clip_norm=clip_norm)


def test_no_row_of_a_network_adds_more_than_the_clip_norm() -> None:
    model, (rows, _) = get_model("mlp-20"), pair(300)
    theta = np.random.default_rng(1).standard_normal((2, model.setting(300, D, 0.01).m)).astype(np.float32)
    lengths = [np.linalg.norm(model.sum_gradient(theta, rows.batch(np.array([i])), clip_norm=0.1), axis=1) for i in range(300)]
    assert 0.0999 < np.max(lengths) <= 0.1
    diverged = model.sum_gradient(np.full_like(theta, np.nan), rows, clip_norm=0.1)
    assert np.isnan(diverged[:, -21:]).all(), "a training that diverged is seen"


def test_compiled_code_is_kept_by_the_content_of_its_source(tmp_path: Path) -> None:
    """A second process compiles nothing, also where a file has become younger."""
    code = (
        "import numba.core.event as event, numpy as np\n"
        "seen = []\n"
        "class Count(event.Listener):\n"
        "    def on_start(self, e): seen.append(e)\n"
        "    def on_end(self, e): pass\n"
        "event.register('numba:compile', Count())\n"
        "from dpviz.models.kernels.margins import margins_of\n"
        "margins_of(16, np.float32)\n"
        "print(len(seen))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    counts = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        counts.append(int(run.stdout))
    assert counts[0] > 0
    assert counts[1] == 0
