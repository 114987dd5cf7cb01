"""The first page's fields in the address: presenter mode, training step by step, and the run that is kept."""

from dataclasses import dataclass
from typing import Any

from dpviz.common.validate import one_of
from dpviz.dashboard.frame.fields import Field
from dpviz.dashboard.frame.pinned import PINNED
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.knobs import Switch


@dataclass(frozen=True, kw_only=True)
class Flag(Switch):
    """On or off, written as 1 or 0: short enough to be typed into an address."""

    def parse(self, name: str, text: str) -> Any:
        return one_of(name, text.lower(), ("1", "true", "0", "false")) in ("1", "true")

    def text(self, value: Any) -> str:
        return "1" if value else "0"

    def describe(self) -> str:
        return "1, 0"


PRESENT = Field("present", Flag(label="Presenter mode", help="Large type, one picture, no sidebar."), False)
TRAINING = Field("training", Flag(label="Training, step by step", help="The decision lines after each step of training."), False)


def of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """All of them."""
    return (PRESENT, TRAINING, PINNED)
