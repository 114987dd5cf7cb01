"""Pictures of rows: what they show is what they were given, for any number of rows and at the edges."""

import numpy as np
import pytest
from support import assert_words

from dpviz.experiments.studies.inspected import principal_plane
from dpviz.figures.influence import WEBGL_FROM, against_truth, training_map
from dpviz.figures.rows_with_noise import MOST, noise_timeline, pictures, row_before_after, rule_histogram
from dpviz.figures.style import THEMES, Theme


@pytest.fixture
def theme() -> Theme:
    return THEMES["light"]


def points(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 2)), rng.random(n), 3 * np.arange(n) + 7


@pytest.mark.parametrize("n", [1, 500, WEBGL_FROM + 1])
def test_map_shows_every_row_once_under_its_id(n: int, theme: Theme) -> None:
    xy, influence, ids = points(n)
    with_noise = influence > 0.9
    fig = training_map(xy, influence, ids, theme, names=("a", "b"), with_noise=with_noise)
    drawn = [t for t in fig.data if t.customdata is not None]
    assert all(t.type == ("scattergl" if n > WEBGL_FROM else "scatter") for t in drawn)
    shown = np.concatenate([np.asarray(t.customdata) for t in drawn])
    assert shown.ndim == 1
    assert sorted(shown) == list(ids)
    for trace in (t for t in drawn if t.hoverinfo != "skip"):  # of many rows most are there for box and lasso alone
        assert trace.type == "scatter" or np.asarray(trace.x).dtype == np.float32
        at = (np.asarray(trace.customdata) - 7) // 3
        np.testing.assert_allclose(trace.x, xy[at, 0], rtol=1e-6)
        assert np.all(with_noise[at]) or not np.any(with_noise[at])
        assert trace.marker.symbol == ("diamond" if with_noise[at].any() else "circle")
    words = [t.name for t in fig.data if t.name]
    assert any(w == f"{int((~with_noise).sum()):,} trained without noise" for w in words) or with_noise.all()
    assert fig.layout.dragmode == "pan"


def test_map_of_a_method_that_noises_no_rows_and_a_chosen_person(theme: Theme) -> None:
    xy, influence, ids = points(30)
    chosen = ids == ids[4]
    fig = training_map(xy, influence, ids, theme, names=("<b>a", "b"), chosen=chosen)
    assert [t.name for t in fig.data if t.name] == ["30 training rows"]
    assert [note.text for note in fig.layout.annotations if "row" in note.text] == [f"<b>row {ids[4]}</b>"]
    assert list(fig.data[-1].customdata) == [ids[4]]
    assert fig.layout.xaxis.title.text == "&lt;b&gt;a"


def test_named_rows_lie_above_and_unused_ones_have_a_shape_of_their_own(theme: Theme) -> None:
    xy, influence, ids = points(40)
    noisy, used = influence > 0.7, influence > 0.4
    named = influence >= np.sort(influence)[-5]
    fig = training_map(
        xy, influence, ids, theme, names=("a", "b"), with_noise=noisy, used=used, named=named, chosen=ids == ids[0]
    )
    dots = [t for t in fig.data if t.text is not None]
    shapes = {int(row): t.marker.symbol for t in dots for row in t.customdata}
    for row, symbol in shapes.items():
        k = (row - 7) // 3
        assert symbol == ("diamond" if noisy[k] else "circle" if used[k] else "square-open")
    order = [int(row) for t in dots for row in t.customdata]
    top = {*ids[named], ids[0]}
    assert set(order[-len(top) :]) == top
    assert {note.text.strip("</b>row ") for note in fig.layout.annotations[: len(top)]} == {str(i) for i in top}


@pytest.mark.parametrize("influence", [np.zeros(5), np.full(5, 2.0), np.array([0.0, 1e-300, 1.0, 2.0, 3.0])])
def test_map_of_equal_or_vanishing_influences(influence: np.ndarray, theme: Theme) -> None:
    fig = training_map(np.zeros((5, 2)), influence, np.arange(5), theme, names=("a", "b"))
    axis = fig.layout.coloraxis
    assert axis.cmin < axis.cmax
    assert np.isfinite(np.asarray(fig.data[0].marker.color)).all()


def test_principal_plane_keeps_the_largest_variance() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((200, 5)) * [5.0, 3.0, 0.1, 0.1, 0.1]
    xy, share = principal_plane(rows)
    assert xy.dtype == np.float32
    assert share[0] > share[1] > 0
    assert sum(share) == pytest.approx(xy.var(axis=0).sum() / rows.var(axis=0).sum(), rel=1e-5)
    again, _ = principal_plane(rows[::-1])
    np.testing.assert_allclose(again[::-1], xy, atol=1e-4)
    assert principal_plane(rows[:, :1])[0].shape == (200, 2)
    assert np.isfinite(principal_plane(np.ones((10, 3)))[0]).all()


