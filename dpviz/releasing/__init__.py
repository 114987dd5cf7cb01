"""A model to be used by others: trained once with secret randomness, written as JSON with a card, loaded without pickle."""

from dpviz.releasing.model import ReleasedModel, load_model
from dpviz.releasing.training import Release, release

__all__ = ["Release", "ReleasedModel", "load_model", "release"]
