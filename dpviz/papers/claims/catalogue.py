"""All claims, paper by paper: their words are in claims.toml, and their tests here, by the same ids."""

import tomllib
from functools import partial
from pathlib import Path

from dpviz.papers import sentences
from dpviz.papers.checks import leads
from dpviz.papers.claims import accuracy, audits, bagdasaryan, constants, numerics, population, risk, rsgd, rules, surges
from dpviz.papers.claims.context import Claim, Context, Test
from dpviz.papers.verdict import Outcome, Verdict

_STEPS = tuple({"steps": t} for t in (10, 50, 200))
_NETWORK = tuple({"steps": t, "step_size": s} for t in (10, 50, 200) for s in (1.0, 0.1))
# eq. (10) with q = 1/√n over eq. (15)
_LESS_NOISE = "At equal T the noise of Theorem 2 on a row of weight w is √(wn) times smaller than that of Theorem 1, rule or not."
_CENTRAL = (0.01, 0.05, 0.1, 0.25)  # the budgets of the figures that the claims of input perturbation are about
_UNLINKED = "are nearer to another original row than to their own"
_ONE_ROW = (
    "The proof takes the mean gradient where a step has that of drawn rows: with steps of 1/L their spread stays, and falls only "
    "as fast as batches grow."
)
_private = partial(audits.stays_private, n=1000, constants=numerics.OPEN)
_proved = partial(
    audits.stays_private,
    readings={"as published": {"accounting": "published"}},
    pair=audits.misclassified_pair,
    n=1000,
    runs=(600, 4000),
)


def running_time(context: Context) -> Verdict:
    """The answer to all claims about running times: they are not tested."""
    return Verdict(
        Outcome.UNDECIDED,
        "Running times depend on the machine and on the solvers; benchmarks/README.md has those of every method.",
        "Running times are not tested.",
    )


