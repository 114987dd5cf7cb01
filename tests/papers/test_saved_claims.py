"""The committed verdicts of the papers' claims: they are of this version, or this version finds the same."""

import json
import math
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from dpviz.cli.main import main
from dpviz.papers import saved
from dpviz.papers.claims import Finding, Outcome, Picture, Verdict, check, list_claims

#: claims that are tested in seconds, of formulas, rules and an audit; before a release `dpviz list claims --save` tests all
QUICK = ("dbdp-noise-rate", "numerical-tighter", "permutation-saves", "dbdp-fewer-noised", "dbdp-pi-private")


def test_every_claim_has_a_saved_verdict_with_a_date() -> None:
    kept = saved.load()
    assert set(kept.findings) == set(list_claims())
    assert kept.day <= date.today()
    for name, found in kept.findings.items():
        assert found.claim.id == name
        assert found.verdict.because
        assert not found.full


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"panel": "p", "series": "s", "mechanism": "", "x": ["a", "b"], "y": [1 / 3, math.nan], "low": 0.0, "high": math.inf}
    )
    verdict = Verdict(
        Outcome.ONLY_IF,
        "because",
        "rule",
        (("what", "1"),),
        "it rains",
        table,
        Picture("x", "y", limit=1.0, limit_label="l"),
        "s",
    )
    claim = next(iter(list_claims().values()))
    path = tmp_path / "verdicts.json"
    saved.save_claims([Finding(claim, verdict, "command", False, 0, 1.26, "engine")], path, date(2026, 1, 2))
    kept = saved.load(path)
    back = kept.findings[claim.id]
    assert kept.current
    assert kept.day == date(2026, 1, 2)
    assert (back.verdict.outcome, back.verdict.condition) == (Outcome.ONLY_IF, "it rains")
    assert back.verdict.numbers == verdict.numbers
    assert back.verdict.picture == verdict.picture
    assert back.command == f"dpviz list claims --test {claim.id}"
    pd.testing.assert_frame_equal(back.verdict.table, table, rtol=1e-5)


def test_verdicts_of_other_code_and_of_claims_that_are_gone_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    content = json.loads(saved.FILE.read_text("utf-8"))
    path.write_text(json.dumps(content | {"version": "0.0+other", "claims": [*content["claims"], {"id": "gone"}]}), "utf-8")
    kept = saved.load(path)
    assert not kept.current
    assert set(kept.findings) == set(list_claims())
    assert saved.load(tmp_path / "none").findings == {}


def test_only_the_usual_test_of_all_claims_is_saved() -> None:
    assert main(["list", "claims", "--test=dbdp-noise-rate", "--save"]) == 2
    assert main(["list", "claims", "--save", "--seed", "3"]) == 2


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_saved_verdicts_are_those_of_this_version(name: str) -> None:
    """Where the code has changed since, some claims are tested again; `dpviz list claims --save` renews verdicts."""
    kept = saved.load()
    if kept.current:
        pytest.skip("saved by this version")
    verdict, before = check(name).verdict, kept.findings[name].verdict
    assert (verdict.outcome, verdict.condition) == (before.outcome, before.condition)
