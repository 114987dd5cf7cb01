"""A new accountant is one file: it accounts for events and stands wherever accountants are listed."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from support import assert_refused

from dpviz.privacy.accounting import account, accountants, tables
from dpviz.privacy.accounting.account import Method, describe, tightest
from dpviz.privacy.accounting.accountants import base
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, PureEpsilon, Repeated, Sampled
from dpviz.privacy.budget import Budget, Neighbouring, Status

#: delta of a Gaussian by a Chernoff bound: mu = sqrt(T)/z ignores that batches are sampled, which is proved and loose
TOY = """
import math
from dpviz.privacy.accounting.accountants.base import Accountant


class Chernoff(Accountant):
    name = "chernoff"
    words = "Chernoff bound of the privacy loss, sampling ignored"
    label = "Chernoff"
    conversion_words = "Chernoff bound"
    place = 5
    samplings = ("full", "poisson")
    columns = (("Chernoff", "improved"),)

    def log_delta(self, step, method, epsilon, floor, directions):
        sampled = step.sampling == "poisson"
        mu = 2 / step.event.noise_multiplier if sampled else step.event.sensitivity / step.event.sigma
        mu *= math.sqrt(step.count)
        return min(0.0, -max(epsilon - mu**2 / 2, 0.0) ** 2 / (2 * mu**2))


ACCOUNTANT = Chernoff()
"""
REPLACE = Neighbouring.REPLACE_ONE
BATCHES: Event = Repeated(Sampled(Gaussian.of_rows(1.0, 8.0), 0.1), 20)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Method:
    (tmp_path / "chernoff.py").write_text(TOY)
    others = list(base.list_accountants())
    monkeypatch.setattr(accountants, "__path__", [*accountants.__path__, str(tmp_path)])
    found = base.find_accountants.__wrapped__()
    assert list(found)[1:] == others, "it adds itself and moves no other"
    monkeypatch.setattr(base, "find_accountants", lambda: found)
    return Method("chernoff", REPLACE)


def test_it_accounts_for_events_and_refuses_what_it_does_not_cover(toy: Method) -> None:
    full, budget = Repeated(Gaussian(1.0, 4.0), 5), Budget(1.0, 1e-5)
    mu = math.sqrt(5) / 4
    by_hand = mu**2 / 2 + mu * math.sqrt(2 * math.log(1e5))
    assert account.epsilon(full, Method("chernoff", REPLACE), 1e-5) == pytest.approx(by_hand, rel=1e-6)
    for event in (full, BATCHES):
        noise = account.noise_for(event, toy, budget)
        assert noise > account.noise_for(event, tightest(event), budget)
    with pytest.raises(CannotAccount, match=r"Chernoff has no proof for PureEpsilon.*hockey-stick"):
        account.epsilon(PureEpsilon(1.0), toy, 1e-5)
    with pytest.raises(CannotAccount, match="Chernoff has no bound for shuffled fixed batches"):
        account.epsilon(Sampled(Gaussian.of_rows(1.0), 0.1, "fixed"), toy, 1e-5)
    assert describe(toy) == "Chernoff bound of the privacy loss, sampling ignored, replace-one"


@pytest.mark.parametrize("event", [Gaussian(1.0), BATCHES])
def test_it_has_a_line_where_accountants_are_compared(toy: Method, event: Event) -> None:
    found = {option.name: option for option in tables.options(event, Budget(1.0, 1e-5))}
    assert found["Chernoff"].status is Status.PROVED
    assert found["Chernoff"].sigma > min(option.sigma for option in found.values())
    table = tables.composition(2.0, 0.1, 1e-5, Neighbouring.ADD_REMOVE, (1, 10)).table
    assert (table["Chernoff"] > table["PLD"]).all()


def test_without_its_file_it_is_unknown() -> None:
    assert_refused(account.epsilon, Gaussian(1.0), Method("chernoff"), 1e-5, match="accountant")


def test_mechanisms_on_poisson_batches_take_it(tmp_path: Path) -> None:
    """Hyperparameters are declared while the package is loaded, hence a process of its own."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "chernoff.py").write_text(TOY)
    (tmp_path / "use.py").write_text(
        "from dpviz.privacy.accounting import accountants\n"
        f"accountants.__path__.append({str(tmp_path / 'more')!r})\n"
        "import dpviz\n"
        "from dpviz.experiments.run.setup import calibration_of\n"
        "spec = dpviz.RunSpec(mechanism='dp-sgd', params={'accountant': 'chernoff'}, dataset='teaching')\n"
        "print(dpviz.list_mechanisms()['dp-sgd'].knobs()['accountant'].options, calibration_of(spec).accountant)\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "use.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "('pld', 'rdp', 'chernoff') Chernoff bound" in done.stdout
