"""The first page's fields in the address."""

from typing import Any

from dpviz.dashboard.frame import fields
from dpviz.dashboard.frame.pinned import PINNED
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.story import WHO

SCENES = {"": "", "1": "The line moves", "2": "What it costs", "3": "One person leaves", "4": "Someone bets", "5": "Twice"}
MOST = 10

PRESENT = fields.switch("present", "Presenter mode", "One scene at a time in large type; arrow keys move ε and the scene.")
SCENE = fields.choice("scene", "Scene", SCENES, "")
WHO_LEAVES = fields.choice("who", "Who leaves", WHO, "most")
BETS = fields.switch("bets", "Attack 400 models", "Trains models with and without this person, and counts the right guesses.")
TRAININGS = fields.number("trainings", "Trainings", 1, MOST, 2, integer=True)


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """All of them."""
    return PRESENT, SCENE, WHO_LEAVES, BETS, TRAININGS, PINNED