@pytest.mark.parametrize(
    ("statistic", "low", "high"),
    [
        (np.geomspace(1e-3, 1, 100), -np.inf, 0.1),
        (np.geomspace(1e-3, 1, 100), 0.01, 0.1),
        (np.geomspace(1e-3, 1, 100), -np.inf, 1e-12),
        (np.geomspace(1e-3, 1, 100), -np.inf, 1e12),
        (np.r_[np.zeros(50), np.full(50, np.inf)], -np.inf, 1.0),
        (np.zeros(100), -np.inf, np.inf),
        (np.full(100, np.inf), -np.inf, np.inf),
    ],
)
def test_histogram_counts_every_row_and_shows_the_threshold(statistic: np.ndarray, low: float, high: float, theme: Theme) -> None:
    passes = (statistic >= low) & (statistic <= high)
    fig = rule_histogram(statistic, passes, low, high, theme, label="influence")
    passed, with_noise = fig.data
    assert np.sum(passed.y) == passes.sum()
    assert np.sum(with_noise.y) == (~passes).sum()
    left, right = fig.layout.xaxis.range
    lines = [s.x0 for s in fig.layout.shapes]
    assert lines == [pytest.approx(np.log10(t)) for t in (low, high) if 0 < t < np.inf]
    assert all(left < x < right for x in lines)
    if lines and np.isfinite(statistic).all() and low == -np.inf:
        # no bar of rows that pass stands beyond the threshold, none of the others before it
        width = np.asarray(passed.width)
        x = np.asarray(passed.x)
        assert np.all((x - width / 2)[np.asarray(passed.y) > 0] < lines[0])
        assert np.all((x + width / 2)[np.asarray(with_noise.y) > 0] > lines[0])


def test_truth_scatter_names_error_and_bound(theme: Theme) -> None:
    truth = np.geomspace(0.01, 0.05, 20)
    approximate = truth * 0.98
    fig = against_truth(approximate, truth, 0.02 * truth, np.arange(20), theme, bound=0.3)
    assert_words(fig.layout.annotations[0].text, "largest error 0.001", "bound 0.3:<br>300 times that error")
    assert fig.data[0].name == "equal"
    close = against_truth(approximate, truth, 0.02 * truth, np.arange(20), theme, bound=0.002)
    assert "bound" in [t.name for t in close.data]
    still = against_truth(np.r_[0.0, 0.1], np.r_[0.0, 0.1], np.zeros(2), np.arange(2), theme)
    assert_words(still.layout.annotations[0].text, "1 rows move nothing", absent=("bound",))
    assert against_truth(np.zeros(2), np.zeros(2), np.zeros(2), np.arange(2), theme).data


@pytest.mark.parametrize("shape", [(1, 1), (10, 40)])
def test_timeline(shape: tuple[int, int], theme: Theme) -> None:
    counts = np.random.default_rng(0).poisson(5.0, shape).astype(float)
    fig = noise_timeline(counts, theme)
    line = fig.data[-1]
    np.testing.assert_allclose(line.y, counts.mean(axis=0))
    assert list(line.x) == list(range(1, shape[1] + 1))
    assert noise_timeline(np.zeros(shape), theme).layout.yaxis.range[1] > 0


def test_before_and_after_shows_what_moved_most(theme: Theme) -> None:
    before = np.zeros(40)
    after = np.arange(40) / 100
    names = [f"feature <{k}>" for k in range(40)]
    fig = row_before_after(before, after, names, theme, texts=([f"{v:g}" for v in before], [f"{v:g}" for v in after]))
    assert list(fig.data[-1].x[-3:]) == [0.37, 0.38, 0.39]
    assert len(fig.data[-1].x) == MOST
    assert fig.data[-1].customdata[-1] == "feature &lt;39&gt;: 0.39"
    own = row_before_after(before, after, names, theme, texts=(["0 years"] * 40, ["3 years"] * 40))
    assert "3 years" in own.data[-1].customdata[0]


def test_pictures_share_one_scale(theme: Theme) -> None:
    before = np.arange(64.0).reshape(8, 8)
    fig = pictures(before, before + 5, theme)
    z = np.asarray(fig.data[0].z)
    assert z.shape == (8, 17)
    np.testing.assert_allclose(z[::-1][:, :8], before)
    assert (fig.data[0].zmin, fig.data[0].zmax) == (0, 68)
    # strong noise is cut off, so that the row does not turn into one grey
    loud = pictures(before, 100 * (before - 30), theme).data[0]
    assert (loud.zmin, loud.zmax) == (-63, 126)
    assert pictures(np.ones((2, 2)), np.ones((2, 2)), theme).data
