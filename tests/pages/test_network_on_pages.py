"""Every page with the network: what it can do is offered, what has no meaning says so, what is approximate is labelled."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest
from support import assert_words
from support_pages import ACCOUNTING, SENSITIVITY, address, opened, settled, text

import dpviz
from dpviz.auditing import runs as audit_runs
from dpviz.common import memory
from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies import inspected
from dpviz.models import get_model

SETTING = get_model("mlp").setting(320, 3, 1e-3)
FITS = [name for name, cls in dpviz.list_mechanisms().items() if cls.refusal(SETTING) is None]


first = partial(opened, "One_model", model="mlp")


def units(page: AppTest) -> object:
    return next(n for n in page.number_input if n.label == "Hidden units")


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["dp-gd", "dp-sgd", "dp-svrg"])
def test_a_mechanism_that_fits_has_its_pages(mechanism: str) -> None:
    page = first(mechanism=mechanism)
    assert not page.error
    assert not page.warning
    mean = dpviz.run(dpviz.RunSpec(dataset="teaching", model="mlp", mechanism=mechanism, seeds=2)).accuracy.mean()
    assert f"{100 * mean:.1f}" in next(m.value for m in page.markdown if " without privacy, " in m.value)
    assert "weights do not belong to one feature each" in text(page)
    for name in ("Person", SENSITIVITY, ACCOUNTING):
        page = opened(name, model="mlp", mechanism=mechanism)
        assert not page.error
        assert not page.warning


def test_a_mechanism_that_does_not_fit_says_why_once() -> None:
    reason, given = dpviz.list_mechanisms()["cms-objective"].refusal(SETTING), {"mechanism": "cms-objective", "delta": "1e-6"}
    assert reason
    for page in (first(**given), first(**given | {"model": "logistic"}).selectbox(key="model").set_value("mlp").run()):
        assert [w.value.replace("\\", "").startswith(f"**Mechanism**: {reason}") for w in page.warning] == [True]
        assert len(page.selectbox(key="mechanism").options) == 1 + len(FITS) < len(dpviz.list_mechanisms())
        assert page.text_input(key="delta").value == "1e-06", "the rest of the address is kept"
        assert address(page)["model"] == "mlp"


@pytest.mark.long
def test_hidden_units_in_address_and_control_agree() -> None:
    page = first(model="mlp-12")
    assert units(page).value == 12
    units(page).set_value(5).run()
    assert address(page)["model"] == "mlp-5"
    units(page).set_value(0).run()
    assert address(page)["model"] == "mlp"
    page.query_params["model"] = "mlp-9"
    page.run()
    assert (units(page).value, page.selectbox(key="model").value) == (9, "mlp-9")
    page.selectbox(key="model").set_value("logistic").run()
    assert not [n for n in page.number_input if n.label == "Hidden units"]


def test_a_private_network_below_the_best_long_training_is_shown_as_it_is() -> None:
    spec = dpviz.RunSpec(dataset="teaching", model="mlp", mechanism="dp-sgd", epsilon=7.0, seeds=2)
    made = cached_runs.outcome(spec)
    negative = dataclasses.replace(made, optimality_gap=np.array([-0.02, 0.01]))
    cached_runs._store.put(dpviz.resolve(spec).key(), negative, owner="")
    try:
        page = first(mechanism="dp-sgd", epsilon="7.0")
    finally:
        memory.clear()
    assert_words(
        text(page),
        "best of 3 long trainings without privacy: −0.005 on average, from −0.02 to 0.01",
        "may come out below 0. Here 1 of 2 draws did.",
    )
    table = next(t.value for t in page.table if "Optimality gap" in t.value.index)
    assert "−0.005" in table.loc["Optimality gap"].iloc[0]


def test_formulas_are_those_of_the_model() -> None:
    network, linear = first(), first(model="logistic")
    assert r"\tanh" in network.latex[0].value
    assert r"\langle\theta,x\rangle" in linear.latex[0].value
    assert "long trainings" not in text(linear)


@pytest.mark.long
def test_influence_of_a_network_is_labelled_and_set_beside_retraining() -> None:
    spec = dpviz.RunSpec(dataset="teaching", model="mlp", seeds=2)
    page = opened("Person", model="mlp")
    said = text(page)
    at = inspected.validation_rows(spec)
    influence = inspected.row_influence(spec)
    truth = influence.leave_one_out(at, tolerance=inspected.NETWORK_TOLERANCE)
    likeness = spearmanr(influence.norm[at], truth.norm).statistic
    assert likeness > 0.9
    assert f"Rank correlation with retraining (Spearman): {likeness:.2f}, over {len(at)} rows" in said.replace("**", "")
    assert said.count("approximate: its curvature is the Gauss–Newton matrix, not the Hessian") >= 2
    assert "parameters change by about" in said + str([t.value for t in page.table])
    assert_words(said, "Nothing is proved for a network", absent=("retrained exactly",))
    table = next(t.value for t in page.table if "Label" in t.value.index)
    shown = table.loc["Leave-one-out retraining, from the same point"].iloc[0]
    best = int(influence.newton_norm.argmax())
    assert float(shown) == pytest.approx(truth.norm[at.tolist().index(best)], rel=6e-3)
    assert "certificate" not in " ".join(formula.value for formula in page.latex)


@pytest.mark.long
def test_a_long_retraining_waits_to_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspected, "NETWORK_WORK", 1.0)
    monkeypatch.setattr(inspected, "NETWORK_PERSON", 1.0)
    memory.clear()
    page = opened("Person", model="mlp", lam="0.002")
    row = "Leave-one-out retraining, from the same point"
    assert not any(row in t.value.index for t in page.table)
    next(b for b in page.button if b.label == "Retrain without this row").click().run()
    assert any(row in t.value.index for t in page.table)
    assert "Rank correlation" not in text(page)
    next(b for b in page.button if b.label.startswith("Retrain without each of")).click().run()
    assert "Rank correlation" in text(page)


def test_no_minimum_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.clear()
    spec = dpviz.RunSpec(dataset="teaching", model="mlp", lam=0.003)
    problem = setup_for(spec).problem
    monkeypatch.setitem(problem.__dict__, "optimum", problem.optimum + 0.05)
    page = opened("Person", model="mlp", lam="0.003")
    assert len(page.error) == 2, "without one row, and without each of many"
    assert all("is not at a minimum" in error.value for error in page.error)
    memory.clear()


def test_rates_have_nothing_to_say_about_a_network() -> None:
    page = settled(opened(SENSITIVITY, model="mlp", part="rates"))
    assert_words(text(page), "no rate speaks of it", absent=("of this run", "adversarial"))


@pytest.mark.long
def test_networks_of_dp_sgd_are_attacked_without_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_runs, "ROWS", 60)
    page = settled(opened("Audit", model="mlp-2", mechanism="dp-sgd", pair="label-flip", runs="200", **{"dp-sgd.epochs": "2"}))
    assert not page.error
    shown = {m.label: m.value for m in page.metric}
    assert float(shown["Audited ε, at least"]) <= float(shown["Claimed ε"])
    assert_words(text(page), "no violation found", "starts from the same weights")
