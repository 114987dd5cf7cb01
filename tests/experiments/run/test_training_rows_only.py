"""What is trained and calibrated depends on the training rows alone: other test rows change nothing."""

import numpy as np
import pytest

import dpviz

rng = np.random.default_rng(0)
X = rng.standard_normal((90, 3))
X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
Y = np.where(X[:, 0] + 0.2 * rng.standard_normal(90) > 0, 1, -1)


def run(x: np.ndarray, y: np.ndarray, mechanism: str) -> dpviz.Result:
    rows = dpviz.dataset(x, y, data_norm=1.0)
    return dpviz.run(dpviz.RunSpec(dataset=rows.name, mechanism=mechanism, seeds=2, delta=1e-4))


@pytest.fixture(scope="module")
def test_rows() -> np.ndarray:
    rows = dpviz.dataset(X, Y, data_norm=1.0)
    return np.asarray(dpviz.setup_for(dpviz.RunSpec(dataset=rows.name, delta=1e-4)).split.test)


@pytest.mark.parametrize("mechanism", dpviz.list_mechanisms())
def test_other_test_rows_change_nothing(mechanism: str, test_rows: np.ndarray) -> None:
    x, y = X.copy(), Y.copy()
    x[test_rows] = -0.5 * x[test_rows]
    before, after = run(X, Y, mechanism), run(x, y, mechanism)
    np.testing.assert_equal(after.calibration.noise_scale, before.calibration.noise_scale)
    np.testing.assert_equal(after.calibration.sensitivity, before.calibration.sensitivity)  # NaN where none is bounded
    np.testing.assert_array_equal(after.theta, before.theta)
    setup = dpviz.setup_for(before.spec)
    assert setup.problem.n == setup.problem.setting.n == len(X) - len(test_rows)


def test_another_training_row_changes_the_model(test_rows: np.ndarray) -> None:
    x = X.copy()
    x[np.setdiff1d(np.arange(90), test_rows)[0]] *= -1
    assert (run(x, Y, "output-gaussian").theta != run(X, Y, "output-gaussian").theta).any()
