"""`dpviz run`: trains once and prints the numbers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from dpviz.cli import answers, metrics, one_run
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar

if TYPE_CHECKING:
    import pandas as pd

    from dpviz.experiments.run.metrics import Metric
    from dpviz.experiments.run.run import Result
    from dpviz.experiments.studies.cost import Cost

_MOST_LOST = 6  # lines about what a table lost on its way

HELP = "train once and print the numbers"


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    metrics.add(parser, "a measure beside accuracy, for example roc-auc, recall@precision=0.6, or all; may be repeated")


def run(options: argparse.Namespace) -> None:
    """Trains and prints."""
    import dpviz

    chosen = metrics.chosen_metrics(options.metric)  # what is wrong with it is said before anything is printed
    spec = one_run.run_spec(options)
    with Bar() as bar:
        result = dpviz.run(spec, bar)
    if _rare(result) and not chosen:
        chosen = metrics.chosen_metrics(["balanced-accuracy"])
    found = _Measured.measure(result, chosen)
    answers.give(options, _lines(options, found), _values(found))


@dataclass(frozen=True)
class _Measured:
    """A run, measured once for both forms of the answer.

    Attributes:
        chosen: metrics that are printed beside accuracy.
        values: of each noise draw in accuracy and these.
        baselines: likewise, of the models without noise.
        cost: of privacy, in accuracy.
    """

    result: Result
    chosen: Sequence[Metric]
    values: pd.DataFrame
    baselines: pd.DataFrame
    cost: Cost

    @classmethod
    def measure(cls, result: Result, chosen: Sequence[Metric]) -> Self:
        """Measures a run in accuracy and in metrics."""
        from dpviz.experiments.studies.cost import split_cost

        names = ["accuracy", *(metric.id for metric in chosen if metric.id != "accuracy")]
        cost = split_cost(result)
        return cls(result, chosen, result.metrics_in(names), result.setup.baselines_in(names), cost)

    @cached_property
    def guessing(self) -> list[tuple[str, str]]:
        """A line for each metric in which the model is no better than the majority label, or loses much to training."""
        from dpviz.experiments.run.metrics import get_metric
        from dpviz.experiments.studies.cost import cost_in_metric
        from dpviz.experiments.studies.majority_baseline import guessing, training_loss_note

        result, spec = self.result, self.result.spec
        names = ["accuracy", *(metric.id for metric in self.chosen if metric.id != "accuracy")]
        poor = guessing(result, names, self.values, self.baselines, self.cost)
        lines = [("no better", f"than the majority label in {get_metric(name).within}. {one.fix}") for name, one in poor.items()]
        for metric in (one for one in self.chosen if one.id not in poor and spec.mechanism != "majority"):
            here = cost_in_metric(result, self.cost, metric.id)
            short = training_loss_note(here, spec, result.setup.problem.lam)
            lines += [("note", short)] if short is not None else []
        return lines

    def plain(self, metric: Metric) -> dict[str, Any]:
        """A metric for programs."""
        values, base = self.values[metric.column], self.baselines[metric.column]
        beside = {str(name).replace("-", "_"): value for name, value in base.items()}
        mean = values.mean(skipna=False)
        return {"mean": mean, "draws": values.tolist(), **beside, "higher_is_better": metric.higher_is_better}

    def in_words(self, metric: Metric) -> str:
        """A metric of the private models, the non-private one and the majority label, in words where it has no value."""
        values, base = self.values[metric.column], self.baselines[metric.column]
        private = (
            "no value (this method or model gives no scores of this kind, or the test rows have one class)"
            if values.isna().any()
            else f"{values.mean():.4f} (standard deviation {values.std(ddof=0):.4f})"
        )
        beside = [f"{name} {'no value' if value != value else f'{value:.4f}'}" for name, value in base.items()]
        return f"{private}; {'; '.join(beside)}; {'higher' if metric.higher_is_better else 'lower'} is better"


def _lines(options: argparse.Namespace, found: _Measured) -> list[tuple[str, object]]:
    result = found.result
    spec, cal, expected = result.spec, result.calibration, result.expected_accuracy
    draws = f"over {spec.seeds} noise draws"
    return [
        ("dataset", f"{one_run.display_name(spec.dataset, options)}, {result.setup.problem.n} training rows"),
        ("mechanism", f"{spec.mechanism} on {spec.model}"),
        ("test accuracy", f"{result.accuracy.mean():.4f} (standard deviation {result.accuracy.std():.4f} {draws})"),
        *([("expected accuracy", f"{expected:.4f} (closed form)")] if expected is not None else []),
        ("non-private", f"{result.non_private.accuracy:.4f}"),
        ("majority", f"{result.majority.accuracy:.4f}"),
        *((metric.id.replace("-", " "), found.in_words(metric)) for metric in found.chosen),
        *answers.guarantee_lines(cal, spec.build()),
        ("optimality gap", f"{result.optimality_gap.mean():.6g}"),
        *found.guessing,
        *(("caution", sentence) for sentence in result.setup.dataset.alike),
        *_rare(result),
        *_lost(result),
        *answers.remarks(cal),
    ]


def _values(found: _Measured) -> dict[str, Any]:
    from dpviz.mechanisms.attack import strongest_attack

    result, cost = found.result, found.cost
    spec, setting = result.spec, result.setup.problem.setting
    attack = strongest_attack(spec.build(), setting, result.calibration)
    return {
        "run": spec.to_dict() | {"delta": result.calibration.budget.delta},
        "remarks": [
            *result.setup.dataset.remarks,
            *result.setup.dataset.alike,
            *(f"{name} {text}" for name, text in found.guessing),
        ],
        "training_rows": setting.n,
        "features": setting.d,
        "looked_at": result.setup.dataset.looked_at,
        "lost": [one.sentence for one in result.setup.dataset.lost],
        "guarantee": answers.guarantee(result.calibration, result.spec.build()),
        "accuracy": {
            "mean": result.accuracy.mean(),
            "standard_deviation": result.accuracy.std(),
            "draws": result.accuracy,
            "expected": result.expected_accuracy,
            "non_private": result.non_private.accuracy,
            "majority": result.majority.accuracy,
        },
        "cost": {"noise": cost.noise, "training": cost.training},
        "optimality_gap": result.optimality_gap.mean(),
        "metrics": {metric.id: found.plain(metric) for metric in found.chosen},
        "attack": answers.attack(attack),
    }


def _rare(result: Result) -> list[tuple[str, str]]:
    """A line where one class is so rare that accuracy says little."""
    from dpviz.experiments.run.metrics import default_metric, rarer_share

    y = result.setup.dataset.y
    if default_metric(y) == "accuracy":
        return []
    share = 100 * rarer_share(y)
    return [("note", f"the rarer class has {share:.1f} % of the rows, so the majority label alone is right {100 - share:.1f} %")]


def _lost(result: Result) -> list[tuple[str, str]]:
    """The table's losses, a line each; the first few of many."""
    lost = [str(one.sentence) for one in result.setup.dataset.lost]
    more = [f"and {len(lost) - _MOST_LOST} more; --json has them all"] if len(lost) > _MOST_LOST else []
    return [("not trained on", sentence) for sentence in [*lost[:_MOST_LOST], *more]]
