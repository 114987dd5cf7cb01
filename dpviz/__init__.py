"""dpviz: privacy-utility trade-offs of differentially private empirical risk minimisation.

>>> import dpviz
>>> result = dpviz.run(dpviz.RunSpec(dataset="breast-cancer", mechanism="dp-gd", epsilon=1.0))
>>> result.accuracy.shape
(10,)
"""

TYPE_CHECKING = False  # `typing` takes a moment to load, in which the command would not hear Ctrl-C
if TYPE_CHECKING:
    from dpviz.auditing import AuditResult, OneRunResult, audit, audit_one_run, audit_run
    from dpviz.auditing.attacks.attacked import AttackedRun
    from dpviz.auditing.attacks.scorer import MembershipRisk, membership_risk
    from dpviz.auditing.attacks.study import attack_run
    from dpviz.common.validate import InvalidInput
    from dpviz.common.version import __version__
    from dpviz.datasets import Dataset, dataset, list_datasets, load_dataset
    from dpviz.estimator import Guarantee, PrivacyWarning, PrivateClassifier, PrivateSearchCV
    from dpviz.experiments.run.resolve import ResolvedRun, resolve
    from dpviz.experiments.run.run import Baseline, Result, calibrate, list_models, run, run_epsilons
    from dpviz.experiments.run.setup import Setup, setup_for
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.experiments.studies.influences import influence_of
    from dpviz.experiments.sweeps.folds import cross_validate
    from dpviz.experiments.sweeps.sweep import CellStore, SweepSpec, run_sweep, sweep
    from dpviz.influence import Influence
    from dpviz.mechanisms import Calibration, Mechanism, knob, list_mechanisms
    from dpviz.papers.claims import list_claims
    from dpviz.privacy.budget import Budget, Neighbouring, Status
    from dpviz.privacy.individual import IndividualEpsilon
    from dpviz.privacy.private_ranges import private_ranges
    from dpviz.releasing import Release, ReleasedModel, load_model, release
    from dpviz.releasing.tuning import private_search
    from dpviz.spending import Entry, Ledger

#: where the public names live. They are loaded when they are first asked for, so that the command hears Ctrl-C from its
#: first moment on, and its short answers take a moment only
_HOMES = {
    "dpviz.auditing": ("AuditResult", "OneRunResult", "audit", "audit_one_run", "audit_run"),
    "dpviz.auditing.attacks.attacked": ("AttackedRun",),
    "dpviz.auditing.attacks.scorer": ("MembershipRisk", "membership_risk"),
    "dpviz.auditing.attacks.study": ("attack_run",),
    "dpviz.common.version": ("__version__",),
    "dpviz.common.validate": ("InvalidInput",),
    "dpviz.datasets": ("Dataset", "dataset", "list_datasets", "load_dataset"),
    "dpviz.estimator": ("Guarantee", "PrivacyWarning", "PrivateClassifier", "PrivateSearchCV"),
    "dpviz.experiments.sweeps.folds": ("cross_validate",),
    "dpviz.experiments.studies.influences": ("influence_of",),
    "dpviz.experiments.run.resolve": ("ResolvedRun", "resolve"),
    "dpviz.experiments.run.run": ("Baseline", "Result", "calibrate", "list_models", "run", "run_epsilons"),
    "dpviz.experiments.run.setup": ("Setup", "setup_for"),
    "dpviz.experiments.run.spec": ("RunSpec",),
    "dpviz.experiments.sweeps.sweep": ("CellStore", "SweepSpec", "run_sweep", "sweep"),
    "dpviz.influence": ("Influence",),
    "dpviz.mechanisms": ("Calibration", "Mechanism", "knob", "list_mechanisms"),
    "dpviz.papers.claims": ("list_claims",),
    "dpviz.privacy.budget": ("Budget", "Neighbouring", "Status"),
    "dpviz.privacy.individual": ("IndividualEpsilon",),
    "dpviz.releasing": ("Release", "ReleasedModel", "load_model", "release"),
    "dpviz.releasing.tuning": ("private_search",),
    "dpviz.spending": ("Entry", "Ledger"),
    "dpviz.privacy.private_ranges": ("private_ranges",),
}

__all__ = [
    "AttackedRun",
    "AuditResult",
    "Baseline",
    "Budget",
    "Calibration",
    "CellStore",
    "Dataset",
    "Entry",
    "Guarantee",
    "IndividualEpsilon",
    "Influence",
    "InvalidInput",
    "Ledger",
    "Mechanism",
    "MembershipRisk",
    "Neighbouring",
    "OneRunResult",
    "PrivacyWarning",
    "PrivateClassifier",
    "PrivateSearchCV",
    "Release",
    "ReleasedModel",
    "ResolvedRun",
    "Result",
    "RunSpec",
    "Setup",
    "Status",
    "SweepSpec",
    "__version__",
    "attack_run",
    "audit",
    "audit_one_run",
    "audit_run",
    "calibrate",
    "cross_validate",
    "dataset",
    "influence_of",
    "knob",
    "list_claims",
    "list_datasets",
    "list_mechanisms",
    "list_models",
    "load_dataset",
    "load_model",
    "membership_risk",
    "private_ranges",
    "private_search",
    "release",
    "resolve",
    "run",
    "run_epsilons",
    "run_sweep",
    "setup_for",
    "sweep",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module
        from importlib.util import find_spec

        for home, names in _HOMES.items():
            if name in names:
                value = getattr(import_module(home), name)
                globals()[name] = value
                return value
        if not name.startswith("_") and find_spec(f"dpviz.{name}") is not None:
            return import_module(f"dpviz.{name}")
        raise AttributeError(f"module 'dpviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
