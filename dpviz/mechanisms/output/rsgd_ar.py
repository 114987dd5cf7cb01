"""Output perturbation of mini-batch SGD with periodic averaging and restarts."""

from dataclasses import dataclass

from dpviz.mechanisms.base import knob
from dpviz.mechanisms.knobs import step_size_knob
from dpviz.mechanisms.output.permuted_sgd import FIRST_STEP, Permuted


@dataclass(frozen=True)
class RSGDAR(Permuted):
    """RSGD whose iterate becomes its own mean, and whose step size starts anew, every tau epochs."""

    id = "rsgd-ar"
    label = "RSGD-AR (averaged, restarted)"
    citation = "Chen, Lee, Kifer, AISTATS 2019, Algorithm 3 and Proposition 3"
    guarantee = "(ε, δ)-DP, proved; restarts raise the sensitivity, averaging lowers it; the secret permutation makes it random."

    step_size: float = step_size_knob(
        "Size of a step in the first epoch after a restart; later ones decay.", FIRST_STEP, label="First step size"
    )
    tau: int = knob(5, "Interval τ", "Epochs between averagings and restarts.", low=1, high=1000, log=True)
    averaging: bool = knob(True, "Averaging", "Replace the iterate by the mean of the last τ epochs (Algorithm 3, line 13).")
    restarts: bool = knob(True, "Restarts", "Start the step size anew after τ epochs (Algorithm 3, line 14).")

    def window(self) -> tuple[int, bool, bool]:
        return self.tau, self.averaging, self.restarts
