"""Fixtures that many tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from support import LIMIT

from dpviz.figures import style

style.CHECKED = True  # on every figure of every test

# nothing fails because a machine is slow, and every run tries the same examples
settings.register_profile("dpviz", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpviz")
for name in ("DPVIZ_MAX_SECONDS", "DPVIZ_MAX_FETCH_SECONDS", "DPVIZ_SILENCE_SECONDS"):  # a busy machine is not a silent one
    os.environ[name] = f"{LIMIT:.0f}"


@pytest.fixture(params=["logistic", "svm"])
def model_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)
