"""Options of the shell and lists of methods in messages of the engine, named on pages as the controls that do the same."""

import re
from collections.abc import Mapping

from dpviz.mechanisms import list_mechanisms

#: the control that does what an option of the shell does, by option
CONTROLS: Mapping[str, str] = {
    "columns": "“use” in its line",
    "drop": "no tick at “use” in its line",
    "fill": "“value for gaps” in its line",
    "i-know-this-is-not-proved": "“Publish a model whose guarantee is only claimed”",
    "metric": "“Metric”",
    "missing": "“Words that are gaps”",
    "person": "“Person (whose row it is)”",
    "all-rows": "“Train on all rows, and not on 80 % of them”",
    "private-ranges": "`dpviz release` in a shell",
    "person-rows": "“Rows of one person, at most”",
    "positive": "“Values that count as +1”",
    "ranges-from-data": "“Publish ranges and categories that were read from the rows”",
    "round-range": "“take it” in its line",
    "row-scaling": "“Row scaling” in More settings",
    "sheet": "“Sheet of a workbook”",
    "target": "“Label”",
}
_WORD = r"(?:'[^']*'(?:\"'\"'[^']*')*|[\w@%+=:,./-]*[\w@%+=/-])"  # an argument as `shlex.quote` writes it
#: an option that is followed by other ways to say the same, the last of which is the page's
_WAYS = re.compile(rf"--[a-z][a-z-]+(?: {_WORD})?(?: on the command line)?, [^“]*?(“[^”]+”) on the page Data")
_NAMES = "|".join(sorted(CONTROLS, key=len, reverse=True))
_LIST = re.compile(r"Choose one of: ([a-z-]+(?:, [a-z-]+)*)\.")
_OPTION = re.compile(rf"(?<![\w-])--({_NAMES})(?![\w-])(?: (?!on |or |in ){_WORD})?(?: on the command line)?")


def page_message(message: str, methods: str = "Mechanism") -> str:
    """A message of the engine with the controls of a page in the place of options.

    Args:
        methods: the control that chooses methods.

    >>> page_message("If it is not known before, leave it out (--drop 'blood pressure').")
    'If it is not known before, leave it out (no tick at “use” in its line).'
    >>> page_message("Choose one of: dp-gd, dp-sgd.")
    'Choose one under “Mechanism”.'
    """

    def listed(found: re.Match[str]) -> str:
        return f"Choose one under “{methods}”." if {*found[1].split(", ")} <= {*list_mechanisms()} else found[0]

    return _OPTION.sub(lambda found: CONTROLS[found[1]], _LIST.sub(listed, _WAYS.sub(r"\1", message)))


def control_label(field: str) -> str:
    """The label of the control that sets a field; the field itself where it is no control of its own.

    >>> control_label("positive"), control_label("columns")
    ('Values that count as +1', 'columns')
    """
    control = CONTROLS.get(field, "")
    return control[1:-1] if control.endswith("”") else field
