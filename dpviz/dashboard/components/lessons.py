"""Lessons as data. A new lesson is one more entry of `lessons.toml`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dpviz.common import toml
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import answers
from dpviz.releasing.bounds import best_width


@dataclass(frozen=True)
class Lesson:
    """A question that a page answers.

    Attributes:
        id: in the address.
        title: a few words.
        page: title of the page that the link opens.
        spec: the run that the link sets.
        question: one sentence.
        measure: the engine's answer for the run, with the range in which a number is right.
        hint: where to look, after a wrong answer.
        explanation: why it is so, in two to four sentences.
        pitfall: the usual mistake.
        more: what the page keeps in the address beside the run; an empty metric is the default, here accuracy.
        unit: of a number.
        options: names to choose from, by value; none where a number is asked for.
        private: False where the answer or its picture shows data without noise.
    """

    id: str
    title: str
    page: str
    spec: RunSpec
    question: str
    measure: Callable[[RunSpec], answers.Answer]
    hint: str
    explanation: str
    pitfall: str
    more: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    private: bool = True

    def address(self) -> dict[str, str]:
        """The address that the link opens."""
        return self.spec.to_query() | dict(self.more)


def _read(entry: dict[str, Any]) -> Lesson:
    """A lesson of the file: `run` are the fields of its spec, `measure` names an answer, and `given` is what that takes."""
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.pop("given", {}).items()}
    measure = partial({**vars(answers), "best_width": best_width}[entry.pop("measure")], **given)
    return Lesson(spec=RunSpec(**entry.pop("run")), measure=measure, **entry)


LESSONS = tuple(map(_read, toml.declarations(__file__)["lesson"]))
BY_ID = {lesson.id: lesson for lesson in LESSONS}
