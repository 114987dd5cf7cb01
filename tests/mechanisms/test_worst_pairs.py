"""The pairs of datasets that mechanisms declare as their worst: neighbours that use all that the claim allows."""

import pytest

from dpviz.auditing.pairs import differing_rows
from dpviz.mechanisms import HasWorstPair, list_mechanisms
from dpviz.models import get_model


@pytest.mark.parametrize("name", [name for name, cls in list_mechanisms().items() if issubclass(cls, HasWorstPair)])
def test_pairs_that_mechanisms_declare_are_neighbours_in_the_unit_ball(name: str, model_id: str) -> None:
    cls, model = list_mechanisms()[name], get_model(model_id)
    assert issubclass(cls, HasWorstPair)
    assert cls.worst_pair(model, model.setting(3, 2, 0.1)) is None
    assert cls.worst_pair(model, model.setting(4, 1, 0.1)) is None
    for n, d in ((4, 2), (31, 7)):
        pair = cls.worst_pair(model, model.setting(n, d, 0.1))
        assert pair is not None
        assert differing_rows(*pair) == n - 1
        along = [float(p.rows.y[-1] * p.rows.signed[0] @ p.rows.X[-1]) for p in pair]
        assert along[0] == along[1] <= 0, "the others teach neither form"
        for problem in pair:
            assert (problem.n, problem.lam) == (n, 0.1)
            assert problem.rows.norms.max() <= 1 + 1e-12
            assert problem.rows.norms[-1] == pytest.approx(1.0), "a short row differs by less"
            assert set(problem.rows.y) <= {-1.0, 1.0}
