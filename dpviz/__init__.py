"""dpviz: privacy-utility trade-offs of differentially private empirical risk minimisation.

>>> import dpviz
>>> result = dpviz.run(dpviz.RunSpec(dataset="breast-cancer", mechanism="dp-gd", epsilon=1.0))
>>> result.accuracy.shape
(10,)
"""

from dpviz.auditing import AuditResult, audit
from dpviz.common.fingerprint import __version__
from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset, list_datasets, load_dataset
from dpviz.experiments.resolve import ResolvedRun, resolve
from dpviz.experiments.run import Baseline, Result, calibrate, list_models, run, run_epsilons
from dpviz.experiments.setup import Setup, setup_for
from dpviz.experiments.spec import RunSpec
from dpviz.experiments.sweep import CellStore, SweepSpec, run_sweep, sweep
from dpviz.influence import Influence, influence_of
from dpviz.mechanisms import Calibration, Mechanism, knob, list_mechanisms
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.privacy.individual import IndividualEpsilon

__all__ = [
    "AuditResult",
    "Baseline",
    "Budget",
    "Calibration",
    "CellStore",
    "Dataset",
    "IndividualEpsilon",
    "Influence",
    "InvalidInput",
    "Mechanism",
    "Neighbouring",
    "ResolvedRun",
    "Result",
    "RunSpec",
    "Setup",
    "Status",
    "SweepSpec",
    "__version__",
    "audit",
    "calibrate",
    "influence_of",
    "knob",
    "list_datasets",
    "list_mechanisms",
    "list_models",
    "load_dataset",
    "resolve",
    "run",
    "run_epsilons",
    "run_sweep",
    "setup_for",
    "sweep",
]
