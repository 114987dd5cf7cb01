"""Fixtures that many tests share."""

from __future__ import annotations

import pytest

from dpviz.figures import style

style.CHECKED = True  # on every figure of every test


@pytest.fixture(params=["logistic", "svm"])
def model_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)
