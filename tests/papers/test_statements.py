"""Checks of what papers say: each can come out either way. And the presets that they belong to."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import make_problem

import dpviz
from dpviz.common.random import spawn
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import Training
from dpviz.papers import checks
from dpviz.papers.claims import list_claims
from dpviz.papers.figures import catalogue, networks
from dpviz.papers.numbers import difference
from dpviz.papers.sentences import STARTED
from dpviz.papers.verdict import Outcome, Scope
from dpviz.privacy.budget import Budget, Status
from dpviz.privacy.noise import GAUSSIAN

SPREAD = (-0.0005, -0.0002, 0.0002, 0.0005)  # of four noise draws around their mean: far below every threshold


@pytest.fixture(autouse=True)
def empty_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one's own would take the place of the sets that these tests speak of."""
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))


def table(quantity: str = "accuracy", spread: Sequence[float] = SPREAD, **means: Sequence[float]) -> pd.DataFrame:
    """A sweep's table on one dataset; the objective of a model that says nothing is ln 2, and 0.5 the least."""
    made = {"dataset": "made up", "model": "logistic", "accuracy": 0.5, "optimality_gap": 0.1, "objective": 0.6}
    said = {"status": "proved", "neighbouring": "replace-one", "claimed_epsilon": 1.0, "proved_epsilon": 1.0}
    beside = {"expected_accuracy": float("nan"), "non_private_accuracy": 0.9, "majority_accuracy": 0.6}
    rows = [
        (made | said | beside | {"mechanism": name, "epsilon": 10.0**k, "seed": seed})
        | {quantity: value + away if quantity == "accuracy" else value * (1 + away)}
        | ({"objective": 0.5 + value * (1 + away)} if quantity == "optimality_gap" else {})
        for name, values in means.items()
        for k, value in enumerate(values)
        for seed, away in enumerate(np.roll(spread, (0, 1, 0, 2)[k % 4]))  # neighbours do not share luck
    ]
    return pd.DataFrame(rows)


FLAT = [0.6, 0.7, 0.8, 0.9]
GAP, OBJECTIVE = "optimality_gap", "objective"
CASES: list[tuple[checks.Check, Mapping[str, object], Mapping[str, object]]] = [
    (checks.rises(["a"]), {"a": FLAT}, {"a": [0.6, 0.7, 0.65, 0.9]}),
    (checks.rises(["a"]), {"a": [0.6, 0.595, 0.7, 0.9]}, {"a": [0.6, 0.595, 0.59, 0.585]}),
    (checks.rises(["a"], GAP), {"quantity": GAP, "a": [1, 0.1, 0.12, 0.01]}, {"quantity": GAP, "a": [1, 0.01, 0.1, 0.005]}),
    (checks.matches("a", ["b", "c"]), {"a": FLAT, "b": [0.605, 0.5, 0.5, 0.5]}, {"a": FLAT, "b": [0.62, 0.5, 0.5, 0.5]}),
    (
        checks.matches("a", ["b", "c"], OBJECTIVE),
        {"quantity": OBJECTIVE, "a": [0.505, 0.4], "b": [0.5, 0.5], "c": [0.6, 0.5]},
        {"quantity": OBJECTIVE, "a": [0.52, 0.4], "b": [0.5, 0.5], "c": [0.6, 0.5]},
    ),
    (checks.matches("a", ["b"], margin=-0.005), {"a": [0.62, 0.708], "b": FLAT[:2]}, {"a": [0.62, 0.702], "b": FLAT[:2]}),
    (checks.leads("a", "b"), {"a": FLAT, "b": [0.6, 0.7, 0.75, 0.89]}, {"a": FLAT, "b": [0.6, 0.7, 0.8, 0.91]}),
    (checks.leads("a", "b", GAP), {"quantity": GAP, "a": [0.1], "b": [0.2]}, {"quantity": GAP, "a": [0.2], "b": [0.1]}),
    (checks.resembles("a", ["b", "c"]), {"a": FLAT, "b": [0, 0, 0, 0], "c": FLAT}, {"a": FLAT, "b": [0.7, 0.8, 0.9, 1.0]}),
    (
        checks.resembles("a", ["b"], GAP),
        {"quantity": GAP, "a": [0.1, 0.1], "b": [0.19, 0.06]},
        {"quantity": GAP, "a": [0.1, 0.1], "b": [0.03, 0.03]},
    ),
    (checks.grows_apart("a", "b"), {"a": FLAT, "b": [0.6, 0.7, 0.7, 0.7]}, {"a": FLAT, "b": [0.5, 0.6, 0.79, 0.89]}),
    (checks.grows_apart("a", "b"), {"a": FLAT, "b": [0.6, 0.7, 0.7, 0.7]}, {"a": FLAT, "b": [0.8, 0.8, 0.81, 0.91]}),
    (checks.has_small_gap("a"), {"quantity": GAP, "a": [1, 0.0015]}, {"quantity": GAP, "a": [0.001, 0.0025]}),
    (checks.fluctuates(["a"]), {"a": [0.6, 0.8, 0.6, 0.9]}, {"a": FLAT}),
    (checks.fluctuates(["a", "b"]), {"a": FLAT, "b": [0.6, 0.8, 0.6, 0.9]}, {"a": FLAT, "b": FLAT}),
    (checks.surges("a"), {"a": [0.6, 0.6, 0.895, 0.9]}, {"a": FLAT}),
    (checks.surges("a"), {"a": [0.2, 0.7, 0.71, 0.9]}, {"a": [0.1, 0.6, 0.8, 0.9]}),
]


