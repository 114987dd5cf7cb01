"""Influence of training rows: influence functions, and retraining without the row to check them."""

from dpviz.influence.functions import DENSE_APPROXIMATION, Influence, influence_of
from dpviz.influence.leave_one_out import Retrained, error_bound, row_gradients
