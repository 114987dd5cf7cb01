"""A link keeps its meaning when a default changes."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from support_pages import addressed, opened

import dpviz
from dpviz.cli.main import main
from dpviz.experiments.run import links
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Budget
from dpviz.reporting import address

KEPT = Path(__file__).with_name("link_defaults.json")
FIRST = {"dataset": "teaching", "epsilon": "0.5"}


def defaults() -> dict[str, str]:
    """Today's default of every key of a run, as text of an address."""
    spec = RunSpec()
    run = {name: str(getattr(spec, name)) for name in SETTINGS}
    own = {f"{name}.{key}": str(value) for name, cls in list_mechanisms().items() for key, value in cls.defaults().items()}
    return run | own


def test_no_default_changes_without_a_new_version() -> None:
    """Where this fails: add an entry to `links.OLD`, then run `python tests/experiments/run/test_links.py`."""
    kept = json.loads(KEPT.read_text())
    now = {"version": links.VERSION, "defaults": defaults()}
    changed = {key for key in kept["defaults"] if kept["defaults"][key] != now["defaults"].get(key)}
    assert not changed, f"defaults that links leave out have changed: {changed}"
    assert now == kept, "new keys: write the file again"
    assert set(links.OLD) == set(range(1, links.VERSION))


def test_a_link_of_an_older_version_has_its_defaults() -> None:
    old = RunSpec.from_query({**FIRST, "v": "1"})
    assert (old.lam, old.row_scaling) == (0.001, "unit") != (RunSpec().lam, RunSpec().row_scaling)
    assert RunSpec.from_query(address(old)) == old
    assert RunSpec.from_query({**FIRST, "v": "1", "lam": "0"}).lam == 0.0
    assert RunSpec.from_query({**FIRST, "v": "2"}).params == {"clip_norm": 1.0} != RunSpec().params
    assert RunSpec.from_query(FIRST) == RunSpec.from_query({**FIRST, "v": "6"}) == RunSpec(**{**FIRST, "epsilon": 0.5})  # type: ignore[arg-type]
    older, now = (RunSpec.from_query({"mechanism": "cms-objective", "v": v}) for v in ("3", "6"))
    assert (older.params, now.params) == ({"slack": "balanced"}, {})
    older, now = (RunSpec.from_query({"mechanism": "dp-sgd", "model": "mlp", "v": v}) for v in ("4", "6"))
    assert (older.params, now.params) == ({"sampling_rate": 0.1}, {})
    assert RunSpec.from_query({"mechanism": "objective-tight", "v": "4"}).params == {"curvature_share": 0.1}
    assert address(RunSpec()) == "/"


def test_a_default_that_changed_twice_is_that_of_the_links_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "OLD", {1: {"lam": "0.1", "seeds": "3"}, 2: {"lam": "0.2", "folds": "5"}})
    monkeypatch.setattr(links, "VERSION", 3)
    assert links.meant({"v": "1"}) == {"lam": "0.1", "seeds": "3", "folds": "5"}
    assert links.meant({"v": "2"}) == {"lam": "0.2", "folds": "5"}
    assert links.meant({"v": "3", "seeds": "7"}) == {"seeds": "7"}


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "²", "99999999999999"])
def test_a_version_that_is_not_known_is_said(text: str) -> None:
    problems: list[dpviz.InvalidInput] = []
    assert RunSpec.from_query({**FIRST, "v": text}, problems) == RunSpec.from_query(FIRST)
    assert [one.field for one in problems] == ["v"]
    with pytest.raises(dpviz.InvalidInput, match="newer" if text.startswith("9") else "no version"):
        RunSpec.from_query({**FIRST, "v": text})


def test_a_page_writes_the_version_and_reads_older_ones() -> None:
    page = opened("", v="1", epsilon="0.5")
    assert dict(page.query_params)["v"] in (str(links.VERSION), [str(links.VERSION)])
    assert page.query_params["lam"] in ("0.001", ["0.001"])
    assert page.query_params["row_scaling"] in ("unit", ["unit"])
    assert "names no version" not in _said(page)


def _said(page: object) -> str:
    return " ".join(m.value for m in page.markdown).replace("\\", "")  # type: ignore[attr-defined]


