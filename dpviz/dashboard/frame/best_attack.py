"""The picture of the best possible attack on a run, on two pages."""

from dpviz.dashboard.components import panels
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures.style import Theme
from dpviz.mechanisms.attack import Attack
from dpviz.reporting import pictures


def draw(key: str, spec: RunSpec, theme: Theme, attack: Attack | None, overlay: Attack | None = None) -> None:
    """The picture, whose curve takes seconds; words where nothing is proved.

    Args:
        key: unique on the page, and the name of saved files.
        overlay: that of run A.
    """
    if attack is None:
        panels.empty("**No bound is proved**, so attacks cannot be limited: see the guarantee.")
        return
    doing, make = "Computing the best attack", lambda both: pictures.best_attack(both[0], theme, both[1])
    tasks.chart(key, doing, make, lambda one, a: (one.with_table(), a and a.with_table()), attack, overlay, run=spec, of=spec)
