"""dpviz: privacy-utility trade-offs of differentially private empirical risk minimisation.

>>> import dpviz
>>> result = dpviz.run(dpviz.RunSpec(dataset="breast-cancer", mechanism="dp-gd", epsilon=1.0))
>>> result.accuracy.shape
(10,)
"""

from dpviz._version import __version__
from dpviz.auditing import AuditResult, audit
from dpviz.datasets import Dataset, dataset_names, load_dataset
from dpviz.engine import Baseline, Result, calibrate, models, run, run_epsilons
from dpviz.influence import Influence, influence_of
from dpviz.mechanisms import Calibration, Mechanism, knob, mechanisms
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.spec import RunSpec
from dpviz.sweeps import CellStore, SweepSpec, run_sweep, sweep
from dpviz.validate import InvalidInput

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
    "Result",
    "RunSpec",
    "Status",
    "SweepSpec",
    "__version__",
    "audit",
    "calibrate",
    "dataset_names",
    "influence_of",
    "knob",
    "load_dataset",
    "mechanisms",
    "models",
    "run",
    "run_epsilons",
    "run_sweep",
    "sweep",
]
