"""Numbers that an earlier version gave, kept: a change of one that nobody meant is seen here, in every form of every mechanism.

Other tests say why a number is right; this one says that it is still the same, of what mechanisms, accountants and audits give.
Closed forms and searches have no numbers here: their own tests compare each with another formula. Where a change is meant,
`python tests/test_kept_numbers.py` writes the numbers anew, and the difference in kept_numbers.json is read before it is
committed.
"""

# ruff: noqa: B023 (what is defined in a loop is called before the loop goes on)
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import make_problem, options
from support_kept import Numbers, kept_or_refused, numbers, same

import dpviz
from dpviz.auditing import audit, one_run
from dpviz.auditing.pairs import battery, worst_case
from dpviz.common.random import spawn
from dpviz.mechanisms import Mechanism, Training, get_mechanism
from dpviz.mechanisms import capabilities as can
from dpviz.models import get_model
from dpviz.privacy.accounting import account, events, rdp, side_by_side, tables
from dpviz.privacy.accounting.accountants.registry import list_accountants
from dpviz.privacy.accounting.methods import ROUTES, Method
from dpviz.privacy.budget import Budget, Neighbouring

KEPT = Path(__file__).with_name("kept_numbers.json")

# ---- mechanisms -------------------------------------------------------------------------------------------------------

SHAPES = {"small": (60, 3, 0.05), "large": (20_000, 30, 1e-3)}
BUDGETS = (Budget(0.3, 1e-6), Budget(4.0, 1e-5), Budget(1.0))
EIGENVALUES = np.array([0.06, 0.1, 0.3])


def forms(name: str) -> Iterator[dict[str, Any]]:
    """Every option on its own, and every number of the mechanism set to another value than its default."""
    yield from options(name)
    for knob, declared in dpviz.list_mechanisms()[name].knobs().items():
        default = dpviz.list_mechanisms()[name].defaults()[knob]
        if isinstance(default, int | float) and not isinstance(default, bool):
            yield {knob: _other(declared, default)}


def _other(declared: Any, default: float) -> float:
    """A value near the default, or in the middle of what is allowed where the default stands for a rule."""
    value = 0.7 * default if default and 0.7 * default >= declared.low else math.sqrt(max(declared.low, 1e-3) * declared.high)
    return max(round(value), math.ceil(declared.low)) if isinstance(default, int) else value


def of_calibration(built: Mechanism, model: str, shape: tuple[int, int, float], budget: Budget) -> Any:
    """What a mechanism declares for a problem of this shape."""
    setting = get_model(model).setting(*shape)
    if built.refusal(setting) is not None:
        return None
    declared = built.calibrate(setting, budget)
    found: dict[str, Any] = {"calibration": declared, "settled": built.settled(setting, budget)}
    if isinstance(built, can.BoundsSensitivity):
        found["bounds"] = built.sensitivity_bounds(setting)
    if isinstance(built, can.DeclaresEvent):
        found["event"] = built.released(setting, declared)
    if isinstance(built, can.HasExcessTheory):
        found["excess"] = built.excess_theory(setting, declared.noise_scale, 0.3, EIGENVALUES)
    if isinstance(built, can.CountsSteps):
        found["steps"] = built.step_count(setting)
    return found


def of_training(built: Mechanism, model: str, budgets: Sequence[Budget], *, pair: bool) -> Any:
    """What a mechanism trains on 60 rows, and what it says of them and of its worst pair."""
    problem = make_problem(n=60, d=3, lam=0.05, model=model)
    # which of the optima that differ by signs of hidden units is found, rounding decides
    at_optimum = built.id == "non-private" or (isinstance(built, can.ChoosesStart) and not built.public_start)
    if built.refusal(problem.setting) is not None or (at_optimum and not problem.setting.linear):
        return None
    declared = [built.calibrate(problem.setting, budget) for budget in budgets]
    fit = built.fit(Training(problem, declared, spawn(5, 2)))
    found: dict[str, Any] = {"fit": fit}
    if pair:
        found["unrecorded"] = built.fit(Training(problem, declared, spawn(5, 2), record=False)).record
    for e, calibration in enumerate(declared):
        if isinstance(built, can.IndividualBudget):
            found[f"individual {e}"] = built.individual(problem, calibration, fit.theta[e], fit.record.at(e))
        if isinstance(built, can.HasRule):
            found[f"rules {e}"] = built.rule_views(problem, calibration)
    if isinstance(built, can.ProtectsQuery):
        found["query"] = built.query(problem, fit.theta[0], spawn(6, 2))
    if isinstance(built, can.NoisesRows):
        found["rows"] = built.noisy_rows(problem, declared[0], spawn(7, 1)[0])
    if isinstance(built, can.HasTrace):
        found["trace"] = built.sensitivity_trace(problem.setting)
    if pair:
        worst = worst_case(built, problem.model, budgets[-1], n=20)
        found["pair"] = [(p.rows.X, p.rows.y) for p in (worst.first, worst.second)]
    return found


