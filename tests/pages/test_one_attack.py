"""One bound on attacks: first page, person card, Accounting and Audit say the same share for the same run."""

import re

import pytest
from support import mostly_long
from support_pages import opened, settled, text

import dpviz
from dpviz.dashboard.jobs import cached_runs

#: page to what it says before the share, and settings of its own
SAID = {
    "": (r"An attacker guesses right at most ([\d.]+)", {}),
    "Accounting": (r"Guesses are right at most ([\d.]+)", {}),
    "Person": (r"right at most ([\d.]+)\s%", {}),
    "Audit": (r"ε = 1 allows up to ([\d.]+)", {"runs": "200"}),
}


@pytest.mark.parametrize("mechanism", mostly_long(["output-gaussian", "dp-gd"], "output-gaussian"))
def test_every_page_has_the_same_bound_on_attacks(mechanism: str) -> None:
    attack = cached_runs.outcome(dpviz.RunSpec("teaching", mechanism=mechanism, epsilon=1.0, seeds=2)).attack
    assert attack is not None
    for name, (pattern, more) in SAID.items():
        page = settled(opened(name, mechanism=mechanism, epsilon="1", **more))
        said = text(page) + "\n".join(str(cell) for table in page.table for cell in table.value.to_numpy().ravel())
        found = re.findall(pattern, said.replace("\u00a0", " "))
        assert found, f"{name or 'the first page'} names no bound"
        assert set(found) == {f"{100 * attack.accuracy:.1f}"}, name
