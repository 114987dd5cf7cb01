"""Mistakes of the ledger, of private searches and of private ranges, for the table in `planting.py`, by file."""

R, E = "tests/releasing/", "tests/estimator/"
LEDGER, RANGES = "tests/spending/test_ledger.py", "tests/privacy/test_private_ranges.py"
SEARCH, OWN_SEARCH = f"{R}test_private_search.py", f"{E}test_private_search.py"
FOUND = f"{R}test_private_ranges_of_release.py"
RUNS = "tests/experiments/run/test_runs_in_private_ranges.py"
PERSONS = "tests/experiments/run/test_runs_of_persons.py"

SPENDING: dict[str, list[tuple[str, str, str, str]]] = {
    "estimator/base": [("a pickle of a search keeps the seed", 'state["random_state"] = None', "pass", OWN_SEARCH)],
    "estimator/plan": [
        (
            "private ranges of a fit are free",
            "for_ranges, for_models = shares(total)",
            "for_ranges, for_models = shares(total)[0], total",
            RANGES,
        )
    ],
    "estimator/private_search": [
        (
            "scores of a search are those of rows trained on",
            "self.x[self.scoring] @",
            "self.x[self.training][: len(self.scoring)] @",
            OWN_SEARCH,
        ),
        ("a searched person of several rows pays for one", "total, person_rows)", "total)", PERSONS),
        (
            "private ranges of a searched classifier are for a row",
            "of_row(for_ranges, max(1, person_rows))",
            "for_ranges",
            PERSONS,
        ),
        ("runs of a seed share their noise", "self.source.getrandbits(32) if", "1 if", OWN_SEARCH),
        ("a model for each class is counted as one", "_setting(n, d)[:2], models)", "_setting(n, d)[:2], 1)", OWN_SEARCH),
        (
            "all runs are returned",
            "self.guarantee_, self.classes_ =",
            "self.cv_results_ = runs\n        self.guarantee_, self.classes_ =",
            OWN_SEARCH,
        ),
    ],
    "experiments/run/ranges": [
        ("private ranges of a run cost the whole budget", "of_ranges, _ = shares(", "of_ranges = (", RUNS),
        ("private ranges of a run of persons are for a row", "of_row(of_ranges, max(1, dataset.person_rows))", "of_ranges", RUNS),
        ("private ranges of a run see test rows", "name: values[train] for", "name: values for", RUNS),
    ],
    "experiments/run/spec": [
        ("runs at several ε share private ranges", "if self.ranges == PRIVATE and Changes.DATA in changes", "if False", RUNS)
    ],
    "mechanisms/ranges": [
        ("private ranges of a release cost nothing", "(together(budget, of_ranges) for", "(budget for", FOUND),
        ("private ranges of a run are free", "_without(setting), of_model), budget", "_without(setting), budget), budget", RUNS),
        ("the event forgets private ranges", "if event is None or calibration.of_ranges is None:", "if True:", RUNS),
    ],
    "releasing/ranges": [
        (
            "private ranges of a release of persons are for a row",
            "for name in numbers}, of_row(budget, max(1, dataset.person_rows))",
            "for name in numbers}, budget",
            FOUND,
        )
    ],
    "releasing/tuning": [
        (
            "a search for persons is one for rows",
            "total, tried.dataset.person_rows)\n    if ledger",
            "total, 0)\n    if ledger",
            PERSONS,
        ),
        (
            "private ranges of a search are free",
            "of_ranges, total = shares(whole) if",
            "of_ranges, total = (shares(whole)[0], whole) if",
            FOUND,
        ),
        (
            "scoring rows are trained on",
            "return np.sort(order[:cut]), np.sort(order[cut:])",
            "return np.sort(order), np.sort(order[cut:])",
            SEARCH,
        ),
    ],
    "spending/ledger": [
        ("two writers do not wait for each other", "self._lock.acquire()", "pass", LEDGER),
        ("a limit is stated and not checked", "_check(content, entry, relation)\n            ", "", LEDGER),
        (
            "the limit counts the entry alone",
            "(*_entries(content), entry), limit.delta, counted",
            "(entry,), limit.delta, counted",
            LEDGER,
        ),
        (
            "what is only claimed costs nothing",
            "[entry.release for entry in entries]",
            "[e.release for e in entries if e.proved]",
            LEDGER,
        ),
        ("a claim makes no total a claim", "Status.CLAIM if unproved else", "", LEDGER),
        ("releases about other neighbours are added", "if relation is not counted:", "if False:", LEDGER),
    ],
    "spending/of_run": [("several models are entered as one", "release = Repeated(event, models)", "release = event", LEDGER)],
    "privacy/private_ranges": [
        ("the threshold forgets the row itself", "threshold = 1 - sigma", "threshold = -sigma", RANGES),
        ("values of one row are listed", "> noise.threshold)", "> 1)", RANGES),
        ("counts are listed without noise", "counts[value] + source.gauss(0.0, noise.sigma)", "counts[value]", RANGES),
        ("noise on categories is that of an added row", "2 * categories)", "categories)", RANGES),
        ("noise on ranges is that of one query", "math.sqrt(4 * numbers", "math.sqrt(2 * numbers", RANGES),
        ("delta is spent twice", "budget.delta / 2) if categories", "budget.delta) if categories", RANGES),
        ("bins are counted without noise", "count + source.gauss(0.0, sigma)", "float(count)", RANGES),
    ],
    "spending/private_search": [
        ("the number of runs is fixed", "made.repetitions.draw(source.random())", "round(made.repetitions.mean)", SEARCH),
        ("scores carry no noise", " + source.gauss(0.0, made.score_sigma)", "", SEARCH),
        ("settings are tried in turn", "source.randrange(len(made.calibrations))", "done % len(made.calibrations)", SEARCH),
        ("a person of several rows pays for one", "row = of_row(total, count)", "row = total", SEARCH),
        ("the choice is free", "planned(e).total.epsilon - total.epsilon", "e - total.epsilon", SEARCH),
        ("the first run is released", "if best is None or score > best[0]:", "if best is None:", SEARCH),
        ("the cheapest setting counts for all", "return np.max(curves, axis=0)", "return np.min(curves, axis=0)", SEARCH),
    ],
}
