"""The distinguishing game: an attacker who knows two neighbouring datasets guesses which one a model was trained on."""

from dpviz.auditing.game import audit, audit_pairs, watch
from dpviz.auditing.pairs import PAIRS, Pair, battery, label_flip, most_influential, replace_by, without, worst_case
from dpviz.auditing.result import EXCEEDED, NO_CLAIM, NO_VIOLATION, AuditResult
from dpviz.auditing.scores import SCORES
from dpviz.auditing.survey import Surveyed

__all__ = [
    "EXCEEDED",
    "NO_CLAIM",
    "NO_VIOLATION",
    "PAIRS",
    "SCORES",
    "AuditResult",
    "Pair",
    "Surveyed",
    "audit",
    "audit_pairs",
    "battery",
    "label_flip",
    "most_influential",
    "replace_by",
    "watch",
    "without",
    "worst_case",
]