TESTS: dict[str, Test] = {
    "pidp-fewer-noised": rules.noise_rows_test("pidp-sgd"),
    "pidp-follows-influence": rules.follows_influence("pidp-sgd"),
    "pidp-decisions-change": rules.decisions_change,
    "pidp-beats-dp-sgd": accuracy.accuracy_test(sentences.PIDP_AHEAD, "pidp-sgd", "dp-sgd"),
    "pidp-beats-dp-sgd-mlp": accuracy.accuracy_test(sentences.PIDP_AHEAD, "pidp-sgd", "dp-sgd", "mlp", "mlp-8"),
    "pidp-gap-zero": accuracy.gap_almost_zero(sentences.PIDP_GAP, "pidp-sgd"),
    "pidp-private": _private(
        "pidp-sgd", {"step 1/L": {}, "step 0.1/L": {"step_size": 0.1}}, audits.misclassified_pair, runs=(600, 4000)
    ),
    "network-pl": numerics.network_pl,
    "pidp-generalisation": population.population("dp-sgd", excess=False),
    "pidp-population-risk": population.population("dp-sgd", excess=True),
    "pidp-generalisation-pidp": population.population("pidp-sgd", excess=False),
    "pidp-excess-rate-sgd": population.empirical("dp-sgd", population.theorem1, _ONE_ROW),
    "pidp-excess-rate": population.empirical("pidp-sgd", population.theorem1, _ONE_ROW),
    "pidp-complexity": running_time,
    "pidp-population-risk-pidp": population.population("pidp-sgd", excess=True),
    "pidp-exchange-twice": risk.exchanged_rows,
    "influence-error": numerics.influence_error,
    "influential-are-found": risk.exposure_verdict,
    "dbdp-fewer-noised": rules.noise_rows_test("dbdp-pi"),
    "dbdp-follows-influence": rules.follows_influence("dbdp-pi"),
    "dbdp-improves": accuracy.accuracy_test(sentences.DBDP_AHEAD, "dbdp-pi", "dbdp", why=_LESS_NOISE),
    "dbdp-improves-mlp": accuracy.accuracy_test(sentences.DBDP_AHEAD, "dbdp-pi", "dbdp", "mlp", why=_LESS_NOISE),
    "dbdp-gap-zero": accuracy.gap_almost_zero(sentences.DBDP_GAP, "dbdp-pi"),
    "dbdp-published-rows": rules.published_rows("dbdp-pi", (0.1, 1.0, 7.0), rules.changed_rows, "differ from the original"),
    "dbdp-rows-protected": rules.published_rows("dbdp", (0.1, 1.0, 7.0), rules.unlinked_rows, _UNLINKED),
    "dbdp-excess-rate": population.empirical("dbdp-pi", population.theorem1, _ONE_ROW),
    "dbdp-noise-rate": numerics.dbdp_noise_rate,
    "dbdp-noise-below-song": numerics.noise_below_song,
    "dbdp-noise-weight": numerics.dbdp_weight,
    "dbdp-private": _private("dbdp", {"as published": {"average": False}}, audits.opposed_rows_pair, runs=(400, 4000)),
    "dbdp-any-constant": constants.constant_test("dbdp", constants.dbdp_step, 0.25),
    "dbdp-pi-private": _private("dbdp-pi", {"as published": {}}, audits.misclassified_pair, runs=(600, 4000)),
    "ip-private": _private(
        "input-perturbation",
        {"a draw for each row": {}, "one draw for all rows": {"sharing": "shared"}},
        audits.opposed_rows_pair,
        runs=(600, 4000),
    ),
    "ip-any-constant": constants.constant_test("input-perturbation", constants.input_perturbation_step, 0.5),
    "ip-private-pl": _private(
        "input-perturbation", {"a draw for each row": {"theorem": "pl"}}, audits.opposed_rows_pair, runs=(600, 4000)
    ),
    "ip-rows-protected": rules.published_rows("input-perturbation", _CENTRAL, rules.unlinked_rows, _UNLINKED),
    "ip-local-like-fukuchi": numerics.local_like_fukuchi,
    "ip-noise-like-gradient": numerics.noise_like_gradient,
    "ip-noise-below-bassily": numerics.noise_below_bassily,
    "ip-excess-rate": population.empirical("input-perturbation", population.theorem4),
    "ip-excess-rate-convex": population.empirical("input-perturbation", population.theorem4, theorem="strongly-convex"),
    "ip-like-central": accuracy.comparison_test(
        sentences.IP_LIKE_CENTRAL, "input-perturbation", _STEPS, [("dp-gd", _STEPS), ("outpert-gd", _STEPS)], _CENTRAL
    ),
    "ip-like-central-mlp": accuracy.comparison_test(
        sentences.IP_LIKE_CENTRAL, "input-perturbation", _NETWORK, [("dp-gd", _NETWORK)], _CENTRAL, "mlp"
    ),
    "ip-beats-objective": accuracy.comparison_test(
        sentences.IP_BEATS_OBJECTIVE, "input-perturbation", _STEPS, [("kst-objective", ({},))], _CENTRAL
    ),
    # no figure of the paper shows these two
    "ip-beats-local": accuracy.comparison_test(
        leads("input-perturbation", "ldp-duchi"), "input-perturbation", _STEPS, [("ldp-duchi", ({},))], _CENTRAL
    ).run,
    "ip-beats-fukuchi": accuracy.comparison_test(
        leads("input-perturbation", "fukuchi-input"), "input-perturbation", _STEPS, [("fukuchi-input", ({},))], _CENTRAL
    ).run,
    "ip-noise-below-fukuchi": numerics.noise_below_fukuchi,
    "rsgd-ar-best": rsgd.competitive(
        sentences.RSGD_COMPETITIVE,
        "rsgd-ar",
        [
            ("kst-objective", ({},)),
            ("outpert-gd", ({"steps": 20}, {"steps": 200})),
            ("dp-sgd", accuracy.DP_SGD),
            ("nsgd", rsgd.RSGD_AR),
            ("dp-agd", ({},)),
            ("majority", ({},)),
        ],
    ),
    "nsgd-private": _proved("nsgd"),
    "rsgd-private": _proved("rsgd"),
    "rsgd-ar-private": _proved("rsgd-ar"),
    "permutation-saves": rsgd.permutation_saves,
    "averaging-lowers-sensitivity": rsgd.averaging_lowers,
    "averaging-raises-accuracy": rsgd.averaging_helps,
    "numerical-tighter": numerics.compare_sensitivities,
    "lbfgs-iterations": rsgd.few_iterations,
    "objective-fastest": running_time,
    "rsgd-ar-as-fast": running_time,
    "sampling-is-slow": running_time,
    "sgd-ma-surges": surges.surges(sentences.SGD_SURGES),
    "small-groups-lose-more": bagdasaryan.small_groups_lose_more,
}
_WORDS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))["claim"]
CLAIMS = tuple(Claim(**words | {"mechanisms": tuple(words["mechanisms"])}, test=TESTS[words["id"]]) for words in _WORDS)