def test_a_link_without_a_version_says_what_it_meant_and_opens_so_by_one_click() -> None:
    """Run A, which such a link holds, follows."""
    page = opened("Audit", epsilon="0.5", pinned="dataset=teaching&epsilon=3", seeds="3", runs="200")
    meant = "Regularisation λ 0.001, Row scaling unit, Which row is attacked worst-case, Clip norm 1"
    assert f"Until 25 November 2026 it meant: {meant}" in _said(page)
    next(one for one in page.button if one.label == "Open it as it was meant then").click().run()
    assert not page.exception
    query = {key: value if isinstance(value, str) else value[0] for key, value in page.query_params.items()}
    assert {key: query[key] for key in ("lam", "row_scaling", "pair", "dp-gd.clip_norm")} == {
        "lam": "0.001",
        "row_scaling": "unit",
        "pair": "worst-case",
        "dp-gd.clip_norm": "1.0",
    }
    kept = RunSpec.from_query(query["pinned"])
    assert (kept.lam, kept.params) == (0.001, {"clip_norm": 1.0})
    assert "names no version" not in _said(page)
    assert _rules(page) == ["When this link was made,", "Run A: Until 28 November"]


def test_a_default_that_means_the_same_for_the_run_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    run = {"dataset": "teaching", "epsilon": "1", "row_scaling": "unit", "lam": "0.01"}
    for mechanism, names in {"dp-sgd": ["Clip norm 1"], "objective-tight": []}.items():
        said = _said(opened("", **run, mechanism=mechanism))
        shown = {name for name in ("Clip norm 1", "Sampling rate", "Curvature share") if name in said}
        assert shown == set(names)
        assert ("names no version" in said) == bool(names)
        # objective perturbation has no Gaussian releases that accountants could be compared on
        assert (
            main(["accounting", f"?{urlencode(run | {'mechanism': mechanism})}"])
            == {"dp-sgd": 0, "objective-tight": 2}[mechanism]
        )
        told = capsys.readouterr().err
        assert ("clip_norm=1" in told, "sampling_rate" in told, "curvature_share" in told) == (bool(names), False, False)
    setting = get_model("logistic").setting(100, 3, 0.001)
    assert links.changed({"lam": "0.001"}, setting, Budget(1.0)) == {}
    assert links.changed({"lam": "0.001"}, replace(setting, lam=0.002), Budget(1.0)) == {"lam": "0.001"}


def test_no_remark_where_nothing_differs_or_nothing_is_said() -> None:
    for query in ({"lam": "0.01", "row_scaling": "clip", "mechanism": "renyi-filter"}, {"v": "6"}):
        assert "names no version" not in _said(opened("", **query))
    assert "names no version" in _said(opened("Lessons", lesson="attack", epsilon="3")), "other pages are opened with this run"
    lesson = addressed("Lessons", lesson="attack")
    del lesson.query_params["dataset"], lesson.query_params["seeds"]
    assert "names no version" not in _said(lesson.run()), "a page without a run has no defaults of one"
    assert links.elsewhere({}, SETTINGS) == links.elsewhere({"v": "2", "seeds": "2"}, SETTINGS) == {}
    assert links.elsewhere({"mechanism": "dp-sgd"}, ()) == {"dp-sgd.clip_norm": "1", "dp-sgd.sampling_rate": "0.1"}


@pytest.mark.parametrize(("epsilon", "said"), [(0.01, False), (5.0, True)])
def test_a_default_whose_rule_asks_for_the_budget_is_compared_at_that_of_the_run(epsilon: float, said: bool) -> None:
    older, setting = {"objective-tight.curvature_share": "0.1"}, get_model("logistic").setting(5000, 9, 0.01)
    for facts in (setting, replace(setting, person_rows=2)):
        assert links.changed(older, facts, Budget(epsilon)) == (older if said else {})
    assert links.changed(older, replace(setting, person_rows=16), Budget(epsilon)) == {}, "a row has a sixteenth of it"


def test_other_methods_of_an_older_link_are_said_to_have_todays_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    older = {"v": "2", "mechanism": "dp-gd", "epsilon": "0.5"}
    assert set(links.of_others(older)) == {key for v in (2, 3, 4) for key in links.OLD[v] if not key.startswith("dp-gd.")}
    assert links.of_others({"v": "3"}) == {**links.OLD[3], **links.OLD[4]}
    assert links.of_others({"v": "6"}) == links.of_others({}) == {}
    assert main(["guarantees", f"?{urlencode(older)}"]) == 0
    said = capsys.readouterr().err
    assert "dp-sgd.clip_norm=1" in said
    assert "sampling_rate" not in said, "a linear model has that of then"
    assert main(["guarantees", "?dataset=teaching&v=7"]) == 0
    assert not capsys.readouterr().err


