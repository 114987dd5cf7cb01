"""Claims of Chen, Lee and Kifer: RSGD-AR, the order of the rows, averaging, and what it is compared with."""

from dpviz.papers import sentences
from dpviz.papers.claims import accuracy, numerics, rsgd, speed
from dpviz.papers.claims.context import Claim

_OUT_STEPS = ({"steps": 20}, {"steps": 200})

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "rsgd-ar-best",
        "chen-rsgd",
        "Section 5.1, Figures 1 and 2",
        "RSGD-AR is as accurate as each baseline or more so, for logistic regression and SVM.",
        "It is the paper's main result.",
        ("rsgd-ar", "kst-objective", "outpert-gd", "dp-sgd", "nsgd", "dp-agd"),
        rsgd.competitive(
            sentences.RSGD_COMPETITIVE,
            "rsgd-ar",
            [
                ("kst-objective", ({},)),
                ("outpert-gd", _OUT_STEPS),
                ("dp-sgd", accuracy.DP_SGD),
                ("nsgd", rsgd.RSGD_AR),
                ("dp-agd", ({},)),
                ("majority", ({},)),
            ],
        ),
        sentences.RSGD_COMPETITIVE,
    ),
    Claim(
        "permutation-saves",
        "chen-rsgd",
        "Section 4.2",
        "A random order of the rows needs less noise than a fixed one.",
        "Everybody shuffles anyway; this would be privacy for nothing.",
        ("rsgd", "rsgd-ar", "nsgd"),
        numerics.permutation_saves,
    ),
    Claim(
        "averaging-lowers-sensitivity",
        "chen-rsgd",
        "Section 4.3, Proposition 3",
        "Averaging the iterates lowers the sensitivity, so that less noise is needed.",
        "It matters against what: averaging comes together with restarts.",
        ("rsgd-ar",),
        numerics.averaging_lowers,
    ),
    Claim(
        "averaging-raises-accuracy",
        "chen-rsgd",
        "Abstract and Section 4.3",
        "Periodic averaging raises accuracy.",
        "Together with lower sensitivity it would help twice.",
        ("rsgd-ar", "rsgd"),
        rsgd.averaging_helps,
    ),
    Claim(
        "numerical-tighter",
        "chen-rsgd",
        "Section 4.1, below Proposition 2",
        "The sensitivity computed for full-batch descent is smaller than that of Zhang et al.",
        "Less noise for the same proof.",
        ("outpert-gd",),
        numerics.numerical_tighter,
    ),
    Claim(
        "objective-fastest",
        "chen-rsgd",
        "Section 5.2, Figure 3",
        "Objective perturbation is the fastest of the methods compared.",
        "Speed is a reason to choose a method.",
        ("kst-objective", "rsgd-ar", "nsgd", "outpert-gd", "dp-sgd"),
        speed.objective_fastest(sentences.OBJECTIVE_FASTEST),
        sentences.OBJECTIVE_FASTEST,
    ),
    Claim(
        "sgd-ma-surges",
        "chen-rsgd",
        "Section 5.1",
        "The accuracy of SGD with the moments accountant suddenly surges to almost that of the non-private model at a certain ε.",
        "A jump would be a reason to spend just a little more budget.",
        ("dp-sgd",),
        speed.surges(sentences.SGD_SURGES),
        sentences.SGD_SURGES,
    ),
)
