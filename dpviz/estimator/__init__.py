"""Differentially private classifiers with scikit-learn's interface."""

from dpviz.estimator.classifier import PrivateClassifier
from dpviz.estimator.guarantee import Guarantee, PrivacyWarning
from dpviz.estimator.private_search import PrivateSearchCV

__all__ = ["Guarantee", "PrivacyWarning", "PrivateClassifier", "PrivateSearchCV"]
