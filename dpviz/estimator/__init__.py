"""Differentially private classifiers with scikit-learn's interface."""

from dpviz.estimator.classifier import PrivateClassifier
from dpviz.estimator.guarantee import Guarantee, PrivacyWarning

__all__ = ["Guarantee", "PrivacyWarning", "PrivateClassifier"]
