"""Audits of networks: what is right passes, too little noise is caught, pairs follow the influence."""

import pytest
from doubles import WeakDescent

import dpviz
from dpviz.auditing import EXCEEDED, NO_VIOLATION, audit, worst_case
from dpviz.auditing.pairs import make
from dpviz.common.validate import InvalidInput
from dpviz.models import get_model
from dpviz.privacy.budget import Budget, Neighbouring

TWO = get_model("mlp-2")


@pytest.mark.parametrize("pair", ["quiet", "pushed"])
def test_half_of_the_noise_is_caught_on_a_network(pair: str) -> None:
    chosen = make(pair, TWO, 24, 4, 0.1)
    game = (chosen.first, chosen.second, Budget(2.0, 1e-5), 2000, 3)
    assert audit(WeakDescent(steps=1, share=0.5), *game, confidence=0.99).verdict == EXCEEDED
    assert audit(WeakDescent(steps=1, share=1.0), *game, confidence=0.99).verdict == NO_VIOLATION


def test_worst_cases_for_networks_and_what_cannot_be_asked() -> None:
    budget = Budget(1.0, 1e-5)
    for name, cls in dpviz.list_mechanisms().items():
        if cls.refusal(TWO.setting(100, 3, 0.1)):
            with pytest.raises(InvalidInput, match="mechanism"):
                worst_case(cls(), TWO, budget, n=30, d=3, lam=0.1)
        elif name != "non-private":
            assert worst_case(cls(), TWO, budget, n=30, d=3, lam=0.1).first.model.id == "mlp-2"
    svrg = dpviz.list_mechanisms()["dp-svrg"].from_params({"relation": Neighbouring.ADD_REMOVE.value})
    pair = make("presence", TWO, 30, 3, 0.1)
    with pytest.raises(InvalidInput, match="not the same as no row"):
        audit(svrg, pair.first, pair.second, budget, runs=40)
