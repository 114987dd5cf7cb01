"""A pytest plugin that plants one mistake in dpviz, and the table of mistakes beyond mechanisms (`test_planted_mistakes.py`).

The source of one module is changed as it is imported, so that constants, decorated functions and compiled loops can be wrong too:

    DPVIZ_MISTAKE=3 PYTHONPATH=.:tests pytest -p planting tests/models/test_last_rows.py
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from planted_spending import SPENDING

ROOT = Path(__file__).parents[1]
M, E, R, C, P = "tests/models/", "tests/estimator/", "tests/releasing/", "tests/common/", "tests/papers/"
S = "tests/experiments/"


@dataclass(frozen=True)
class Mistake:
    """One row of the table.

    Attributes:
        name: what is wrong.
        module: file below dpviz/, without its suffix.
        old, new: source text, once in the module, and what stands there instead.
        seen_by: arguments of pytest: tests one of which must fail.
    """

    name: str
    module: str
    old: str
    new: str
    seen_by: str

    @property
    def path(self) -> Path:
        return ROOT / "dpviz" / f"{self.module}.py"


def _(room: str, *rows: tuple[str, str, str, str]) -> list[Mistake]:
    return [Mistake(name, room, old, new, seen_by) for name, old, new, seen_by in rows]


LAST, REPLACED = f"{M}test_last_rows.py", "tests/mechanisms/test_replaced_rows.py"
MISTAKES: list[Mistake] = [
    *_(
        "models/rows",
        ("a neighbour keeps the label", "X[index], labels[index] = x, y", "X[index] = x", REPLACED),
        ("a neighbour keeps its row", "X[index], labels[index] = x, y", "labels[index] = y", REPLACED),
        (
            "a neighbour keeps what was derived from the first dataset",
            "        return Rows(X, labels, self.person_rows, self.weights, self.class_weights, self.persons)",
            "        made = Rows(X, labels, self.person_rows, self.weights, self.class_weights, self.persons)\n"
            "        made.__dict__.update(_kept=self._kept)\n"
            "        return made",
            REPLACED,
        ),
        ("lengths of rows are squared", 'np.sqrt(np.einsum("ij,ij->i", self.X, self.X))', "(self.X**2).sum(axis=1)", LAST),
        ("the longest row is the mean one", "self.norms.max(initial=0.0)", "self.norms.mean()", LAST),
    ),
    *_(
        "models/row_budget",
        ("rows never leave", "(spent > self._limit)", "(spent < -1)", LAST),
        ("rows leave a step early", "spent += norms.astype(float) ** 2", "spent += 2 * norms.astype(float) ** 2", LAST),
        ("a slack of 1 %", "budget * (1 + slack)", "budget * 1.01", "tests/mechanisms/test_renyi_filter.py"),
    ),
    *_(
        "models/products",
        ("the last row is left out", "min(start + size, n)) for start", "min(start + size, n - 1)) for start", LAST),
        ("nothing is clipped", "slope *= clip_norm / np.maximum(np.abs(slope) * norms, clip_norm)", "pass", LAST),
        ("a third of the weights of rows is lost", "slope *= weights[block].T", "slope *= 0.7 * weights[block].T", LAST),
        ("the rule of row budgets is not asked", "slope *= rule(block, np.abs(slope) * norms)", "pass", LAST),
    ),
    *_(
        "models/network",
        ("a network is not clipped", "q *= clip_norm / np.maximum(norms, clip_norm)", "q *= 1.0", f"{M}test_network.py"),
        ("starts share the stream of the noise", "_INITIAL = 7", "_INITIAL = 1", f"{M}test_network.py"),
        ("starts of the second layer are too short", "/ np.sqrt(a.shape[1])", "/ a.shape[1]", f"{M}test_network.py"),
        (
            "all replicas start alike",
            "for r, stream in enumerate(streams):",
            "for r, stream in enumerate([streams[0]] * len(streams)):",
            f"{M}test_network.py",
        ),
    ),
    *_(
        "models/losses",
        (
            "the logistic slope is bounded by 1/2",
            "    slope_bound: float = 1.0\n    curvature_bound: float = 0.25",
            "    slope_bound: float = 0.5\n    curvature_bound: float = 0.25",
            f"{M}test_losses_models.py",
        ),
        (
            "curvature is bounded by 1/8",
            "curvature_bound: float = 0.25",
            "curvature_bound: float = 0.125",
            f"{M}test_losses_models.py",
        ),
    ),
    *_(
        "models/solvers/many",
        (
            "minimisers are less exact than they say",
            "tolerance: float = TOLERANCE,",
            "tolerance: float = 1e5 * TOLERANCE,",
            "tests/mechanisms/test_output_mechanisms.py tests/test_kept_numbers.py",
        ),
    ),
    *_("estimator/base", ("a pickle keeps the seed", 'state["random_state"] = None', "pass", E)),
    *_(
        "estimator/classifier",
        (
            "all classes share one draw",
            "return np.random.SeedSequence().spawn(count), random",
            "return np.random.SeedSequence().spawn(1) * count, random",
            E,
        ),
        ("δ is that of ten times the rows", "self.delta, n)", "self.delta, 10 * n)", E),
        (
            "the wrong class is positive",
            "codes == (1 if planned.models == 1 else k)",
            "codes == (0 if planned.models == 1 else k)",
            E,
        ),
        ("classes are read and nothing is said", "return classes, codes, (CLASS_LABELS,)", "return classes, codes, ()", E),
    ),
    *_(
        "estimator/features",
        ("rows outside the ranges are not clipped", "inside = np.clip(X, self.low, self.high)", "inside = X + 0.0", E),
        ("rows are not scaled into the ball", "1 / (reach * np.sqrt(d))", "1 / reach", E),
        ("the constant feature makes rows longer than 1", "np.ones((len(z), 1))]) * np.sqrt(0.5)", "np.ones((len(z), 1))])", E),
        ("ranges that were read are not said", 'X.max(axis=0), ("the range of every feature",)', "X.max(axis=0), ()", E),
    ),
    *_(
        "estimator/guarantee",
        ("a seed is no condition", "secret = (SECRET_SEED,) if seeded else ()", "secret = () if seeded else ()", E),
        (
            "every class gets the whole budget",
            "each = divided(Budget(budget.epsilon) if mechanism.pure else budget, models)",
            "each = Budget(budget.epsilon) if mechanism.pure else budget",
            E,
        ),
    ),
    *_(
        "releasing/grid",
        (
            "published numbers keep their low bits",
            "return Published(_doubles(_multiples(fit.theta[0, 0], step), step), step, False)",
            "return Published(fit.theta[0, 0], step, False)",
            R,
        ),
        ("the grid is that of a finer noise", "_FINE, _COARSE = 30, 20", "_FINE, _COARSE = 44, 20", R),
        (
            "exact noise is not drawn",
            "if noise is not None and noise.family in EXACT",
            "if noise is None and noise.family in EXACT",
            R,
        ),
    ),
    *_(
        "releasing/sampler",
        ("normal draws are never negative", "return -y if source.getrandbits(1) else y", "return y", R),
        ("gamma lengths miss a term", "for _ in range(size + 1)))", "for _ in range(size)))", R),
    ),
    *_(
        "releasing/training",
        (
            "a release takes its seed from the run",
            "stream = np.random.SeedSequence()  #",
            "stream = np.random.SeedSequence(run.spec.seed)  #",
            R,
        ),
        ("an unproved method needs no switch", "    if not unproved:\n        _require_proof(cal, of_model)", "    pass", R),
        ("ranges from the rows need no switch", "if dataset.looked_at and not ranges_from_data:", "if False:", R),
    ),
    *_(
        "releasing/card",
        ("a card names its private table", "if only_here(dataset.name) else", "if False else", R),
        ("a card says nothing of conditions", '*[f"- Only if: {condition}." for condition in cal.conditions],', "", R),
    ),
    *_(
        "common/memory",
        ("what was made of a table that is gone stays", "if entry.owner == owner]", "if False]", f"{C}test_memory.py"),
        ("a table that is gone comes back", "if entry.owner in _gone or", "if", f"{C}test_memory.py"),
        (
            "another version counts",
            "if entry is not None and entry.version == version:",
            "if entry is not None:",
            f"{C}test_memory.py",
        ),
        (
            "a cache without a bound",
            "LRUCache(most, getsizeof=lambda entry: entry.size)",
            "LRUCache(most, getsizeof=lambda entry: 0)",
            f"{C}test_memory.py",
        ),
    ),
    *_(
        "experiments/sweeps/store",
        ("a stored number may be changed", "if _digest(key, content) != digest:", "if False:", f"{S}sweeps"),
        (
            "an upload is written to the disk",
            "return  # nothing of an upload",
            "pass  # nothing of an upload",
            f"{S}sweeps tests/dashboard/test_uploads_leave.py",
        ),
    ),
    *_(
        "experiments/studies/releases",
        (
            "a key without the run's other fields",
            'key = f"{resolve(base).key()}|{budgets}"',
            'key = f"{spec.mechanism}|{budgets}"',
            f"{S}studies/test_releases.py",
        ),
    ),
    *_(
        "papers/claims/audits",
        (
            "half as much again refutes",
            "if result.epsilon_lower > CLAIMED]",
            "if result.epsilon_lower > 1.5 * CLAIMED]",
            f"{P}test_audited_claims.py",
        ),
        ("one proved reading proves all", "if all(c is not None", "if any(c is not None", f"{P}test_audited_claims.py"),
        (
            "readings do not share the error probability",
            "(1 - CONFIDENCE) / len(readings)",
            "(1 - CONFIDENCE)",
            f"{P}test_audited_claims.py",
        ),
    ),
    *_(
        "papers/saved",
        ("a refutation holds at every epsilon", "return found if audited else None", "return found", f"{P}test_refutations.py"),
        ("a refutation holds for every form", " or mechanism != type(mechanism)():", ":", f"{P}test_refutations.py"),
    ),
    *_(
        "papers/verdict",
        (
            "half is most",
            "(2 * held > n, 2 * failed >= n)",
            "(2 * held >= n, 2 * failed > n)",
            f"{P}test_claims.py {P}test_statements.py",
        ),
        (
            "one dataset refutes",
            "Outcome.FAILS if n > 1 and refuted",
            "Outcome.FAILS if refuted",
            f"{P}test_claims.py {P}test_statements.py",
        ),
    ),
    *_(
        "mechanisms/attack",
        (
            "a claim bounds the attacker",
            "    if proved is not None:\n        return proved.accuracy\n",
            "",
            "tests/mechanisms/test_attack.py",
        ),
    ),
    *_(
        "privacy/accounting/distance",
        (
            "half of the distance",
            "np.array(distance / 2), np.ones(()))) - 1",
            "np.array(distance / 4), np.ones(()))) - 1",
            "tests/test_one_number_of_odds.py",
        ),
        (
            "δ counts half",
            "+ 2 * math.exp(log_delta(epsilon))",
            "+ math.exp(log_delta(epsilon))",
            "tests/test_one_number_of_odds.py",
        ),
    ),
    *_(
        "privacy/budget",
        (
            "a δ above 1/n passes",
            "if delta is not None and delta >= 1 / n:",
            "if delta is not None and delta >= 1:",
            "tests/test_entry_points.py",
        ),
    ),
    *_(
        "auditing/judging",
        (
            "two tests have the whole error probability each",
            "if noise is not None or assumption else game",
            "if False else game",
            "tests/auditing/test_false_alarms.py",
        ),
    ),
    *[mistake for room, rows in SPENDING.items() for mistake in _(room, *rows)],
]


class _Wrong(importlib.machinery.SourceFileLoader):
    """Loads a module with a mistake in it."""

    def __init__(self, mistake: Mistake, *given: Any) -> None:
        super().__init__(*given)
        self.mistake = mistake

    def get_code(self, fullname: str) -> CodeType:
        text = self.mistake.path.read_text("utf-8")
        assert text.count(self.mistake.old) == 1, f"{self.mistake.name}: the source has changed"
        return compile(text.replace(self.mistake.old, self.mistake.new), str(self.mistake.path), "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        self.wanted = f"dpviz.{mistake.module.replace('/', '.')}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.wanted:
            return None
        place = str(self.mistake.path)
        return importlib.util.spec_from_file_location(fullname, place, loader=_Wrong(self.mistake, fullname, place))


def pytest_load_initial_conftests() -> None:
    """Before anything of dpviz is imported."""
    chosen = os.environ.get("DPVIZ_MISTAKE")
    if chosen is not None:
        assert not any(name == "dpviz" or name.startswith("dpviz.") for name in sys.modules), "too late"
        sys.meta_path.insert(0, _Finder(MISTAKES[int(chosen)]))