@pytest.mark.parametrize(("check", "yes", "no"), CASES)
def test_checks_can_come_out_either_way(
    check: checks.Check, yes: Mapping[str, Sequence[float]], no: Mapping[str, Sequence[float]]
) -> None:
    assert check(table(**yes)).outcome is Outcome.HOLDS
    verdict = check(table(**no))
    assert verdict.outcome is Outcome.FAILS
    assert verdict.because
    assert verdict.rule
    assert check(table(other=FLAT)).outcome is Outcome.UNDECIDED
    assert check(pd.DataFrame()).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("check", "yes", "no"), CASES)
def test_what_noise_alone_explains_is_undecided(
    check: checks.Check, yes: Mapping[str, Sequence[float]], no: Mapping[str, Sequence[float]]
) -> None:
    """The same means from four draws that differ by as much as the whole picture."""
    wild = {"accuracy": (-0.6, -0.1, 0.2, 0.5), GAP: (-0.999, -0.999, -0.999, 2.997), OBJECTIVE: (-0.9, -0.1, 0.2, 0.8)}
    for case in (yes, no):
        spread = wild[str(case.get("quantity", "accuracy"))]
        assert check(table(spread=spread, **case)).outcome is Outcome.UNDECIDED, check.meaning


ACCURACY_RULES = [check for check, yes, _ in CASES if "quantity" not in yes]


@pytest.mark.parametrize("check", ACCURACY_RULES)
def test_where_nothing_can_be_gained_no_rule_decides(check: checks.Check) -> None:
    """All methods are within a point of majority: whether ahead, similar or rising, the data cannot show it."""
    near = {"a": [0.9, 0.9015, 0.903], "b": [0.9, 0.8965, 0.8965], "c": [0.9, 0.9, 0.9]}
    tied = table(spread=(-1e-5, 1e-5, 2e-5, -2e-5), **near).assign(non_private_accuracy=0.9001, majority_accuracy=0.9)
    verdict = check(tied)
    assert verdict.outcome is Outcome.UNDECIDED, verdict.because
    far = check(tied.assign(non_private_accuracy=0.97))
    assert "all methods lie within" not in far.because, "control: there was something to gain"


def test_one_dataset_cannot_refute_a_sentence_about_some_or_most() -> None:
    bad, good = table(a=FLAT, b=[0.7, 0.8, 0.9, 1.0]), table(a=FLAT, b=[0.5, 0.6, 0.7, 0.8]).assign(dataset="another")
    third = bad.assign(dataset="a third")
    for scope, both, all_three in (
        (Scope.EVERY, Outcome.FAILS, Outcome.FAILS),
        (Scope.MOST, Outcome.FAILS, Outcome.FAILS),
        (Scope.SOME, Outcome.HOLDS, Outcome.HOLDS),
    ):
        check = checks.leads("a", "b", scope=scope)
        assert check(good).outcome is Outcome.HOLDS
        assert check(bad).outcome is (Outcome.FAILS if scope is Scope.EVERY else Outcome.UNDECIDED)
        assert check(pd.concat([bad, good])).outcome is both
        assert check(pd.concat([bad, good, third])).outcome is all_three
    assert checks.leads("a", "b", scope=Scope.MOST)(pd.concat([good, good.assign(dataset="x"), bad])).outcome is Outcome.HOLDS


