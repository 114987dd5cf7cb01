"""Kernels that a server compiles before a session begins."""

from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep
from dpviz.models.losses import Logistic
from tests.models.tables import needs_kernels

METHODS = ("dp-gd", "dp-sgd", "bassily-sgd", "dp-agd", "dp-svrg", "renyi-filter", "rsgd", "outpert-gd", "objective-tight")


@needs_kernels
def test_all_that_a_table_of_some_thousand_rows_takes() -> None:
    from dpviz.models.kernels import products

    makers = (products.gradient_of, products.batches_of, products.descent_of, products.margins_of, products.line_losses_of)
    assert len(list(products.compiled_ahead(Logistic()))) == 8
    before = [maker.cache_info() for maker in makers]
    run_sweep(SweepSpec("census-2000", mechanisms=METHODS, epsilons=[0.5, 2.0], seeds=10))
    after = [maker.cache_info() for maker in makers]
    assert [one.misses for one in after] == [one.misses for one in before]
    assert all(one.hits > other.hits for one, other in zip(after, before, strict=True)), "a kernel that nothing takes"
