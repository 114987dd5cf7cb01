"""A refutation speaks of the budget and the form that were audited, and of nothing else."""

import json

import pytest
from support import mostly_long
from support_pages import opened, settled, text

import dpviz
from dpviz.cli.main import main
from dpviz.experiments.run.setup import calibration_of
from dpviz.papers import saved
from dpviz.papers.claims import list_claims
from dpviz.papers.claims.audits import CLAIMED, DELTA
from dpviz.privacy.budget import Budget, Status
from dpviz.reporting import words

REFUTED = ("pidp-sgd", "dbdp-pi", "input-perturbation")


def found(mechanism: str, epsilon: float = 1.0, delta: float = DELTA, **params: object) -> saved.Refutation | None:
    spec = dpviz.RunSpec("teaching", mechanism=mechanism, epsilon=epsilon, delta=delta, params=params)
    return saved.refutation(spec.build(), calibration_of(spec))


@pytest.mark.parametrize("mechanism", REFUTED)
def test_it_holds_at_the_audited_budget_of_the_audited_form_only(mechanism: str) -> None:
    kept = saved.refuted()[mechanism]
    assert kept.budget == Budget(CLAIMED, DELTA)
    assert found(mechanism) == kept
    for epsilon, delta in ((0.1, DELTA), (10.0, DELTA), (1.001, DELTA), (1.0, 1e-6)):
        assert found(mechanism, epsilon, delta) is None
    assert found(mechanism, c=2.0) is None, "another form was not audited"


def test_what_is_proved_or_was_not_refuted_has_none() -> None:
    refuted = set(saved.refuted())
    assert refuted == set(REFUTED)
    assert refuted <= {name for claim in list_claims().values() if claim.privacy for name in claim.mechanisms}
    for mechanism in ("dp-gd", "objective-tight", "dbdp"):
        assert found(mechanism) is None


def test_badges_say_so_where_it_holds() -> None:
    for epsilon, expected in ((1.0, "✗ refuted by audit: ε = 1"), (10.0, "✎ paper's claim: ε = 10")):
        spec = dpviz.RunSpec("teaching", mechanism="pidp-sgd", epsilon=epsilon, delta=DELTA)
        cal = calibration_of(spec)
        assert words.guarantee(cal, spec.build()).startswith(expected)
        assert words.label(cal, spec.build())[2] == ("red" if epsilon == 1.0 else words.LABELS[Status.CLAIM][2])


PAGES = ("Sensitivity", "One_model", "Accounting", "Groups", "Trade-off")


@pytest.mark.parametrize("page", mostly_long(PAGES, "Sensitivity"))
def test_pages_with_a_badge_say_so(page: str) -> None:
    for epsilon in ("1", "10"):
        shown = opened(page, mechanism="pidp-sgd", epsilon=epsilon, methods="pidp-sgd,dp-gd")
        said = text(settled(shown)) + " ".join(str(badge.value) for badge in shown.get("badge") if hasattr(badge, "value"))
        said += " ".join(table.value.to_string() for table in shown.table)
        assert ("refuted" in said) == (epsilon == "1")


def test_the_shell_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    for epsilon in ("1", "10"):
        command = f"calibrate --n 1000 --d 5 --mechanism dbdp-pi --epsilon {epsilon} --delta 1e-5"
        assert main(command.split()) == 0
        assert ("refuted" in capsys.readouterr().out) == (epsilon == "1")
        assert main([*command.split(), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["guarantee"]["refuted"]
        if epsilon == "10":
            assert told is None
        else:
            assert (told["epsilon"], told["delta"]) == (CLAIMED, DELTA)
            assert told["day"] == str(saved.load().day)
    for epsilon in ("1", "10"):
        assert main(["calibrate", "--methods", "--dataset", "teaching", "--epsilon", epsilon]) == 0
        assert capsys.readouterr().out.count("refuted by audit") == (3 if epsilon == "1" else 0)
