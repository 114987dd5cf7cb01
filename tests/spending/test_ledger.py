"""The ledger: totals, refusals before training, crashes, two writers, and files that are none."""

import os
import signal
import subprocess
import sys
import textwrap
import tomllib
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from support import LIMIT, Cancelled, assert_refused, assert_words, cancel, mostly_long
from support_shell import Shell

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import setting_of
from dpviz.privacy.accounting.events import Composed, Gaussian, Mixture, PureEpsilon, Repeated, Sampled, Shuffled
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.spending import Entry, Ledger
from dpviz.spending import ledger as module
from dpviz.spending.of_run import entry_of
from dpviz.spending.records import from_record, to_record

RELEASES = [
    Gaussian(0.5, 2.0),
    Gaussian.of_rows(1.0, 3.0),
    Mixture((0.1, 0.2), (0.5, 0.5), 0.3),
    PureEpsilon(0.3),
    Repeated(Sampled(Gaussian.of_rows(1.0, 1.1), 0.02), 300),
    Composed((Gaussian(1.0), PureEpsilon(0.2))),
    Shuffled(PureEpsilon(1.0), 1000),
    Budget(0.5, 1e-7),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.toml", table="people", limit=Budget(2.0, 1e-5))


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: type(r).__name__)
def test_what_is_written_comes_back(release: object, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(100.0, 1e-5))
    entry = Entry(release, "search", Status.PROVED_IF, ("n is public",), "a call", "2026-01-02T03:04:05+00:00")  # type: ignore[arg-type]
    ledger.spend(entry)
    assert Ledger(ledger.path).entries() == (entry,)
    assert from_record(to_record(release), "x") == release  # type: ignore[arg-type]


def test_the_limit_holds_before_anything_is_written(ledger: Ledger) -> None:
    ledger.spend(module.entry_of_budget(1.5))
    before = ledger.path.read_bytes()
    assert_refused(ledger.spend, module.entry_of_budget(0.6), match=r"would bring the total of 'people' to ε = 2.1")
    assert ledger.path.read_bytes() == before
    ledger.spend(module.entry_of_budget(0.5))
    total = ledger.total().budget
    assert 1.99 < total.epsilon <= 2.0


def test_a_claim_makes_the_total_a_claim_and_is_named(ledger: Ledger) -> None:
    ledger.spend(module.entry_of_budget(0.2, call="proved"))
    ledger.spend(module.entry_of_budget(0.2, 1e-6, status=Status.CLAIM, call="only claimed"))
    total = ledger.total()
    assert total.status is Status.CLAIM
    assert [entry.call for entry in total.unproved] == ["only claimed"]
    assert total.budget.epsilon == pytest.approx(0.4, rel=1e-3), "what is only claimed costs what it claims"
    assert_refused(ledger.spend, Entry(Budget(0.1), status=Status.NONE), match="no privacy guarantee")
    assert_refused(ledger.spend, module.entry_of_budget(0.1), Neighbouring.ADD_REMOVE, match="add-remove")


@pytest.mark.parametrize("name", dpviz.list_mechanisms())
def test_every_mechanism_has_an_entry_that_costs_no_more_than_its_budget(name: str, tmp_path: Path) -> None:
    spec = dpviz.RunSpec(dataset="breast-cancer", mechanism=name, epsilon=1.0)
    setting, budget = setting_of(spec), dpviz.resolve(spec).budget
    cal = spec.build().calibrate(setting, budget)
    entry = entry_of(spec.build(), setting, cal, "call")
    assert entry.status is cal.status
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(2.1, budget.delta), relation=cal.neighbouring)
    if cal.status is Status.NONE:
        assert_refused(ledger.spend, entry, cal.neighbouring)
        return
    ledger.spend(entry, cal.neighbouring)
    total = ledger.total()
    assert total.budget.epsilon <= 1.0 * (1 + 2e-3)
    assert total.conditions == cal.conditions


