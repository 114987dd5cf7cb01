"""scikit-learn's logistic regression, as it comes (lbfgs, tol 1e-4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from serving import clock, serve
from sklearn.linear_model import LogisticRegression


def load(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    x, y = arrays["x"], arrays["y"]

    def fit(lam: float) -> dict[str, Any]:
        model = LogisticRegression(C=1 / (lam * len(y)), fit_intercept=False)  # the rows have a constant feature
        begun = clock()
        model.fit(x, y)
        wall, cpu = clock() - begun
        return {
            "wall": wall,
            "cpu": cpu,
            "accuracy": model.score(arrays["x_test"], arrays["y_test"]),
            "steps": int(model.n_iter_[0]),
        }

    return {"fit": fit, "versions": lambda: {"scikit-learn": sklearn.__version__, "numpy": np.__version__}}


if __name__ == "__main__":
    serve(load)
