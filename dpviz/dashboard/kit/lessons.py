"""Lessons as data. A new lesson is one more entry in `LESSONS`.

A run's settings are written out where a lesson depends on them, so that other defaults leave its answer as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import answers
from dpviz.experiments.studies.answers import Answer
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
    measure: Callable[[RunSpec], Answer]
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


_DP_GD = {"steps": 50, "step_size": 1.9, "clip_norm": 1.0}
_METHODS = {
    "dp-gd": "DP-GD",
    "output-gaussian": "Output perturbation (Gaussian)",
    "amp": "Approximate minima perturbation",
    "ldp-gaussian": "Local Gaussian reports",
}
_GUARANTEES = {
    "dp-gd": "DP-GD",
    "output-gaussian": "Output perturbation (Gaussian)",
    "cms-objective": "Objective perturbation (CMS)",
    "pidp-sgd": "PIDP-SGD",
}
_WIDTHS = {"1/16": 1 / 16, "1/4": 1 / 4, "1": 1.0, "4": 4.0, "16": 16.0}

LESSONS = (
    Lesson(
        id="cost",
        title="The cost of ε",
        page="One private model",
        spec=RunSpec("census-2000", mechanism="dp-gd", epsilon=0.5, params=_DP_GD),
        more={"metric": ""},
        question="How many points of test accuracy does the noise of ε = 0.5 cost on a census of 2,000 people?",
        unit="points",
        measure=answers.cost_of_noise,
        hint="The part of the bar that is called “noise” says what it takes.",
        explanation="The private model is compared with the same training without noise: same batches, same seeds. The "
        "difference has one cause, the noise. The rest of the distance to the non-private optimum is lost to short training and "
        "clipping.",
        pitfall="The whole distance to the non-private optimum is not the cost of noise: at ε = 1000 a part of it remains.",
    ),
    Lesson(
        id="best",
        title="The best method",
        page="Trade-off",
        spec=RunSpec("census-2000", mechanism="dp-gd", epsilon=0.1),
        more={"methods": ",".join(_METHODS), "metric": ""},
        question="Which of these four methods has the highest mean test accuracy at ε = 0.1?",
        options=_METHODS,
        measure=partial(answers.best_method, methods=tuple(_METHODS)),
        hint="The list right of the curves is ranked by the values at the chosen ε.",
        explanation="Each method adds its noise at another place: to the result, the objective, the gradients or the rows. "
        "Methods whose means are closer than two standard errors count as equally good.",
        pitfall="One noise draw decides nothing: the order of two methods can change with the noise seed. It also depends on the "
        "dataset and on ε.",
    ),
    Lesson(
        id="needed",
        title="The ε for an accuracy",
        page="Trade-off",
        spec=RunSpec("census-2000", mechanism="dp-gd", epsilon=1.0, params=_DP_GD),
        more={"methods": "dp-gd", "want": "80", "from": "0.01", "to": "10.0", "points": "7", "metric": ""},
        question="Which ε does DP-GD need for 80 % mean test accuracy on a census of 2,000 people?",
        measure=partial(answers.epsilon_for, target=0.8),
        hint="Find the ring where the curve crosses the line of 80 %, or the column “ε for 80.0 %” in the table.",
        explanation="The curve of accuracy over ε is made monotone and read the other way round: from 80 % on the vertical axis "
        "to ε on the horizontal one. The range that counts as right is the 95 % interval of the curve.",
        pitfall="A value between two computed points is interpolated on a logarithmic axis. Reading it off a linear axis gives "
        "another number.",
    ),
    Lesson(
        id="person",
        title="The most influential person",
        page="Influence and noise",
        spec=RunSpec("breast-cancer", mechanism="dp-gd", params=_DP_GD),
        more={"row": "", "other": ""},
        question="What is the row id of the patient whose removal changes the non-private model most?",
        measure=answers.most_influential,
        hint="The most influential row carries its id in bold on the map, inside the ring.",
        explanation="Influence is how far the parameters change when the model is trained without the row. It is large where a "
        "row has unusual features and a label that the model finds unlikely. The card on the page shows both.",
        pitfall="Influence is computed from the private rows without noise. Publishing this id is itself a leak.",
        private=False,
    ),
    Lesson(
        id="noised",
        title="The rows that receive noise",
        page="Influence and noise",
        spec=RunSpec(
            "teaching",
            mechanism="pidp-sgd",
            params={"rule": "fraction", "fraction": 0.1, "rounds": 5, "local_steps": 40, "share": 0.75},
            seeds=1,
        ),
        question="PIDP-SGD draws 200 times from 320 points. How many different points receive noise?",
        unit="points",
        measure=answers.rows_with_noise,
        hint="The legend above the map counts the rows that received noise.",
        explanation="The rule gives noise to the tenth of the rows that have the largest influence. Only rows that are drawn can "
        "receive it, and 200 draws with replacement miss many rows.",
        pitfall="A row without noise is not always one that the rule spared: training never used most of these rows.",
        private=False,
    ),
    Lesson(
        id="sensitivity",
        title="Sensitivity and n",
        page="Sensitivity and rates",
        spec=RunSpec("breast-cancer", mechanism="output-gaussian"),
        more={"over": "n"},
        question="By which factor does the sensitivity of output perturbation fall with ten times as many rows?",
        unit="times",
        measure=answers.sensitivity_ratio,
        hint="Read the curve of the sensitivity at two numbers of rows, one ten times the other.",
        explanation="One row is one of n terms of the mean loss. Strong convexity with λ limits how far the minimum can move: "
        "2G/(nλ), where G bounds the gradient of one row. On logarithmic axes this is a line of slope −1.",
        pitfall="The noise falls by the same factor only while λ stays the same. If λ is made smaller as n grows, part of the "
        "gain is lost.",
    ),
    Lesson(
        id="bounds",
        title="Bounds that cut the data: bias against noise",
        page="Data",
        spec=RunSpec("census-10000", mechanism="objective-tight", epsilon=1.0),
        more={"bounds": "true"},
        question="Ranges of all number columns are 1/16, 1/4, 1, 4 or 16 times as wide as the values of the rows. With which "
        "width is the private model most accurate at ε = 1?",
        options={name: name for name in _WIDTHS},
        measure=partial(best_width, options=_WIDTHS),
        hint="Find the highest point of the private model’s curve, and read its width below.",
        explanation="Narrow ranges clip rows: the non-private optimum loses by them, too (bias). From width 1 on nothing is "
        "clipped, and the non-private optimum stays as it is. But wide ranges leave the rows close together: the differences "
        "between them are small beside the noise, and beside the regularisation that keeps it small. Ranges that are found "
        "privately lie between, and cost a tenth of ε.",
        pitfall="The smallest and the largest value of the rows show two people’s values, and no ε covers that. Declare ranges, "
        "or find them privately.",
        private=False,
    ),
    Lesson(
        id="attack",
        title="Was row 17 in the data?",
        page="Audit",
        spec=RunSpec("teaching", mechanism="output-gaussian", epsilon=1.0),
        more={"pair": "label-flip", "row": "17", "runs": "200"},
        question="At most how often, in percent, is an attacker right about row 17 at ε = 1 and δ = 1e-5?",
        unit="%",
        measure=answers.attack_bound,
        hint="The picture of the guesses marks the share that is allowed.",
        explanation="The attacker knows all other rows and sees the model. The noise is Gaussian, so the whole trade-off between "
        "false alarms and detections is known; a coin toss is right half of the time.",
        pitfall="(ε, δ) alone allows more, as the picture of the best possible attack shows. That bound is true but loose: it "
        "ignores the distribution of the noise.",
    ),
    Lesson(
        id="tolerated",
        title="From a risk to ε",
        page="Privacy accounting",
        spec=RunSpec("teaching", mechanism="output-gaussian", epsilon=1.0, delta=1e-5),
        question="You tolerate an attacker who detects 5 % of the members at 1 % false alarms. Up to which ε is none better, at "
        "δ = 1e-5?",
        measure=partial(answers.tolerated, attacker="tpr=0.05@fpr=0.01"),
        hint="Move ε. The sentence below the picture of the best attack says what is detected at 1 % false alarms.",
        explanation="The noise is Gaussian, so the whole trade-off between false alarms and detections is known. The search goes "
        "through this curve: `dpviz calibrate --attacker tpr=0.05@fpr=0.01` gives the least noise that keeps better ones out.",
        pitfall="From (ε, δ) alone follows a smaller ε, and more noise than is needed.",
    ),
    Lesson(
        id="proved",
        title="Proved or claimed?",
        page="Guarantees",
        spec=RunSpec("teaching", mechanism="pidp-sgd", epsilon=1.0),
        more={},
        question="One of these four guarantees is only claimed by its paper. Which one?",
        options=_GUARANTEES,
        measure=partial(answers.only_claimed, methods=tuple(_GUARANTEES)),
        hint="In the picture the methods stand below the status of their guarantee.",
        explanation="A badge says how far an ε is proved: proved, proved under stated conditions, or claimed. A method whose "
        "noise depends on the data needs a proof that accounts for what this choice leaks. The page Guarantees marks this claim "
        "as refuted at ε = 1: an audit found a larger loss there.",
        pitfall="A claimed ε cannot be compared with a proved one, even where both carry the same number.",
    ),
)
BY_ID = {lesson.id: lesson for lesson in LESSONS}
