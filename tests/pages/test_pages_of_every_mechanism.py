"""The pages on sensitivity and accounting open for every mechanism and model."""

import pytest
from support import mostly_long
from support_pages import ACCOUNTING, SENSITIVITY, opened, text

import dpviz

pytestmark = pytest.mark.usefixtures("fresh_pool")


@pytest.mark.parametrize("name", [SENSITIVITY, ACCOUNTING])
@pytest.mark.parametrize("mechanism", mostly_long(dpviz.list_mechanisms(), "majority", "rsgd-ar", "dp-sgd"))
def test_every_mechanism_has_both_pages(name: str, mechanism: str) -> None:
    page = opened(name, mechanism=mechanism)
    assert not page.error
    assert not page.warning
    assert len(text(page)) > 500


@pytest.mark.parametrize("name", [SENSITIVITY, ACCOUNTING])
def test_every_model_has_both_pages(name: str, model_id: str) -> None:
    page = opened(name, model=model_id)
    assert not page.error
