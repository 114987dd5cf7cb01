"""Ways into the unit ball: every one keeps |x| <= 1, and only "largest" reads anything from other rows."""

import numpy as np
import pytest
from support_tables import GOOD, made

import dpviz
from dpviz.datasets.base import LARGEST, Dataset
from dpviz.datasets.table.encoding import SCALINGS
from dpviz.datasets.table.lost import Lost
from dpviz.datasets.table.scaling_loss import MOST
from dpviz.datasets.table.spec import TableSpec
from dpviz.datasets.table.units import Units
from dpviz.experiments.run.setup import setup_for


def raw(dataset: Dataset) -> np.ndarray:
    """(n, d) rows before they were brought into the ball, from those of unit length."""
    return dataset.X * dataset.norms[:, None]


@pytest.mark.parametrize("name", ["breast-cancer", "census-300", "iris"])
def test_every_scaling_is_what_it_says(name: str) -> None:
    unit = dpviz.load_dataset(name, intercept=False)
    x = raw(unit)
    norms = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(np.linalg.norm(unit.X, axis=1)[norms > 0], 1.0)
    clipped = dpviz.load_dataset(name, intercept=False, scaling="clip")
    np.testing.assert_allclose(clipped.X, x / np.maximum(1, norms)[:, None], atol=1e-14)
    largest = dpviz.load_dataset(name, intercept=False, scaling="largest")
    np.testing.assert_allclose(largest.X, x / norms.max(), atol=1e-14)
    bound = dpviz.load_dataset(name, intercept=False, scaling="bound")
    np.testing.assert_allclose(bound.X, x / np.sqrt(unit.frame.shape[1] - 1), atol=1e-14)
    centred = dpviz.load_dataset(name, intercept=False, scaling="centred")
    numbers = np.array([feature in unit.frame for feature in unit.feature_names])
    assert numbers.sum() >= 3
    z = np.where(numbers, 2 * x - 1, x) * 2 / np.sqrt(unit.frame.shape[1] - 1)
    np.testing.assert_allclose(centred.X, z / np.maximum(1, np.linalg.norm(z, axis=1))[:, None], atol=1e-14)
    np.testing.assert_allclose(centred.encoder.rows(unit.frame), centred.X, atol=1e-12)
    for other in ("unit", "clip", "bound", "largest"):
        back = centred.scaled(other)
        np.testing.assert_allclose(back.X, dpviz.load_dataset(name, intercept=False, scaling=other).X, atol=1e-12)
    hashes = {d.sha256 for d in (unit, clipped, largest, bound)}
    assert len(hashes) == 4 - (name == "census-300"), "one-hot columns make every row longer than 1: clipping gives unit length"
    for dataset in (unit, clipped, largest, bound, centred):
        assert np.linalg.norm(dataset.X, axis=1).max() <= 1 + 1e-12
    assert LARGEST in largest.looked_at
    assert LARGEST not in (*unit.looked_at, *clipped.looked_at, *bound.looked_at, *centred.looked_at)
    assert any("largest norm" in note for note in largest.notes)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_the_constant_feature_stays_and_units_are_found_again(scaling: str) -> None:
    dataset = dpviz.load_dataset("breast-cancer", scaling=scaling)
    np.testing.assert_allclose(dataset.X[:, -1], np.sqrt(0.5))
    assert np.linalg.norm(dataset.X, axis=1).max() <= 1 + 1e-12
    back = Units(dataset).read(7, dataset.X[7])
    assert back[0] == f"{dataset.frame.iloc[7, 0]:.4g}"


def test_one_row_changes_other_rows_with_the_largest_norm_only() -> None:
    spec = TableSpec("label", ranges={"age": (0.0, 50.0)}, categories={"job": ("a", "b", "c")})
    before = made(GOOD, spec)
    after = made(GOOD.replace(b"39,", b"0,"), spec)
    assert before.dataset.norms is not None
    for scaling, same in (("unit", True), ("clip", True), ("bound", True), ("centred", True), ("largest", False)):
        others = [d.dataset.scaled(scaling).X[:-1] for d in (before, after)]
        assert np.array_equal(*others) is same


def test_a_set_inside_the_ball_stays_as_it_is() -> None:
    plain = dpviz.load_dataset("teaching")
    assert dpviz.load_dataset("teaching", scaling="clip").sha256 == plain.sha256
    with pytest.raises(dpviz.InvalidInput, match="scaling: unknown value 'none'"):
        dpviz.load_dataset("iris", scaling="none")


def test_automatic_scaling_is_centred_where_ranges_are_known() -> None:
    assert setup_for(dpviz.RunSpec("census-300", lam=0.1)).dataset.scaling == "centred"
    assert setup_for(dpviz.RunSpec("teaching", lam=0.1)).dataset is dpviz.load_dataset("teaching"), "inside the ball already"
    automatic = dpviz.load_dataset("census-300", scaling="automatic")
    assert automatic.sha256 == dpviz.load_dataset("census-300", scaling="centred").sha256


def lost_by_scaling(dataset: Dataset) -> list[Lost]:
    return [one for one in dataset.lost if one.kind == "lengths"]


@pytest.mark.parametrize("intercept", [True, False])
def test_one_number_becomes_a_constant_and_that_is_said(intercept: bool) -> None:
    x = np.linspace(3, 7, 200)
    rows = dpviz.dataset(x[:, None], x > 5)
    unit = dpviz.load_dataset(rows.name, intercept=intercept)
    assert "the only feature becomes a constant" in lost_by_scaling(unit)[0].sentence
    assert "Row scaling “bound” keeps all" in lost_by_scaling(unit)[0].sentence
    assert lost_by_scaling(unit)[0].sentence in unit.cautions, "on every page"
    for scaling in ("clip", "bound", "largest"):
        kept = dpviz.load_dataset(rows.name, intercept=intercept, scaling=scaling)
        assert not lost_by_scaling(kept)
        assert not kept.cautions
        assert kept.scaled("unit").lost == unit.lost


def test_the_share_of_lost_lengths_follows_what_a_linear_model_can_see() -> None:
    rng = np.random.default_rng(0)
    shares = []
    for columns in (2, 5, 40):
        x = rng.uniform(size=(400, columns))
        unit = dpviz.dataset(x, x[:, 0] > 0.5, ranges=(0, 1))
        shares.append(sum(one.share for one in lost_by_scaling(unit)))
        assert shares[-1] < MOST or unit.cautions
        assert not lost_by_scaling(unit.scaled("bound"))
    assert shares == sorted(shares, reverse=True)
    assert 0.3 < shares[0] < 0.6
    assert shares[-1] == 0.0, "with many columns all rows are about as long"
    same = np.repeat(rng.uniform(0.2, 1, 400)[:, None], 3, axis=1)
    assert lost_by_scaling(dpviz.dataset(same, same[:, 0] > 0.5, ranges=(0, 1)))[0].share > 0.99, "three copies of one number"
    assert not lost_by_scaling(dpviz.load_dataset("census-300")), "categories keep what unit length takes from numbers"
