"""Rows of two or three classes for `PrivateClassifier`."""

from __future__ import annotations

import numpy as np


def rows(n: int = 400, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = np.array([[0.6, 0.0], [-0.6, 0.0], [0.0, 0.6]])[:classes]
    y = np.arange(n) % classes
    x = centres[y] + rng.normal(scale=0.1, size=(n, 2))
    return x / np.maximum(1, np.linalg.norm(x, axis=1))[:, None], np.array(["a", "b", "c"])[y]
