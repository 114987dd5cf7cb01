"""The figures themselves; `dpviz.papers.figures.base` says what an entry means."""

from __future__ import annotations

from typing import Any

from dpviz.papers.figures.base import Figure, Panel, Times
from dpviz.papers.figures.statements import (
    almost_zero,
    as_fast,
    better_than,
    close_at_start,
    competitive,
    fastest,
    fluctuates,
    grows_apart,
    rises,
    similar,
    surges,
)

_CHEN, _DBDP = "Chen, Lee, Kifer 2019 (RSGD-AR)", "Kang et al., Data Perturbation (DBDP)"
_IP, _PIDP = "Kang et al., Input Perturbation", "Kang et al., Data Heterogeneity (PIDP)"

_ONE_SPLIT = "Here: one 80/20 split, 10 noise draws; the paper takes the mean of 20 times 5-fold cross validation."
_RANGE = "The text does not give the range of ε that the figure has; here 0.01 to 10."
_TUNED = (
    "The paper chooses the number of iterations and the learning rate by cross validation on the private data, outside its ε; "
    "here every method has fixed defaults."
)
_DRAWS = "The paper does not say how often it repeats; here 10 noise draws on one 80/20 split."
_LAMBDA = "The paper gives no regularisation; here λ = 0.001."

_CHEN_GIVEN = (
    "δ = 1e-8 (1e-12 on KDDCup99)",
    "λ = 0.001",
    "mini-batches of 4,000 for RSGD-AR, √n for SGD-MA",
    "categories one-hot, numbers scaled to [0, 1], rows scaled to length 1",
)
_CHEN_METHODS: dict[str, dict[str, Any]] = {
    "rsgd-ar": {"batch_size": 4000},
    "kst-objective": {},
    "outpert-gd": {"calibration": "published"},
    "dp-agd": {},
    "dp-sgd": {"sampling_rate": "1/sqrt(n)"},
    "nsgd": {"batch_size": 4000},
}
_CHEN_NAMES = {
    "rsgd-ar": "RSGD-AR",
    "kst-objective": "ObjPert",
    "outpert-gd": "OutPert-GD",
    "dp-agd": "DP-AGD",
    "dp-sgd": "SGD-MA",
    "nsgd": "NSGD",
}
_CHEN_OTHERS = tuple(name for name in _CHEN_METHODS if name != "rsgd-ar")
_CHEN_DIFFERS = (
    _ONE_SPLIT,
    _RANGE,
    "SGD-MA is tuned over its number of iterations for each ε in the paper; here it has 20 epochs, and a tighter accountant.",
    "The paper gives neither the epochs nor the first step nor the interval τ of RSGD-AR and NSGD; here 20, 1 and 5. More epochs "
    "help at large ε and hurt at small.",
    "Objective perturbation is that of Kifer et al. for replace-one neighbours; NSGD's batches are those of RSGD-AR.",
)
_SURGE = surges("In all figures the accuracy of SGD-MA suddenly surges to almost that of the non-private algorithm.", "dp-sgd")


def _chen(model: str) -> dict[str, Panel]:
    return {
        "adult": Panel("Adult", "adult", ("census-48842",), 48_842, model, 1e-8),
        "bank": Panel("BANK", "bank", ("census-45211",), 45_211, model, 1e-8),
        "ipums-us": Panel("IPUMS-US", "ipums-us", ("census-40000",), 40_000, model, 1e-8),
        "ipums-br": Panel("IPUMS-BR", "ipums-br", ("census-38000",), 38_000, model, 1e-8),
    }


def _large(*, small: bool = False) -> dict[str, Panel]:
    """KDDCup99, Adult and Bank, logistic and MLP, as in the three Kang papers; or their small sets."""
    if small:
        return {
            "breast-cancer": Panel("Breast Cancer", "breast-cancer-original", ("breast-cancer",), 699, "logistic"),
            "credit-card": Panel("Credit Card Fraud", "credit-card-balanced", ("census-984",), 984, "logistic"),
            "iris": Panel("Iris", "iris", ("iris",), 150, "logistic"),
        }
    sets = {
        "kddcup99": Panel("KDDCup99", "kddcup99-70000", ("census-70000",), 70_000, "logistic"),
        "adult": Panel("Adult", "adult-complete", ("census-45222",), 45_222, "logistic"),
        "bank": Panel("Bank", "bank-additional", ("bank", "census-41188"), 41_188, "logistic"),
    }
    out = {}
    for name, p in sets.items():
        for model in ("logistic", "mlp"):
            out[f"{name}-{'lr' if model == 'logistic' else model}"] = Panel(
                f"{p.title}, {'LR' if model == 'logistic' else 'MLP'}", p.dataset, p.nearest, p.rows, model
            )
    return out


