"""Examples of `dpviz.mechanisms`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from support import make_problem, noisy_sums, options
from support_kept import kept_or_refused, refusal

import dpviz
from dpviz.auditing.pairs import worst_case
from dpviz.common.random import spawn
from dpviz.mechanisms import Mechanism, Training, attack, get_mechanism, persons, protection, registry, rules
from dpviz.mechanisms import capabilities as can
from dpviz.models import get_model
from dpviz.models.products import SparseProducts
from dpviz.privacy.accounting.events import Gaussian
from dpviz.privacy.budget import Budget


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
    found: dict[str, Any] = {"calibration": declared, "settled": built.settle(setting, budget)}
    if isinstance(built, can.BoundsSensitivity):
        found["bounds"] = built.sensitivity_bounds(setting)
    if isinstance(built, can.DeclaresEvent):
        found["event"] = built.released_event(setting, declared)
    if isinstance(built, can.HasExcessTheory):
        found["excess"] = built.excess_theory(setting, declared.noise_scale, 0.3, np.array([0.06, 0.1, 0.3]))
    if isinstance(built, can.CountsSteps):
        found["steps"] = built.step_count(setting)
    return found


def of_training(built: Mechanism, model: str, budgets: Sequence[Budget], *, pair: bool, n: int = 60) -> Any:
    """What a mechanism trains on n rows, and what it says of them and of its worst pair."""
    problem = make_problem(n=n, d=3, lam=0.05, model=model)
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
            found[f"individual {e}"] = built.individual(problem, calibration, fit.theta[e], fit.record.select(e))
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


def forms_examples() -> Iterator[Any]:
    """What every form of a mechanism declares, in numbers and in words, and what it trains in a few steps."""
    shape, budget = (203, 6, 0.02), Budget(0.7, 1e-5)
    every = [
        (name, params, get_mechanism(name).from_params(params)) for name in registry.list_mechanisms() for params in forms(name)
    ]
    yield from [
        *([name, params, of_calibration(one, "logistic", shape, budget)] for name, params, one in every),
        "\n".join(
            f"{name} {params}: " + "; ".join((c.query, c.sensitivity_source, c.accountant, c.conversion, *c.conditions, *c.notes))
            for name, params, one in every
            for c in [one.calibrate(get_model("logistic").setting(*shape), budget)]
        ),
        *(
            [
                name,
                params,
                of_training(get_mechanism(name).from_params(params | short), "logistic", [budget], pair=not params, n=24),
            ]
            for name, mechanism in registry.list_mechanisms().items()
            for short in [{k: v for k, v in {"epochs": 3, "rounds": 2, "local_steps": 5}.items() if k in mechanism.knobs()}]
            # each option alone, and all numbers
            for params in (
                *options(name),
                {k: v for other, one, _ in every if other == name and one not in [*options(name)] for k, v in one.items()},
            )
        ),
    ]


def mechanisms_examples() -> Iterator[Any]:
    """What every mechanism says beside its calibration, and what it offers to set."""
    problem, budget, built = make_problem(), Budget(1.0, 0.001), [cls() for cls in registry.list_mechanisms().values()]
    yield from [
        [
            [
                [b.id, k, *(v for v in vars(knob).values() if isinstance(v, bool | int | float | tuple))]
                for k, knob in b.knobs().items()
            ]
            for b in built
        ],
        [[b.id, *vars(b).values()] for b in built],
        "\n".join(
            f"{b.id} {k}: {knob.label} {getattr(knob, 'unit', '')}: {knob.describe()}; {knob.automatic}"
            for b in built
            for k, knob in b.knobs().items()
        ),
        [
            [b.id, b.excess_theory(problem.setting, scale, 0.3, np.array([0.05, 0.1, 0.2, 0.25]))]
            for b in [*built, dpviz.RunSpec(mechanism="dp-gd", params={"steps": 20, "clip_norm": 1.0, "step_size": 0.5}).build()]
            if isinstance(b, can.HasExcessTheory)
            for scale in (0.01, 0.7)
        ],
        [
            [b.id, b.sensitivity_trace(setting), b.noise_in_steps(setting)]
            for setting in [replace(problem.setting, n=n) for n in (203, 2003)]
            for b in built
            if isinstance(b, can.HasTrace)
        ],
        [
            [b.id, pair and [[one.rows.X[[0, 1, -1]], one.rows.y[[0, 1, -1]], one.n, one.lam] for one in pair]]
            for b in built
            if isinstance(b, can.HasWorstPair)
            for n in (3, 4, 7)
            for pair in [b.worst_pair(problem.model, replace(problem.setting, n=n))]
        ],
        [
            [b.id, protection.settle(b, problem.setting, budget).query(problem, np.ones((2, 4)) / 3, spawn(5, 2))]
            for b in built
            if isinstance(b, can.ProtectsQuery)
        ],
        [b.step_count(problem.setting) for b in built if isinstance(b, can.CountsSteps)],
        # what follows from noise and from other settings, where one of them is set
        [
            [
                b.id,
                k,
                *kept_or_refused(
                    lambda c=changed, shape=shape: [
                        [
                            one.noise_scale,
                            one.sensitivity,
                            one.status,
                            *vars(protection.settle(c, problem.setting, budget)).values(),
                        ]
                        for one in [protection.calibrate(c, *shape)]
                    ]
                ),
            ]
            for shape in [(replace(problem.setting, n=1003), Budget(2.0, 1e-4))]
            for b in built
            for k, knob in b.knobs().items()
            for value in knob.candidates(protection.knob_value(b, k, problem.setting, budget), 3)[-1:]
            for changed in [replace(b, **{k: value})]
        ],
        [
            protection.preparation_budget([dpviz.common.paid.Paid(*one) for one in paid], 1e-5)
            for paid in ([("a", "b", 0.0, 0.3)], [("a", "b", 0.0, 0.3), ("c", "d", 0.2), ("e", "f", 0.4)])
        ],
        "\n".join(
            refusal(lambda m=m, k=k: registry.get_knob(m, k, "tune"))
            for m, k in (("dp-gd", "steps"), ("dp-gd", "step"), ("non-private", "steps"), ("dp-gb", "steps"))
        ),
        [
            [
                a.accuracy,
                a.accuracy_by_budget,
                a.table,
                a.best[1] - a.best[0],  # the maximum is flat
                a.detections_at(0.07),
                attack.allowed_accuracy(b, make_problem().setting, c),
            ]
            for m in sorted(dpviz.list_mechanisms())
            if not dpviz.list_mechanisms()[m].__module__.endswith("majority")
            for b in [dpviz.RunSpec(mechanism=m).build()]
            for c in [b.calibrate(make_problem().setting, Budget(1.0, 0.001))]
            for a in [attack.strongest_attack(b, make_problem().setting, c)]
            if a is not None
        ],
        [
            [
                str(a),
                attack.epsilon_for(a, dpviz.RunSpec(mechanism=m).build(), make_problem().setting, 1e-05),
                attack.epsilon_by_budget(a, 1e-05),
            ]
            for text in ("tpr=0.05@fpr=0.01", "advantage=0.1", "accuracy=0.55")
            for m in ("output-gaussian", "dp-gd", "cms-output")
            for a in [attack.Attacker.parse(text)]
        ],
        [
            [m, e, b.distance(make_problem().setting, b.calibrate(make_problem().setting, Budget(e, 0.001)))]
            for m, cls in sorted(dpviz.list_mechanisms().items())
            if issubclass(cls, can.BoundsDistance)
            for b in [cls()]
            for e in (0.01, 1.0, 100.0)
        ],
        [
            persons.budget_of_group(Budget(e, d), k)
            for e, d, k in ((0.5, 1e-06, 3), (0.5, 0.0, 2), (0.5, 1e-06, 1), (3.0, 0.4, 5))
        ],
        [persons.budget_of_row(Budget(e, d), k) for e, d, k in ((1.5, 1e-05, 3), (1.5, 0.0, 2), (1.5, 1e-05, 0))],
        [
            persons.calibrate_person(
                partial(dpviz.RunSpec(mechanism=m).build().calibrate, make_problem().setting), Budget(1.0, 0.001), 3
            )
            for m in ("output-gaussian", "dp-gd", "cms-output", "dbdp")
        ],
        " ".join(map(persons.privacy_unit, (0, 1, 2, 4))),
        [persons.group_event(e, 3) for e in (None, noisy_sums(1.5, 0.1, 20), Gaussian.of_rows(1.0, 2.0))],
        " | ".join(
            " ".join((c.sensitivity_source, *c.notes, *c.conditions))
            for c in (
                persons.convert_to_person(
                    dpviz.RunSpec(mechanism="dp-sgd").build().calibrate(make_problem().setting, Budget(1.0, 0.001)), 3
                ),
                persons.calibrate_person(
                    lambda b: dpviz.RunSpec(mechanism="dp-gd").build().calibrate(make_problem().setting, b), Budget(1.0, 0.001), 3
                ),
            )
        ),
        [
            [
                protection.automatic_lam(b, make_problem().setting, Budget(1.0, 0.001)),
                protection.method_budget(b, make_problem().setting, Budget(1.0, 0.001)),
                [protection.knob_value(b, k, make_problem().setting, Budget(1.0, 0.001)) for k in b.knobs()],
            ]
            for m in ("dp-gd", "dp-sgd", "output-gaussian", "kst-objective", "rsgd-ar")
            for b in [dpviz.RunSpec(mechanism=m).build()]
        ],
        [
            protection.calibrate(
                dpviz.RunSpec(mechanism="dp-gd").build(), replace(make_problem().setting, person_rows=k), Budget(1.0, 0.001)
            )
            for k in (0, 1, 3)
        ],
        [
            [
                b.id,
                protection.releases(b, s) if isinstance(b, can.ReleasesGaussians) else None,
                protection.sensitivity_bounds(b, s) if isinstance(b, can.BoundsSensitivity) else None,
                protection.released_event(b, s, protection.calibrate(b, s, Budget(1.0, 0.001)))
                if isinstance(b, can.DeclaresEvent)
                else None,
            ]
            for m, p in (
                *((m, {}) for m in registry.list_mechanisms()),
                *(("dp-sgd", {"batches": kind}) for kind in ("persons", "reshuffled")),
            )
            for b in [dpviz.RunSpec(mechanism=m, params=p).build()]
            for s in (replace(make_problem().setting, person_rows=k, n=n) for n, k in ((40, 0), (40, 3), (1003, 0)))
            if isinstance(b, can.ReleasesGaussians | can.BoundsSensitivity | can.DeclaresEvent)
        ],
        "\n".join(
            (
                " ".join(
                    (
                        m,
                        c.sensitivity_text,
                        c.sensitivity_source,
                        c.noise_text,
                        c.sentence,
                        c.accountant,
                        *c.conditions,
                        *c.notes,
                        cls().noise_enters,
                        cls().guarantee,
                    )
                )
                for m, cls in registry.list_mechanisms().items()
                for c in [cls().calibrate(make_problem().setting, Budget(1.0, 0.001))]
            )
        ),
        [
            [m, r and [getattr(r, k) for k in vars(r) if k != "where"]]
            for m in sorted(registry.list_mechanisms())
            for r in [
                registry.list_mechanisms()[m]()
                .fit(
                    Training(
                        make_problem(),
                        [registry.list_mechanisms()[m]().calibrate(make_problem().setting, Budget(1.0, 0.001))],
                        spawn(5, 2),
                    )
                )
                .record
            ]
        ],
        " ".join(
            (
                " ".join(registry.automatic_mechanism(get_model(k).setting(n, d, 0.01), e))
                for k, n, d, e in (
                    ("logistic", 1000, 5, 1.0),
                    ("logistic", 60, 50, 0.1),
                    ("svm", 100000, 30, 1.0),
                    ("mlp", 1000, 5, 1.0),
                )
            )
        ),
        " ".join(
            [
                *registry.automatic_mechanism(get_model("logistic").setting(9000, 5, 0.01), 1.0, ("steps",), 3),
                *registry.automatic_mechanism(replace(get_model("svm").setting(9000, 5, 0.01), person_rows=40), 1.0),
                refusal(lambda: registry.automatic_mechanism(get_model("logistic").setting(9000, 5, 0.01), 1.0, ("none",))),
            ]
        ),
        [
            rules.round_lambda(0.0123456),
            *(rules.regularisation(n, d) for n, d in ((1000, 20), (1000, 5), (90, 13), (90, 14))),
            *(rules.against_objective_noise(get_model("logistic").setting(5000, 6, 1e-6), norm) for norm in (9.0, 400.0, 4000.0)),
            rules.against_curvature_noise(get_model("logistic").setting(90, 6, 1e-6), 3.0),
            rules.against_objective_noise(make_problem().setting, 2.0),
            rules.curvature_share(make_problem().setting, 0.7, 2),
            rules.against_curvature_noise(make_problem().setting, 0.3),
            rules.clip_norm(make_problem().setting),
            rules.clip_norm_of_search(make_problem().setting),
            rules.longest_step(make_problem().setting),
            rules.longest_step(make_problem().setting, 0.5),
            rules.full_steps(make_problem().setting),
            rules.splits(make_problem().setting),
            rules.sampling_rate(make_problem().setting),
            rules.reach(make_problem().setting),
            rules.training_time(make_problem().setting, 0.02),
            rules.time_in_noise(make_problem().setting, 0.02),
            rules.time_before_release(make_problem().setting, Budget(1.0, 0.001)),
            rules.step_size(make_problem().setting, 30, 0.1),
        ],
        [
            [
                f(make_problem(n, 6, lam, model).setting)
                for f in (rules.clip_norm, rules.longest_step, rules.full_steps, rules.splits, rules.sampling_rate, rules.reach)
            ]
            for n, lam in ((20, 0.001), (5000, 0.2))
            for model in ("logistic", "svm")
        ],
        " | ".join(
            str(cls.refusal(replace(get_model(model).setting(1000, 5, 0.01), **facts)))
            for cls in dpviz.list_mechanisms().values()
            for model in ("logistic", "svm", "mlp")
            for facts in ({}, *({"quadratic": (2.0, k)} for k in (1.41, 1.42)))
        ),
        # replicas in parts of a kernel's width: as few lanes as can be stay empty
        str([SparseProducts._parts(SimpleNamespace(_kernels=SimpleNamespace(NARROW=8, WIDE=32)), n) for n in (8, 24, 25, 70)]),
    ]
