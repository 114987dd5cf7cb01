"""Fixtures that many tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["logistic", "svm"])
def model_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)
