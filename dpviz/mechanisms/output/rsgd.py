"""Output perturbation of mini-batch SGD after one secret permutation."""

from dataclasses import dataclass

from dpviz.mechanisms.output.permuted_sgd import Permuted


@dataclass(frozen=True)
class RSGD(Permuted):
    """NSGD on randomly permuted rows: the sensitivity is Delta[j] with probability |B_j|/n."""

    id = "rsgd"
    label = "RSGD (permuted)"
    citation = "Chen, Lee, Kifer, AISTATS 2019, section 4.2, Algorithm 2 and Lemma 3"
    guarantee = "(ε, δ)-DP, proved; the secret permutation makes the sensitivity random, which lowers the noise a little."
