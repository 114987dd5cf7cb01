"""The badge of a guarantee names what every proof takes for granted."""

import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT


def page(mechanism: str) -> None:
    import dpviz
    from dpviz.dashboard.components import guarantee

    cal = dpviz.calibrate(mechanism, n=400, d=5, epsilon=1.0)
    guarantee.badge(cal, dpviz.list_mechanisms()[mechanism]())


@pytest.mark.parametrize(
    ("mechanism", "proved"), [("dp-gd", True), ("cms-output", True), ("pidp-sgd", False), ("non-private", False)]
)
def test_proved_budgets_come_with_floating_point_and_public_ranges(mechanism: str, proved: bool) -> None:
    shown = AppTest.from_function(page, args=(mechanism,), default_timeout=LIMIT).run()
    assert not shown.exception
    said = " ".join(m.value for m in shown.markdown)
    assert ("real numbers" in said) is proved
    assert ("must be public" in said) is proved
