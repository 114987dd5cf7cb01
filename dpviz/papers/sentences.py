"""Checks of the sentences that both a claim and a figure of a paper state: one object each, so that they cannot disagree."""

from dpviz.papers.checks import MARGIN, ahead, almost_zero, as_good, surges
from dpviz.papers.verdict import Scope

#: where a method's published start is the non-private model
STARTED = "training starts at the non-private model, which has seen all data without noise"

PIDP_AHEAD = ahead("pidp-sgd", "dp-sgd", scope=Scope.MOST)
PIDP_GAP = almost_zero("pidp-sgd", Scope.SOME)
DBDP_AHEAD = ahead("dbdp-pi", "dbdp", scope=Scope.MOST)
DBDP_GAP = almost_zero("dbdp-pi", Scope.SOME)
IP_LIKE_CENTRAL = as_good("input-perturbation", ("dp-gd", "outpert-gd"))
IP_BEATS_OBJECTIVE = ahead("input-perturbation", "kst-objective")
RSGD_COMPETITIVE = as_good("rsgd-ar", ("kst-objective", "outpert-gd", "dp-sgd", "nsgd", "dp-agd", "majority"), margin=MARGIN)
SGD_SURGES = surges("dp-sgd")
