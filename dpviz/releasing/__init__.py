"""A model to be used by others: trained once with secret randomness, written as JSON with a card, loaded without pickle."""

from dpviz.releasing.model import ReleasedModel, load_model
from dpviz.releasing.training import Release, check_place, release

__all__ = ["Release", "ReleasedModel", "check_place", "load_model", "release"]
