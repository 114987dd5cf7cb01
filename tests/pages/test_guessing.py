"""Pages that say that a model is no better than the majority label, with the cause and what would help."""

import pytest
from support import mostly_long
from support_pages import opened, settled, text

import dpviz
from dpviz.experiments.studies import guarantees

_NOISY = {"dataset": "breast-cancer", "lam": "0.001", "mechanism": "cms-output", "epsilon": "0.01", "seed": "4", "seeds": "3"}
_OTHERS = ("Groups", "Sensitivity", "Accounting")


@pytest.mark.parametrize("page", mostly_long(["Audit", "Person", *_OTHERS], "Audit"))
def test_every_page_about_one_run_says_the_same(page: str) -> None:
    spec = dpviz.RunSpec("breast-cancer", mechanism="cms-output", epsilon=0.01, seed=4, seeds=3, lam=1e-3)
    run = dpviz.run(spec)
    assert run.accuracy.mean() < run.majority.accuracy, "the note is about a model that is worse than guessing"
    said = text(settled(opened(page, **_NOISY)))
    assert "Worse than guessing" in said
    assert "Most is lost to noise, which a larger ε" in said


def test_the_page_of_guarantees_names_the_methods_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in ("cms-output", "pidp-sgd")}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)
    said = text(settled(opened("Guarantees", **_NOISY)))
    assert "No more accurate than the majority label" in said
    assert "Output perturbation (CMS): Most is lost to noise, which a larger ε" in said
    assert "PIDP-SGD: most" not in said
    said = text(settled(opened("Guarantees", **_NOISY, metric="balanced-accuracy")))
    assert "No better than the majority label, which has balanced accuracy 50.0" in said
    assert "more accurate" not in said