_DBDP_METHODS: dict[str, dict[str, Any]] = {"dbdp": {}, "dbdp-pi": {}, "dp-sgd": {}, "bolt-on-psgd": {}, "dp-lssgd": {}}
_DBDP_NAMES = {
    "dbdp": "DBDP-ERM",
    "dbdp-pi": "performance improving DBDP-ERM",
    "dp-sgd": "Abadi et al. 2016",
    "bolt-on-psgd": "Wu et al. 2017",
    "dp-lssgd": "DP-LSSGD (Wang et al. 2019)",
}
_DBDP_GIVEN = ("ε from 0.01 to 7", "T_local = 10, R = T/10", "MLP with one hidden layer as wide as the input")
_DBDP_BEST = ("dp-sgd", "bolt-on-psgd", "dp-lssgd")
_KANG_DIFFERS = (_TUNED, _DRAWS, _LAMBDA)

_IP_METHODS: dict[str, dict[str, Any]] = {
    "input-perturbation": {},
    "kst-objective": {},
    "outpert-gd": {"calibration": "published"},
    "bassily-sgd": {},
    "dp-gd": {},
}
_IP_NAMES = {
    "input-perturbation": "input perturbation (the paper's)",
    "kst-objective": "objective perturbation [29]",
    "outpert-gd": "output perturbation [49]",
    "bassily-sgd": "gradient perturbation [4]",
    "dp-gd": "gradient perturbation [43]",
}
_IP_GIVEN = ("ε from 0.01 to 0.25", "MLP with one hidden layer as wide as the input")
_IP_DIFFERS = (
    *_KANG_DIFFERS,
    "[4] asks for n² steps, which the paper cannot have run either; here its noise is calibrated for the steps that are made.",
    "Section 6 swaps [43] and [49] in two places; [43] is the gradient method (Wang, Ye, Xu 2017).",
)
_IP_ACCURACY = (
    better_than("Better than the gradient perturbation of [4].", "input-perturbation", "bassily-sgd"),
    better_than("Better than the objective perturbation of [29].", "input-perturbation", "kst-objective"),
    similar("Almost the same as [43].", "input-perturbation", ("dp-gd",)),
    similar("Almost the same as [49].", "input-perturbation", ("outpert-gd",)),
    fluctuates("The accuracy of [4] fluctuates sharply over ε.", ("bassily-sgd",)),
)
_IP_GAP = (
    similar("The gap is almost the same as that of [43].", "input-perturbation", ("dp-gd",), "optimality_gap"),
    better_than("The gap is better than that of [49].", "input-perturbation", "outpert-gd", "optimality_gap"),
    better_than("The gap is better than that of [4].", "input-perturbation", "bassily-sgd", "optimality_gap"),
    better_than("The gap is better than that of [29].", "input-perturbation", "kst-objective", "optimality_gap"),
    almost_zero("The gap is close to 0 on some datasets.", "input-perturbation"),
    fluctuates("The gap of [4] fluctuates sharply.", ("bassily-sgd",), "optimality_gap"),
)

_PIDP_METHODS: dict[str, dict[str, Any]] = {"pidp-sgd": {"share": 0.75}, "dp-sgd": {}, "bolt-on-psgd": {}, "dp-lssgd": {}}
_PIDP_NAMES = {
    "pidp-sgd": "PIDP-SGD",
    "dp-sgd": "gradient perturbation [1]",
    "bolt-on-psgd": "output perturbation [44]",
    "dp-lssgd": "DP-LSSGD [39]",
}
_PIDP_GIVEN = ("ε from 0.01 to 3", "ε₁ = 3ε₂ = 3ε/4", "R T_local = T", "MLP with one hidden layer as wide as the input")

