"""The claims, one entry each. Results are not here: they are computed by the tests."""

from __future__ import annotations

from dpviz.claims import audits, compare, numerics, rsgd, rules, speed
from dpviz.claims.base import Claim

_STEPS = ({"steps": 10}, {"steps": 50})
_NETWORK = tuple({"steps": t, "step_size": s} for t in (10, 50) for s in (1.0, 0.1))
_OUT_STEPS = ({"steps": 20}, {"steps": 200})

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "pidp-fewer-noised", "kang-pidp", "Section 5, below Algorithm 1",
        "The larger the budget, the fewer rows meet noise.",
        "It is the reason given for the method being better at large ε.",
        ("pidp-sgd",), rules.fewer_noised("pidp-sgd"),
    ),
    Claim(
        "pidp-follows-influence", "kang-pidp", "Section 5, Algorithm 1, lines 9 and 10",
        "Rows of little influence train without noise, rows of much influence with it.",
        "It is the idea that the paper is named after.",
        ("pidp-sgd",), rules.follows_influence("pidp-sgd"),
    ),
    Claim(
        "pidp-beats-dp-sgd", "kang-pidp", "Section 7, Figure 1",
        "PIDP-SGD is more accurate than DP-SGD.",
        "Whoever chooses a method by accuracy would choose it.",
        ("pidp-sgd", "dp-sgd"), compare.beats("pidp-sgd", "dp-sgd", compare.DP_SGD),
    ),
    Claim(
        "pidp-beats-dp-sgd-mlp", "kang-pidp", "Section 7, Figure 1, MLP",
        "The same holds for a neural network with one hidden layer.",
        "The method is said to need no convexity.",
        ("pidp-sgd", "dp-sgd"), compare.beats("pidp-sgd", "dp-sgd", compare.DP_SGD, "mlp", "mlp-8"),
    ),
    Claim(
        "pidp-gap-zero", "kang-pidp", "Section 7, Figure 2",
        "On some data the optimality gap is almost 0: private training does as well as training without privacy.",
        "No noise is hidden that well; something else must explain it.",
        ("pidp-sgd",), compare.gap_is_zero("pidp-sgd"),
    ),
    Claim(
        "pidp-private", "kang-pidp", "Section 5, Theorem 5",
        "The released model is (ε, δ)-differentially private.",
        "All else is worth what this is worth.",
        ("pidp-sgd",),
        audits.stays_private(
            "pidp-sgd", {"step 1/L": {}, "step 0.1/L": {"step_size": 0.1}}, audits.pushed, n=1000, runs=(600, 4000)
        ),
    ),
    Claim(
        "influence-error", "kang-pidp", "Section 5, Theorem 4",
        "The influence function misses the effect of leaving a row out by O(1/n²), with the constants of Theorem 4.",
        "The noise decision rests on influences instead of retraining.",
        ("pidp-sgd", "dbdp-pi"), numerics.influence_error,
    ),
    Claim(
        "dbdp-fewer-noised", "kang-dbdp", "Section 4, below Algorithm 2",
        "The larger the budget, the fewer rows meet noise.",
        "It is the reason given for the method being better at large ε.",
        ("dbdp-pi",), rules.fewer_noised("dbdp-pi"),
    ),
    Claim(
        "dbdp-follows-influence", "kang-dbdp", "Section 4, Algorithm 2, line 9",
        "Rows of little influence train without noise, rows of much influence with it.",
        "It is what sets Algorithm 2 apart from Algorithm 1.",
        ("dbdp-pi",), rules.follows_influence("dbdp-pi"),
    ),
    Claim(
        "dbdp-improves", "kang-dbdp", "Section 5, Figure 1",
        "The performance improving algorithm is more accurate than plain DBDP-ERM.",
        "It shows what the noise decision, or the start, is worth.",
        ("dbdp-pi", "dbdp"), compare.beats("dbdp-pi", "dbdp", compare.STEPS),
    ),
    Claim(
        "dbdp-improves-mlp", "kang-dbdp", "Section 5, Figure 1, MLP",
        "The same holds for a neural network with one hidden layer.",
        "The paper says that results on deep models are similar.",
        ("dbdp-pi", "dbdp"), compare.beats("dbdp-pi", "dbdp", compare.STEPS, "mlp"),
    ),
    Claim(
        "dbdp-gap-zero", "kang-dbdp", "Section 5, Figure 2",
        "On some data the optimality gap of the performance improving algorithm is almost 0.",
        "As for PIDP-SGD, the start may explain it.",
        ("dbdp-pi",), compare.gap_is_zero("dbdp-pi"),
    ),
    Claim(
        "dbdp-noise-rate", "kang-dbdp", "Theorem 1 and Table 1",
        "The variance of the noise on the data is of the order G²T ln(1/δ)/(n²ε²).",
        "On this the method is called as good as DP-SGD.",
        ("dbdp",), numerics.dbdp_noise_rate,
    ),
    Claim(
        "dbdp-noise-weight", "kang-dbdp", "Theorem 1, eq. (13); Theorem 2, eq. (16)",
        "Noise of variance σ² on a row reaches its gradient as noise of variance wσ².",
        "The proofs take from here how much noise the gradient gets.",
        ("dbdp", "dbdp-pi"), numerics.dbdp_weight,
    ),
    Claim(
        "dbdp-private", "kang-dbdp", "Theorem 1",
        "The model that DBDP-ERM (Algorithm 1) releases is (ε, δ)-differentially private.",
        "All else is worth what this is worth.",
        ("dbdp",), audits.stays_private("dbdp", {"as published": {}}, audits.opposed, n=1000, runs=(400, 4000)),
    ),
    Claim(
        "dbdp-pi-private", "kang-dbdp", "Theorem 2",
        "The model that the performance improving algorithm (Algorithm 2) releases is (ε, δ)-differentially private.",
        "All else is worth what this is worth.",
        ("dbdp-pi",), audits.stays_private("dbdp-pi", {"as published": {}}, audits.pushed, n=1000, runs=(600, 4000)),
    ),
    Claim(
        "ip-private", "kang-ip", "Theorem 1",
        "Noise on the features, once, makes the trained model (ε, δ)-differentially private.",
        "All else is worth what this is worth.",
        ("input-perturbation",),
        audits.stays_private(
            "input-perturbation", {"a draw for each row": {}, "one draw for all rows": {"sharing": "shared"}}, audits.opposed,
            n=1000, runs=(600, 4000),
        ),
    ),
    Claim(
        "ip-like-central", "kang-ip", "Section 6, Figures 2 to 4",
        "Input perturbation is almost as accurate as DP-GD (Wang et al.) and output perturbation (Zhang et al.), or better.",
        "Protecting the data as well would then cost nothing.",
        ("input-perturbation", "dp-gd", "outpert-gd"),
        compare.alike("input-perturbation", _STEPS, [("dp-gd", _STEPS), ("outpert-gd", _OUT_STEPS)], (0.01, 0.05, 0.1, 0.25)),
    ),
    Claim(
        "ip-like-central-mlp", "kang-ip", "Section 6, Figures 2 to 4, MLP",
        "For a neural network with one hidden layer input perturbation is almost as accurate as DP-GD, or better.",
        "The method is said to work whatever the model.",
        ("input-perturbation", "dp-gd"),
        compare.alike("input-perturbation", _NETWORK, [("dp-gd", _NETWORK)], (0.01, 0.05, 0.1, 0.25), "mlp"),
    ),
    Claim(
        "ip-beats-objective", "kang-ip", "Section 6, Figure 2",
        "Input perturbation is at least as accurate as objective perturbation.",
        "The paper calls objective perturbation much weaker.",
        ("input-perturbation", "kst-objective"),
        compare.alike("input-perturbation", _STEPS, [("kst-objective", ({},))], (0.01, 0.05, 0.1, 0.25)),
    ),
    Claim(
        "rsgd-ar-best", "chen-rsgd", "Section 5.1, Figures 1 and 2",
        "RSGD-AR is as accurate as each baseline or more so, for logistic regression and SVM.",
        "It is the paper's main result.",
        ("rsgd-ar", "kst-objective", "outpert-gd", "dp-sgd", "nsgd", "dp-agd"),
        rsgd.not_beaten("rsgd-ar", [
            ("kst-objective", ({},)), ("outpert-gd", _OUT_STEPS), ("dp-sgd", compare.DP_SGD), ("nsgd", rsgd.RSGD_AR),
            ("dp-agd", ({},)), ("majority", ({},)),
        ]),
    ),
    Claim(
        "permutation-saves", "chen-rsgd", "Section 4.2",
        "A random order of the rows needs less noise than a fixed one.",
        "Everybody shuffles anyway; this would be privacy for nothing.",
        ("rsgd", "rsgd-ar", "nsgd"), numerics.permutation_saves,
    ),
    Claim(
        "averaging-lowers-sensitivity", "chen-rsgd", "Section 4.3, Proposition 3",
        "Averaging the iterates lowers the sensitivity, so that less noise is needed.",
        "It matters against what: averaging comes together with restarts.",
        ("rsgd-ar",), numerics.averaging_lowers,
    ),
    Claim(
        "averaging-raises-accuracy", "chen-rsgd", "Abstract and Section 4.3",
        "Periodic averaging raises accuracy.",
        "Together with lower sensitivity it would help twice.",
        ("rsgd-ar", "rsgd"), rsgd.averaging_helps,
    ),
    Claim(
        "numerical-tighter", "chen-rsgd", "Section 4.1, below Proposition 2",
        "The sensitivity computed for full-batch descent is smaller than that of Zhang et al.",
        "Less noise for the same proof.",
        ("outpert-gd",), numerics.numerical_tighter,
    ),
    Claim(
        "objective-fastest", "chen-rsgd", "Section 5.2, Figure 3",
        "Objective perturbation is the fastest of the methods compared.",
        "Speed is a reason to choose a method.",
        ("kst-objective", "rsgd-ar", "nsgd", "outpert-gd", "dp-sgd"), speed.objective_fastest,
    ),
    Claim(
        "sgd-ma-surges", "chen-rsgd", "Section 5.1",
        "The accuracy of SGD with the moments accountant suddenly surges at a certain ε.",
        "A jump would be a reason to spend just a little more budget.",
        ("dp-sgd",), speed.surges,
    ),
)  # fmt: skip