def test_a_figure_and_the_claim_about_the_same_thing_share_one_check() -> None:
    claims, linked = list_claims(), [(figure, one) for figure in catalogue.FIGURES for one in figure.statements if one.claim]
    for figure, one in linked:
        assert claims[one.claim].check is one.check, one.text
        assert claims[one.claim].paper == figure.paper
    assert len(linked) >= 12
    checked = {c.id for c in claims.values() if c.check is not None and not c.id.endswith("-mlp")}
    assert checked == {one.claim for _, one in linked}


@pytest.mark.parametrize(("claim", "mechanism"), [("pidp-gap-zero", "pidp-sgd"), ("dbdp-gap-zero", "dbdp-pi")])
def test_a_gap_that_the_claim_calls_small_is_small_in_the_figure(claim: str, mechanism: str) -> None:
    """`pidp-2` called a gap large that the claim called almost zero: one measured it in points of loss, one in shares."""
    one = next(s for f in catalogue.FIGURES for s in f.statements if s.claim == claim)
    for gap, small in ((0.0015, True), (0.0025, False)):
        computed = table("optimality_gap", **{mechanism: [1.0, gap]})
        verdict = one.judge(computed, {mechanism: {}})
        assert verdict.outcome is (Outcome.ONLY_IF if small else Outcome.UNDECIDED)
        assert verdict.condition == (STARTED if small else "")
        assert one.judge(computed, {mechanism: {"start": "zero"}}).condition == ""


@pytest.mark.parametrize("name", catalogue.PANELS)
def test_every_panel_can_be_set_up(name: str) -> None:
    figure, panel = catalogue.PANELS[name]
    setup = catalogue.setup(name)
    spec = SweepSpec(epsilons=[setup.figure.low, setup.figure.high], **setup.values)
    assert len(spec.named) >= 2
    assert figure.statements
    assert figure.section
    if spec.dataset != panel.dataset:
        assert any(panel.dataset in note for note in setup.notes), "what was replaced is said"
    assert spec.model == panel.model, "never another model under the figure's name"
    clips = [build["clip_norm"] for name, build in spec.named.items() if "clip_norm" in dpviz.list_mechanisms()[name].knobs()]
    assert set(clips) <= {1.0}, "papers clip no gradient of a linear model"
    rates = [build["sampling_rate"] for name, build in spec.named.items() if name == "dp-sgd"]
    assert all(rates), "as the paper says or 0.1, and by no rule of n"
    for mechanism in set(figure.methods) - set(spec.named):
        assert any(figure.methods[mechanism].name in note for note in setup.notes)


@pytest.mark.parametrize("name", networks.METHODS)
def test_networks_have_the_published_noise_and_no_guarantee(name: str) -> None:
    """Noise by hand at G = 1, L = 1/step = 0.51 and mu = 0.01; the draws are recovered from what is trained."""
    problem, method, epsilon, delta = make_problem(n=200, lam=0.01, model="mlp-4"), networks.METHODS[name], 50.0, 1e-5
    assert method.refusal(problem.setting), "no run can have it"
    assert method not in dpviz.list_mechanisms().values()
    cal = method(**catalogue.PANELS["ip-2-adult-mlp"][0].knobs[name]).calibrate(problem.setting, Budget(epsilon, delta))
    assert (cal.status, cal.proved_budget, cal.claimed_budget) == (Status.NONE, None, None)
    theta = method().fit(Training(problem, [cal], spawn(3, 2), record=False)).theta[0]
    if name == "outpert-gd":
        scale, found = 5 * 0.52 / (200 * 0.01 * 0.51) * math.sqrt(2 * math.log(2 / delta)) / epsilon, theta - problem.optimum
    else:
        scale, extra = 2 * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon, 2 * 0.5 / epsilon
        found = -problem.model.sum_gradient(theta, problem.rows) - (200 * 0.01 + extra) * theta
    np.testing.assert_allclose(found, scale * GAUSSIAN.sample(spawn(3, 2), problem.m), atol=1e-4)


