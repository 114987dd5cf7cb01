"""diffprivlib's logistic regression: objective perturbation of Chaudhuri, Monteleoni, Sarwate (2011), one model at a time."""

from typing import Any

import diffprivlib
import numpy as np
import sklearn
from diffprivlib.models import LogisticRegression
from serving import clock, serve
from threadpoolctl import threadpool_limits


def load(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    x, y = arrays["x"], arrays["y"]

    def fit(
        lam: float, epsilons: list[float], seed: int, tol: float, max_iter: int, threads: int | None = None
    ) -> dict[str, Any]:
        total, accuracy, steps = np.zeros(2), [], []
        for epsilon in epsilons:
            model = LogisticRegression(
                epsilon=epsilon,
                data_norm=1.0,
                C=1 / (lam * len(y)),
                fit_intercept=False,
                tol=tol,
                max_iter=max_iter,
                random_state=seed,
            )
            with threadpool_limits(threads):
                begun = clock()
                model.fit(x, y)
                total += clock() - begun
            accuracy.append(model.score(arrays["x_test"], arrays["y_test"]))
            steps.append(int(model.n_iter_[0]))
        return {"wall": total[0], "cpu": total[1], "accuracy": accuracy, "steps": steps}

    def scores(settings: list[list[float]], draws: int) -> dict[str, Any]:
        means = []
        for norm, c, epsilon in settings:
            models = [
                LogisticRegression(epsilon=epsilon, data_norm=norm, C=c, fit_intercept=False, random_state=seed).fit(norm * x, y)
                for seed in range(draws)
            ]
            means.append(float(np.mean([model.score(norm * arrays["x_test"], arrays["y_test"]) for model in models])))
        return {"accuracy": means}

    return {
        "fit": fit,
        "scores": scores,
        "versions": lambda: {
            "diffprivlib": diffprivlib.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
        },
    }


if __name__ == "__main__":
    serve(load)
