"""scikit-learn's logistic regression: any solver that takes this objective, on any number of threads."""

from typing import Any

import numpy as np
import sklearn
from serving import clock, serve
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits


def load(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    x, y = arrays["x"], arrays["y"]

    def fit(lam: float, solver: str = "lbfgs", threads: int | None = None) -> dict[str, Any]:
        """
        Args:
            solver: its tolerance is left as it comes.
            threads: of matrix products; None leaves them as they are.
        """
        model = LogisticRegression(C=1 / (lam * len(y)), fit_intercept=False, solver=solver)  # the rows have a constant feature
        with threadpool_limits(threads):
            begun = clock()
            model.fit(x, y)
            wall, cpu = clock() - begun
        theta = model.coef_[0]
        return {
            "wall": wall,
            "cpu": cpu,
            "accuracy": model.score(arrays["x_test"], arrays["y_test"]),
            "steps": int(model.n_iter_[0]),
            "objective": float(np.logaddexp(0, -y * (x @ theta)).mean() + lam / 2 * theta @ theta),
        }

    return {"fit": fit, "versions": lambda: {"scikit-learn": sklearn.__version__, "numpy": np.__version__}}


if __name__ == "__main__":
    serve(load)