def test_a_table_in_the_data_folder_is_taken_for_the_papers_set(tmp_path: Path) -> None:
    rows = "\n".join(f"{k % 50},{'yes' if k % 3 else 'no'}" for k in range(200))
    (tmp_path / "bank.csv").write_text(f"age,label\n{rows}\n")
    setup = catalogue.setup("chen-1-bank")
    assert setup.values["dataset"] == "data/bank.csv"
    assert any("200" in note for note in setup.notes), "that it has other rows is said"
    assert catalogue.setup("dbdp-1-bank-lr").values["dataset"] == "data/bank.csv", "the nearest set, before any synthetic one"
    (tmp_path / "IPUMS-BR.dat").write_text("\n".join(f"{k % 7} {k % 5} {k % 3 // 2}" for k in range(200)))
    assert catalogue.setup("chen-1-ipums-br").values["dataset"] == "data/IPUMS-BR.dat"
    (tmp_path / "bank.csv").write_text("age,label\n1")
    setup = catalogue.setup("chen-1-bank")
    assert setup.values["dataset"] == "census-45211"
    assert any("data/bank.csv was not taken: file: line 2 has 1 value where" in note for note in setup.notes)


def on_splits(quantity: str, a: Sequence[float], b: Sequence[float]) -> pd.DataFrame:
    """The same place on several splits, with one value of each method on each."""
    return pd.concat(
        [table(quantity, a=[x], b=[y]).assign(split=k) for k, (x, y) in enumerate(zip(a, b, strict=True))], ignore_index=True
    )


def test_methods_are_paired_over_splits_and_a_split_is_one_observation() -> None:
    """No lead, but two points from one split to the next, and hardly any noise: five splits decide wrongly once in a hundred."""
    rng, decided = np.random.default_rng(0), {1: 0, 5: 0}
    for count in 200 * [*decided]:
        level, lead = rng.normal(0.8, 0.1, (count, 1)), rng.normal(0.0, 0.02, (count, 1))
        index = pd.MultiIndex.from_product([range(count), range(4)], names=["split", "seed"])
        sides = [pd.Series((rng.permuted([SPREAD] * count, axis=1) + of).ravel(), index) for of in (level + lead, level)]
        found = difference(*(sides if count > 1 else [side.droplevel("split") for side in sides]))
        decided[count] += found.at_least(0.0) is not None
    assert decided[5] <= 6
    assert decided[1] > 180, "the control: on one split noise alone counts"
    noisy = pd.concat([table(spread=(-0.4, -0.1, 0.1, 0.4), a=[0.6], b=[0.5]).assign(split=k) for k in range(5)])
    assert checks.leads("a", "b")(noisy).outcome is Outcome.UNDECIDED, "splits that agree by luck"
    levels, turns = np.array([0.5, 0.6, 0.7, 0.8, 0.9]), np.array([1, -1, 1, -1, 1])
    for quantity, better, mixed in (
        ("accuracy", levels + 0.01, levels + 0.01 * turns),
        (GAP, levels / 1.1, levels * (1 + 0.1 * turns)),
    ):
        check = checks.leads("a", "b", quantity)
        assert check(on_splits(quantity, better, levels)).outcome is Outcome.HOLDS, "what all splits share hides no lead"
        assert check(on_splits(quantity, mixed, levels)).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("check", "better", "worse"),
    [
        (checks.resembles("a", ["b"]), {"a": np.add(FLAT, 0.05), "b": FLAT}, {"a": np.add(FLAT, -0.05), "b": FLAT}),
        (checks.close_at_start("a", "b"), {"a": np.add(FLAT, 0.05), "b": FLAT}, None),
    ],
)
def test_a_method_that_does_more_than_a_sentence_says_does_not_fail(
    check: checks.Check, better: Mapping[str, Sequence[float]], worse: Mapping[str, Sequence[float]] | None
) -> None:
    assert check(table(a=FLAT, b=FLAT)).outcome is Outcome.HOLDS
    assert check(table(**better)).outcome is Outcome.BETTER
    assert worse is None or check(table(**worse)).outcome is Outcome.FAILS
    if worse is not None:
        both = pd.concat([table(**better), table(**worse).assign(dataset="another")])
        assert check(both).outcome is Outcome.FAILS, "one real failure is one"
