"""The distinguishing game: an attacker who knows two neighbouring datasets guesses which one a model was trained on.

`audit` plays it many times on one pair; `audit_one_run` trains once on many canaries.
"""

from dpviz.auditing.game import audit, prepare, watch
from dpviz.auditing.one_run import Canaries, OneRunResult, audit_one_run, axis_canaries, row_canaries
from dpviz.auditing.pairs import PAIRS, Pair, battery, label_flip, most_influential, pair_without, replace_by, worst_case
from dpviz.auditing.result import EXCEEDED, NO_CLAIM, NO_VIOLATION, AuditResult
from dpviz.auditing.runs import audit_run, one_run_of, pair_of, watch_run
from dpviz.auditing.scores import SCORES
from dpviz.auditing.survey import Surveyed
