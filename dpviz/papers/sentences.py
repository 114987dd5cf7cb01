"""Checks of the sentences that both a claim and a figure of a paper state: one object each, so that they cannot disagree."""

from dpviz.papers.checks import MARGIN, has_small_gap, leads, matches, surges
from dpviz.papers.verdict import Scope

#: where a method's published start is the non-private model
STARTED = "training starts at the non-private model, which has seen all data without noise"

PIDP_AHEAD = leads("pidp-sgd", "dp-sgd", scope=Scope.MOST)
PIDP_GAP = has_small_gap("pidp-sgd", Scope.SOME)
DBDP_AHEAD = leads("dbdp-pi", "dbdp", scope=Scope.MOST)
DBDP_GAP = has_small_gap("dbdp-pi", Scope.SOME)
IP_LIKE_CENTRAL = matches("input-perturbation", ("dp-gd", "outpert-gd"))
IP_BEATS_OBJECTIVE = leads("input-perturbation", "kst-objective")
RSGD_COMPETITIVE = matches("rsgd-ar", ("kst-objective", "outpert-gd", "dp-sgd", "nsgd", "dp-agd", "majority"), margin=MARGIN)
SGD_SURGES = surges("dp-sgd")
