"""Preparations: what a part of a run's budget finds in its rows before training, and what is done to the rows with it."""

from dpviz.common.validate import check_choice
from dpviz.preparing.base import Preparation
from dpviz.preparing.ranges import RangesFound
from dpviz.preparing.scaling import ScalingChosen
from dpviz.preparing.standardisation import Standardised

#: by id, in the order in which they are done
PREPARATIONS: dict[str, Preparation] = {each.id: each for each in (RangesFound(), ScalingChosen(), Standardised())}


def get_preparation(name: str) -> Preparation:
    """The preparation with this id.

    Raises:
        InvalidInput: there is none.
    """
    return PREPARATIONS[check_choice("preparation", name, tuple(PREPARATIONS))]