def of_mechanism(name: str) -> dict[str, Numbers]:
    """All that is kept of one mechanism, by what it is."""
    found: dict[str, Numbers] = {}
    for params in forms(name):
        form = " ".join([name, *(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items())])
        built = get_mechanism(name).from_params(params)
        one_number = any(isinstance(v, int | float) and not isinstance(v, bool) for v in params.values())
        for size, shape in SHAPES.items():
            for model in ("logistic", "svm", "mlp") if not params else ("logistic",) if one_number else ("logistic", "mlp"):
                for budget in BUDGETS[:1] if one_number or size == "large" else BUDGETS:
                    what = f"{form}: {model}, {size}, {budget}"
                    found[what] = kept_or_refused(lambda: of_calibration(built, model, shape, budget))
        for model in ("logistic", "mlp") if not params else ("logistic",):
            budgets = BUDGETS[:1] if one_number else BUDGETS[:2]
            found[f"{form}: {model}, trained"] = kept_or_refused(lambda: of_training(built, model, budgets, pair=not params))
    return found


# ---- accountants ------------------------------------------------------------------------------------------------------

SUM = events.Gaussian.of_rows(1.0, 1.3)
EVENTS: dict[str, events.Event] = {
    "one sum": SUM,
    "sums": events.Repeated(events.Gaussian(2.0, 30.0), 50),
    "DP-SGD": events.Repeated(events.Sampled(SUM, 0.02), 300),
    "rare": events.Repeated(events.Sampled(events.Gaussian.of_rows(1.0, 0.8), 2e-3), 3),
    "half": events.Repeated(events.Sampled(events.Gaussian.of_rows(1.0, 4.0), 0.5), 7),
    "one batch": events.Sampled(events.Gaussian.of_rows(1.0, 0.4), 0.1),
    "all rows": events.Repeated(events.Sampled(events.Gaussian.of_rows(1.0, 9.0), 1.0), 20),
    "equal batches": events.Repeated(events.Sampled(events.Gaussian(2.0, 2.5, 1.0), 0.05, "without-replacement"), 100),
    "fixed batches": events.Repeated(events.Sampled(events.Gaussian(2.0, 12.0, 1.0), 0.1, "fixed"), 40),
    "positions": events.Mixture.of(np.array([0.1, 0.5, 1.4]), np.array([0.5, 0.3, 0.2])),
    "pure": events.Repeated(events.PureEpsilon(0.2), 12),
    "shuffled": events.Shuffled(events.PureEpsilon(1.5), 5000),
    "shuffled sums": events.Shuffled(events.Gaussian(2.0, 1.1), 20_000),
    "several": events.Composed((SUM, events.Repeated(events.Sampled(SUM, 0.01), 200), events.PureEpsilon(0.3))),
}
DELTAS = (1e-6, 1e-5)


def _methods() -> Iterator[Method]:
    for name in list_accountants():
        for relation in Neighbouring:
            for route in ROUTES if relation is Neighbouring.REPLACE_ONE else ("none",):
                for conversion in rdp.CONVERSIONS if name in ("rdp", "zcdp") else ("cks",):
                    yield Method(name, relation, route, conversion)