FIGURES = (
    *(
        Figure(
            f"chen-{k}",
            _CHEN,
            f"Figure {k}",
            "5.1",
            "accuracy",
            _chen(model),
            _CHEN_METHODS,
            _CHEN_NAMES,
            0.01,
            10.0,
            (*_CHEN_GIVEN, *(("huberised hinge with h = 0.5",) if model == "svm" else ())),
            _CHEN_DIFFERS,
            said,
        )
        for k, model, said in (
            (
                1,
                "logistic",
                (
                    competitive("For all ε, RSGD-AR outperforms or is competitive: accuracy.", "rsgd-ar", _CHEN_OTHERS),
                    competitive(
                        "For all ε, RSGD-AR outperforms or is competitive: objective.", "rsgd-ar", _CHEN_OTHERS, "objective"
                    ),
                    _SURGE,
                ),
            ),
            (
                2,
                "svm",
                (
                    competitive("RSGD-AR outperforms or is similar: accuracy.", "rsgd-ar", _CHEN_OTHERS),
                    competitive("RSGD-AR outperforms or is similar: objective.", "rsgd-ar", _CHEN_OTHERS, "objective"),
                    _SURGE,
                ),
            ),
        )
    ),
    Figure(
        "dbdp-1",
        _DBDP,
        "Figure 1",
        "5",
        "accuracy",
        _large(),
        _DBDP_METHODS,
        _DBDP_NAMES,
        0.01,
        7.0,
        _DBDP_GIVEN,
        _KANG_DIFFERS,
        (
            rises("As ε increases, so does the accuracy.", tuple(_DBDP_METHODS)),
            similar("DBDP-ERM is similar to some of the best previous methods.", "dbdp", _DBDP_BEST),
            better_than("The performance improving algorithm raises the accuracy.", "dbdp-pi", "dbdp"),
            close_at_start("At small ε the difference of the two is small, or the former is higher.", "dbdp-pi", "dbdp"),
            grows_apart("As ε increases, the performance improving method becomes more competitive.", "dbdp-pi", "dbdp"),
            fluctuates("The performance of DP-LSSGD fluctuates sharply on some datasets (footnote 6).", ("dp-lssgd",)),
        ),
    ),
    Figure(
        "dbdp-2",
        _DBDP,
        "Figure 2",
        "5",
        "optimality_gap",
        _large(),
        _DBDP_METHODS,
        _DBDP_NAMES,
        0.01,
        7.0,
        _DBDP_GIVEN,
        _KANG_DIFFERS,
        (
            similar("The gap of DBDP-ERM is similar to previous methods.", "dbdp", _DBDP_BEST, "optimality_gap"),
            almost_zero("The gap of the performance improving algorithm is almost 0 on some datasets.", "dbdp-pi"),
            rises("The optimality gap decreases as ε increases.", tuple(_DBDP_METHODS), "optimality_gap"),
        ),
    ),
    Figure(
        "dbdp-small",
        _DBDP,
        "small datasets of the appendix",
        "5 and appendix",
        "accuracy",
        _large(small=True),
        _DBDP_METHODS,
        _DBDP_NAMES,
        0.01,
        7.0,
        _DBDP_GIVEN,
        (*_KANG_DIFFERS, "The appendix with these figures was not available; section 5 names the sets."),
        (rises("As ε increases, so does the accuracy.", tuple(_DBDP_METHODS)),),
    ),
    Figure(
        "ip-2",
        _IP,
        "Figure 2",
        "6",
        "accuracy",
        _large(),
        _IP_METHODS,
        _IP_NAMES,
        0.01,
        0.25,
        _IP_GIVEN,
        _IP_DIFFERS,
        _IP_ACCURACY,
    ),
    Figure(
        "ip-3",
        _IP,
        "Figure 3",
        "6",
        "optimality_gap",
        _large(),
        _IP_METHODS,
        _IP_NAMES,
        0.01,
        0.25,
        _IP_GIVEN,
        _IP_DIFFERS,
        _IP_GAP,
    ),
    Figure(
        "ip-4",
        _IP,
        "Figure 4",
        "6",
        "accuracy",
        _large(small=True),
        _IP_METHODS,
        _IP_NAMES,
        0.01,
        0.25,
        _IP_GIVEN,
        _IP_DIFFERS,
        (*_IP_ACCURACY[:4], *_IP_GAP[:4]),
    ),
    Figure(
        "pidp-1",
        _PIDP,
        "Figure 1",
        "7",
        "accuracy",
        _large(),
        _PIDP_METHODS,
        _PIDP_NAMES,
        0.01,
        3.0,
        _PIDP_GIVEN,
        _KANG_DIFFERS,
        (
            rises("As ε increases, so does the accuracy.", tuple(_PIDP_METHODS)),
            better_than("PIDP-SGD raises the accuracy on most datasets.", "pidp-sgd", "dp-sgd"),
            close_at_start("At small ε the difference is small, or PIDP-SGD is worse.", "pidp-sgd", "dp-sgd"),
            grows_apart("As ε increases, PIDP-SGD becomes more and more competitive.", "pidp-sgd", "dp-sgd"),
        ),
    ),
    Figure(
        "pidp-2",
        _PIDP,
        "Figure 2",
        "7",
        "optimality_gap",
        _large(),
        _PIDP_METHODS,
        _PIDP_NAMES,
        0.01,
        3.0,
        _PIDP_GIVEN,
        _KANG_DIFFERS,
        (
            almost_zero("On some datasets the gap of PIDP-SGD is almost 0.", "pidp-sgd"),
            rises("The optimality gap decreases as ε increases.", tuple(_PIDP_METHODS), "optimality_gap"),
            fluctuates("On some datasets some of the methods fluctuate.", tuple(_PIDP_METHODS), "optimality_gap"),
        ),
    ),
)

TIMES = Times(
    _CHEN,
    "Figure 3",
    "5.2",
    (50_000, 100_000, 150_000, 200_000, 250_000),
    _CHEN_METHODS,
    _CHEN_NAMES,
    ("KDDCup99, random subsamples of 50,000 to 250,000 rows, 120 columns", "δ = 1e-12", "λ = 0.001"),
    ("Here: the synthetic census of the same numbers of rows, logistic regression, one training at ε = 1, on this machine.",),
    (
        fastest("ObjPert, which uses L-BFGS, is the fastest.", "kst-objective"),
        as_fast("RSGD-AR needs more iterations but is as fast as ObjPert.", "rsgd-ar", "kst-objective"),
    ),
)