def test_a_step_rule_of_older_links_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    older = {"dataset": "teaching", "mechanism": "dp-sgd", "v": "5"}
    assert main(["accounting", f"?{urlencode(older)}"]) == 0
    assert "another rule" in capsys.readouterr().err
    assert any("another rule" in one.value for one in opened("", **older).caption)
    assert links.other_rule({"mechanism": "outpert-gd", "outpert-gd.step_size": "0.5", "v": "5"})
    assert links.other_rule(older | {"outpert-gd.steps": "9", "dp-sgd.step_size": "0"})
    assert not links.other_rule({"mechanism": "outpert-gd", "outpert-gd.steps": "9", "v": "5"})
    for same in (older | {"dp-sgd.step_size": "1.0"}, older | {"v": "6"}, older | {"mechanism": "bassily-sgd"}):
        assert main(["accounting", f"?{urlencode(same)}"]) == 0
        assert not capsys.readouterr().err
    assert not any("another rule" in one.value for one in opened("", **older | {"v": "6"}).caption)


def test_an_older_slack_is_named_where_it_was_another_one_only() -> None:
    older = {"cms-objective.slack": "balanced"}
    settings = {model: get_model(model).setting(100, 3, 0.1) for model in ("logistic", "svm", "mlp")}
    named = {model: links.changed(older, setting, Budget(1.0)) for model, setting in settings.items()}
    assert named == {"logistic": older, "svm": {}, "mlp": {}}


def test_a_setting_that_is_gone_is_named_with_what_the_run_has_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    older = {"dataset": "teaching", "mechanism": "renyi-filter", "renyi-filter.when_spent": "give what is left"}
    problems: list[dpviz.InvalidInput] = []
    assert RunSpec.from_query(older, problems) == RunSpec("teaching", mechanism="renyi-filter")
    assert [(one.field, "leaves, as published" in one.cause) for one in problems] == [("renyi-filter.when_spent", True)]
    assert main(["accounting", f"?{urlencode(older)}"]) == 2
    assert "it used up what was left then" in capsys.readouterr().err
    assert any("it used up what was left then" in one.value for one in opened("", **older).warning)
    for same in (older | {"renyi-filter.when_spent": "leave"}, older | {"mechanism": "dp-gd"}):
        assert RunSpec.from_query(same).mechanism == same["mechanism"]


@pytest.mark.long
def test_a_page_of_several_methods_says_so_too() -> None:
    said = "the default was Clip norm 1. These methods have today’s default here: DP-SGD."
    page = opened("Trade-off", v="2", methods="dp-gd,dp-sgd,objective-tight", points="2")
    assert any(said in caption.value.replace("\\", "") for caption in page.caption)
    assert not any("the default was" in caption.value for caption in opened("Trade-off", v="6", methods="dp-gd,dp-sgd").caption)


def test_the_commands_read_the_version_of_a_link(capsys: pytest.CaptureFixture[str]) -> None:
    def lam(link: str) -> tuple[float, str]:
        assert main(["run", link, "--json"]) == 0
        out, error = capsys.readouterr()
        return json.loads(out)["run"]["lam"], error

    assert lam("?dataset=teaching&seeds=1") == (0.0, "")  # programs read the run in the answer
    assert main(["run", "?dataset=teaching&seeds=1"]) == 0
    remark = capsys.readouterr().err
    assert "until 25 November 2026 it meant lam=0.001, row_scaling=unit, dp-gd.clip_norm=1." in remark
    assert "&v=1" in remark
    assert lam("?dataset=teaching&seeds=1&v=1") == (0.001, "")
    assert lam("?dataset=teaching&seeds=1&v=3") == (0.0, "")
    assert main(["run", "?dataset=teaching&v=9"]) == 2
    assert "newer dpviz" in capsys.readouterr().err
    assert dict(parse_qsl(address(RunSpec("iris"))[1:])) == {"dataset": "iris", "v": str(links.VERSION)}


def _rules(page: object) -> list[str]:
    """The beginnings of the notes on other rules of steps."""
    return [" ".join(m.value.replace("\\", "").split()[:5]) for m in page.caption if "another rule" in m.value]  # type: ignore[attr-defined]


def test_links_without_a_version_and_run_a_may_have_other_steps() -> None:
    run = {"dataset": "teaching", "mechanism": "dp-sgd"}
    assert _rules(opened("", **run)) == ["Until 28 November 2026 automatic"]
    kept = "dataset=teaching&mechanism=dp-sgd&v=5"
    assert _rules(opened("", **run, v="6", pinned=kept)) == ["Run A: When this link"]
    assert _rules(opened("", **run, v="6", pinned=kept.replace("5", "6"))) == _rules(opened("", v="6")) == []


if __name__ == "__main__":
    KEPT.write_text(json.dumps({"version": links.VERSION, "defaults": defaults()}, indent=1) + "\n")