def of_event(event: events.Event) -> dict[str, Numbers]:
    """What every accountant says of an event."""
    found: dict[str, Numbers] = {}
    for method in _methods():
        what = " ".join([method.accountant, method.relation.value, method.route, method.conversion])
        for delta in DELTAS:
            found[f"epsilon, {what} {delta:g}"] = kept_or_refused(lambda: account.epsilon(event, method, delta))
        found[f"log delta, {what}"] = kept_or_refused(lambda: [account.log_delta(event, method, e) for e in (0.0, 0.4, 3.0)])
        found[f"noise, {what}"] = kept_or_refused(lambda: account.noise_for(event, method, Budget(0.7, DELTAS[-1])))
    for name, table in {
        "Rényi": lambda: tables.renyi_curve(event, DELTAS[0]),
        "relations": lambda: tables.relations(event, DELTAS[0]),
        "delta": lambda: tables.delta_curve(event, DELTAS[0], 5),
        "accountants": lambda: side_by_side.options(event, Budget(0.7, DELTAS[0])),
    }.items():
        found[name] = kept_or_refused(table)
    if all(step.sampling == "full" for step in events.steps_of(event)):  # batches take ten seconds and more
        found["attack"] = kept_or_refused(lambda: tables.attack(event, DELTAS[0]))
    return found


# ---- audits -----------------------------------------------------------------------------------------------------------


def of_audits() -> dict[str, Numbers]:
    """Audits with fixed seeds, of every way to score."""
    found: dict[str, Numbers] = {}
    budget = Budget(1.0, 1e-5)
    for name in "output-gaussian cms-output objective-tight dp-gd dp-sgd majority ldp-duchi input-perturbation".split():
        built, model = get_mechanism(name)(), get_model("logistic")
        for pair in battery(built, model, n=20, d=3, budget=budget):
            found[f"{name}, {pair.name}"] = kept_or_refused(lambda: audit(built, pair.first, pair.second, budget, runs=60))
        found[f"{name}, one run"] = kept_or_refused(
            lambda: one_run.audit_one_run(built, one_run.on_axes(built, model, budget, 30), budget)
        )
    return found


# ---- the tests --------------------------------------------------------------------------------------------------------

GROUPS: dict[str, Callable[[], dict[str, Numbers]]] = {
    **{name: lambda name=name: of_mechanism(name) for name in dpviz.list_mechanisms()},
    **{f"event: {name}": lambda event=event: of_event(event) for name, event in EVENTS.items()},
    "audits": of_audits,
}


def without_refusals(found: dict[str, Numbers]) -> dict[str, Numbers]:
    """What has numbers: a form that is refused from now on, or no longer, is seen by its name."""
    return {what: values for what, values in found.items() if values[:1] != ["refused"]}


@pytest.mark.parametrize("group", GROUPS)
def test_numbers_are_those_that_were_kept(group: str) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8")).get(group, {})
    found = json.loads(json.dumps(without_refusals(GROUPS[group]())))
    assert found.keys() == kept.keys(), "other forms than were kept: write them anew, and read the difference"
    other = [f"{what}: {found[what]}, kept {kept[what]}" for what in kept if not same(found[what], kept[what])]
    assert not other, "\n".join(other[:5])


def test_a_change_is_seen() -> None:
    kept = [1.0, "dp-gd", [2, 3], True, 1e-30]
    assert same(kept, [1.0 + 1e-9, "dp-gd", [2, 3], True, 0.0])
    for changed in ([1.00001, *kept[1:]], kept[:-1], [1.0, "dp-sgd", *kept[2:]], [*kept[:2], [2, 4], *kept[3:]]):
        assert not same(kept, changed)


def test_a_small_coordinate_may_differ_by_what_single_precision_leaves_of_the_largest() -> None:
    kept = numbers((np.array([5.0, 0.04]), 0.04))
    assert same([2, [2], 5.0, 0.04 + 2e-6, 0.04], kept)
    assert not same([2, [2], 5.0, 0.04 + 6e-6, 0.04], kept)
    assert not same([2, [2], 5.0, 0.04, 0.04 + 2e-6], kept), "a number of its own"


def main(groups: list[str]) -> None:
    """Writes the numbers of some groups anew, of all by default."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    wanted = groups or list(GROUPS)
    found = {group: without_refusals(compute()) if group in wanted else kept[group] for group, compute in GROUPS.items()}
    lines = [
        f"{json.dumps(group)}: {{\n"
        + ",\n".join(f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v)}" for k, v in kept.items())
        for group, kept in found.items()
    ]
    KEPT.write_text("{\n" + "\n},\n".join(lines) + "\n}\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