def test_a_ledger_of_many_entries_can_be_read_and_written(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(Gaussian(1e-4), conditions=("c" * 1900,), call="x" * 1900)
    content = tomllib.loads(ledger.path.read_text()) | {"entry": [entry.to_dict()] * 60}
    ledger.path.write_bytes(module._toml(content))
    assert ledger.path.stat().st_size > 200_000
    ledger.spend(entry)
    assert len(ledger.entries()) == 61
    monkeypatch.setattr(module, "_MOST_BYTES", ledger.path.stat().st_size + 100)
    assert_refused(ledger.spend, entry, match="would be larger")
    assert len(ledger.entries()) == 61, "what would be too large to be read is not written"


_WRITER = """
    import sys
    from dpviz.spending import Ledger
    from dpviz.spending.ledger import entry_of_budget
    ledger = Ledger(sys.argv[1])
    print("ready", flush=True)
    for k in range(int(sys.argv[2])):
        ledger.spend(entry_of_budget(0.001, call=f"{sys.argv[3]} {k}"))
"""


def _writer(path: Path, count: int, name: str) -> subprocess.Popen[str]:
    code = textwrap.dedent(_WRITER)
    return subprocess.Popen([sys.executable, "-c", code, str(path), str(count), name], stdout=subprocess.PIPE, text=True)


def test_two_writers_lose_nothing(ledger: Ledger) -> None:
    other = _writer(ledger.path, 12, "b")
    assert other.stdout.readline() == "ready\n"
    for k in range(12):
        ledger.spend(module.entry_of_budget(0.001, call=f"a {k}"))
    assert other.wait(LIMIT) == 0
    assert sorted(e.call for e in ledger.entries()) == sorted(f"{name} {k}" for name in "ab" for k in range(12))


def test_a_writer_checks_anew_where_another_was_faster(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the same file and both fit the limit alone: the second is checked against what the first has written."""
    check, checked = module.Contents.check, []

    def slow(contents: module.Contents, entry: Entry, relation: Neighbouring) -> None:
        check(contents, entry, relation)
        checked.append(len(contents.entries))
        if len(checked) == 1:
            Ledger(ledger.path).spend(module.entry_of_budget(first, call="faster"))

    monkeypatch.setattr(module.Contents, "check", slow)
    first = 0.5
    ledger.spend(module.entry_of_budget(0.5, call="slower"))
    assert checked == [0, 0, 1]
    assert [entry.call for entry in ledger.entries()] == ["faster", "slower"]
    checked.clear()
    first = 0.8
    assert_refused(ledger.spend, module.entry_of_budget(0.6), match="above the limit")


def test_totals_are_computed_without_the_lock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lock(module.FileLock):
        def acquire(self, *args: object, **more: object) -> object:
            monkeypatch.setattr(module, "total_epsilon", lambda *a: pytest.fail("computed under the lock"))
            monkeypatch.setattr(module.tomli_w, "dumps", lambda *a: pytest.fail("written out under the lock"))
            return super().acquire(*args, **more)

    monkeypatch.setattr(module, "FileLock", Lock)
    ledger.spend(module.entry_of_budget(0.5))
    assert len(ledger.entries()) == 1


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_links_do_not_fork_a_ledger_and_its_mode_stays(ledger: Ledger, tmp_path: Path) -> None:
    ledger.path.chmod(0o600)
    for name in ("link.toml", "folder"):
        (tmp_path / name).symlink_to(ledger.path if name == "link.toml" else tmp_path)
    for path in (ledger.path, tmp_path / "link.toml", tmp_path / "folder" / "ledger.toml"):
        Ledger(path).spend(module.entry_of_budget(0.5, call=path.name))
    assert (tmp_path / "link.toml").is_symlink()
    assert len(ledger.entries()) == 3
    assert [path.name for path in tmp_path.glob("*.lock")] == ["ledger.toml.lock"]
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    ledger.path.chmod(0o664)  # more than the usual umask leaves
    ledger.spend(module.entry_of_budget(0.1))
    assert ledger.path.stat().st_mode & 0o777 == 0o664
    before = ledger.path.read_bytes()
    os.link(ledger.path, tmp_path / "other.toml")
    for path in (ledger.path, tmp_path / "other.toml"):
        assert_refused(Ledger, path, match="hard links")
    assert ledger.path.read_bytes() == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("times", mostly_long([1, 5], 1))
def test_a_writer_that_is_killed_leaves_a_whole_ledger(ledger: Ledger, times: int) -> None:
    for attempt in range(times):
        writer = _writer(ledger.path, 10_000, f"w{attempt}")
        assert writer.stdout.readline() == "ready\n"
        seen = len(ledger.entries())
        while len(ledger.entries()) < seen + 3 and writer.poll() is None:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        entries = Ledger(ledger.path).entries()
        assert len(entries) >= seen + 3
        ledger.spend(module.entry_of_budget(0.001, call="after"))  # the lock of a dead process holds nobody up
        assert Ledger(ledger.path).entries()[: len(entries)] == entries


WHOLE = """version = 1
table = "t"
unit = "row"
relation = "replace-one"
entry = [{status = "proved", release = {kind = "Gaussian", sensitivity = 1.0, sigma = 2.0}}]
limit = {epsilon = 1.0, delta = 1e-6}
"""
GAUSSIAN = 'kind = "Gaussian", sensitivity = 1.0, sigma = 2.0'
NESTED = f'kind = "Repeated", count = {10**9}, event = {{kind = "PureEpsilon", epsilon = 1e-9}}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version = 1", "version = 2"),
        ("version = 1", "version = ["),
        ("replace-one", "sideways"),
        ("epsilon = 1.0", "epsilon = -1.0"),
        ("delta = 1e-6", "delta = 0"),
        ("delta = 1e-6", "delta = 1e-200"),  # what rounding leaves would be more
        ("sensitivity = 1.0", "sensitivity = nan"),
        ("sensitivity = 1.0, ", ""),
        ("sensitivity = 1.0", "more = 1, sensitivity = 1.0"),
        ('"Gaussian"', '"os.system"'),
        ('"proved"', '"surely"'),
        ('entry = [{status = "proved"', 'entry = [3, {status = "proved"'),
        (WHOLE, ""),
        (GAUSSIAN, 'kind = ["Gaussian"]'),
        (GAUSSIAN, 'kind = "Composed", events = 5'),
        (GAUSSIAN, 'kind = "Composed", events = [5]'),
        (GAUSSIAN, 'kind = "Repeated", count = 2, event = "Gaussian"'),
        (GAUSSIAN, 'kind = "Mixture", sensitivities = 5, weights = ["a"]'),
        (GAUSSIAN, 'kind = "Repeated", count = 2, event = {kind = "Budget", epsilon = 1}'),
        (GAUSSIAN, f'kind = "Repeated", count = {10**9}, event = {{{NESTED}}}'),
        ('status = "proved"', 'status = "proved", conditions = "all"'),
        ('status = "proved"', 'status = "proved", conditions = [1]'),
        ('status = "proved"', 'status = "proved", call = 3'),
        ('status = "proved"', 'status = "proved", person_rows = -1'),
        ('status = "proved"', 'status = "proved", more = 1'),
        ('status = "proved"', 'status = ["proved"]'),
        ('table = "t"', r'table = "\u001b[2J"'),
        ("epsilon = 1.0", "epsilon = 1e300"),
    ],
)
def test_files_that_are_no_ledger_are_refused_in_words(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "l.toml"
    path.write_text(WHOLE)
    assert len(Ledger(path).entries()) == 1
    assert old in WHOLE
    path.write_text(WHOLE.replace(old, new))
    assert_refused(Ledger, path)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ledger: Entry("x"),
        lambda ledger: Entry(Repeated("x", 3)),
        lambda ledger: Entry(Composed(5)),
        lambda ledger: Entry(Sampled(PureEpsilon(1.0), 0.1)),
        lambda ledger: Entry(Shuffled(Mixture((1.0,), (1.0,)), 5)),
        lambda ledger: Entry(Mixture("ab", (0.5, 0.5))),
        lambda ledger: Entry(PureEpsilon(1.0), status="proved"),
        lambda ledger: Entry(PureEpsilon(1.0), conditions="n is public"),
        lambda ledger: Entry(PureEpsilon(1.0), call=3),
        lambda ledger: Entry(PureEpsilon(1.0), person_rows=1.5),
        lambda ledger: Entry(Repeated(Repeated(PureEpsilon(1e-9), 10**9), 2)),
        lambda ledger: Entry(Repeated(Sampled(Gaussian.of_rows(1.0, 1.1), 0.02), 10**8)),  # minutes for a total
        lambda ledger: ledger.spend("x"),
        lambda ledger: ledger.spend(Entry(PureEpsilon(0.1)), "replace-one"),
        lambda ledger: Ledger(5),
        lambda ledger: Ledger("a\0b"),
        lambda ledger: Ledger.create("x.toml", table="t", limit=5),
        lambda ledger: Ledger.create("x.toml", table="t", limit=Budget(1e300, 1e-6)),
        lambda ledger: ledger.total("x"),
        lambda ledger: Ledger.parse("x"),
        lambda ledger: Ledger("\ud800"),
        lambda ledger: module.entry_of_budget(0.1, np.ones(2)),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    wrong: Callable[[Ledger], object], ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert_refused(wrong, ledger)
    assert ledger.entries() == ()
    assert sorted(tmp_path.iterdir()) == before, "nothing that cannot be read is left"


def test_a_small_file_costs_nothing_however_much_it_stands_for(tmp_path: Path) -> None:
    path = tmp_path / "l.toml"
    for release in ('kind = "PureEpsilon", epsilon = 1e-5', 'kind = "Budget", epsilon = 1e300, delta = 1e-9'):
        count = 'kind = "Repeated", count = 120000000, event = {' * release.startswith('kind = "Pure')
        path.write_text(WHOLE.replace(GAUSSIAN, count + release + "}" * bool(count)))
        tracemalloc.start()
        Ledger(path).total()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60e6


def test_long_totals_can_be_cancelled(ledger: Ledger) -> None:
    entries = tuple(module.entry_of_budget(0.001 * k, 1e-9) for k in range(1, 40))
    contents = replace(ledger.contents(), entries=entries)
    shares: list[float] = []
    assert contents.total(monitor=shares.append).budget is not None
    assert len(shares) > 40
    with pytest.raises(Cancelled):
        contents.total(monitor=cancel)


def test_a_release_that_was_made_elsewhere_is_entered(ledger: Ledger, shell: Shell) -> None:
    shell(["ledger", str(ledger.path), "--enter", "0.01,1e-9", "--note", "elsewhere"])
    entry = ledger.entries()[-1]
    assert (entry.release, entry.what, entry.call, entry.status) == (Budget(0.01, 1e-9), "other", "elsewhere", Status.PROVED)


def test_escapes_in_notes_are_shown_harmlessly(ledger: Ledger, shell: Shell) -> None:
    ledger.spend(Entry(PureEpsilon(0.1), status=Status.CLAIM, conditions=("a\x1b]0;b",), call="\x1b[2J\u202emoc"))
    assert_words(shell(["ledger", str(ledger.path)]), "\\x1b[2J", absent=("\x1b", "\u202e"))
    assert Ledger(ledger.path).total().unproved[0].call == r"\x1b[2J\u202emoc"


@pytest.mark.parametrize("status", [Status.PROVED, Status.PROVED_IF])
def test_a_total_is_proved_under_all_conditions_of_its_entries(status: Status, ledger: Ledger) -> None:
    assert ledger.total().status is Status.PROVED
    ledger.spend(Entry(PureEpsilon(0.1), conditions=("n is public", "noise is real")))
    ledger.spend(Entry(PureEpsilon(0.2), status=status, conditions=("n is public", "classes are public")))
    total = Ledger(ledger.path).total()
    assert (total.status, total.conditions) == (Status.PROVED_IF, ("n is public", "noise is real", "classes are public"))


def test_conditions_without_words_are_not_lost(ledger: Ledger) -> None:
    ledger.spend(Entry(PureEpsilon(0.1), status=Status.PROVED_IF))
    assert Ledger(ledger.path).total().status is Status.PROVED_IF


@pytest.mark.parametrize("relation", Neighbouring)
def test_pure_entries_add_up_under_any_relation_and_stay_pure(relation: Neighbouring, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(2.0, 1e-9), relation=relation)
    ledger.spend(Entry(PureEpsilon(0.5)), relation)
    ledger.spend(Entry(Repeated(PureEpsilon(0.25), 2)), relation)
    assert ledger.total().budget == Budget(1.0)
    ledger.spend(module.entry_of_budget(0.1, 1e-12), relation)
    mixed = ledger.total().budget
    assert (mixed.epsilon, mixed.delta) == (pytest.approx(1.1, rel=1e-6), 1e-9)


def test_a_ledger_is_never_overwritten(ledger: Ledger, tmp_path: Path) -> None:
    before = ledger.path.read_bytes()
    assert_refused(Ledger.create, ledger.path, table="x", limit=Budget(1.0, 1e-5), match="there already")
    assert ledger.path.read_bytes() == before
    kept = tmp_path / "notes.txt"
    kept.write_text("mine")
    assert_refused(Ledger.create, kept, table="x", limit=Budget(1.0, 1e-5), match="there already")
    assert not (tmp_path / "notes.txt.lock").exists(), "nothing is left beside a file that is refused"
    assert_refused(Ledger.create, tmp_path / "new.toml", table="x", limit=Budget(1.0), match="delta > 0")
    assert_refused(Ledger, tmp_path / "none.toml", match="first: dpviz ledger FILE")


def test_a_release_is_entered_before_it_is_trained(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=1.0)
    released = dpviz.release(spec, ledger=ledger, call="first")
    (entry,) = ledger.entries()
    assert set(released.calibration.conditions) <= set(entry.conditions)
    assert isinstance(entry.release, Gaussian)
    assert entry.call == "first"

    monkeypatch.setattr("dpviz.releasing.training.train", cancel)
    with pytest.raises(Cancelled):
        dpviz.release(spec, ledger=ledger, call="second")
    assert [e.call for e in ledger.entries()] == ["first", "second"], "what crashed counts"
    with pytest.raises(InvalidInput, match="would bring the total"):  # and not Cancelled: nothing is trained
        dpviz.release(dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=1.9), ledger=ledger)
    assert len(ledger.entries()) == 2


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("mechanism", ["objective-tight", "output-gaussian", "bolt-on-psgd", "cms-output"])
def test_every_fit_of_the_classifier_is_entered(classes: int, mechanism: str, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(1.5, 1e-5))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)) / 4, np.arange(300) % classes
    model = dpviz.PrivateClassifier(mechanism, epsilon=1.0, ledger=ledger.path)
    model.fit(X, y)
    total = ledger.total().budget
    assert 0.5 < total.epsilon <= 1.0 + 2e-3, "the models of all classes, once"
    assert set(model.guarantee_.conditions) <= set(ledger.total().conditions)
    assert_refused(clone(model).set_params(epsilon=1.4).fit, X, y, match="would bring the total")
    assert len(ledger.entries()) == 1
