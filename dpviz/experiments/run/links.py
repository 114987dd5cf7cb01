"""The version of a link: it names the defaults that an address leaves out."""

from collections.abc import Mapping

from dpviz.common.validate import InvalidInput, show

KEY = "v"
VERSION = 2
#: what links of earlier versions leave out
_BEFORE = {"1": {"mechanism": "dp-gd"}}


def add_version(query: Mapping[str, str]) -> dict[str, str]:
    """An address with the version of its defaults; one that holds nothing is the app itself and needs none.

    >>> add_version({"epsilon": "0.5"})
    {'epsilon': '0.5', 'v': '2'}
    """
    rest = {key: value for key, value in query.items() if key != KEY}
    return rest | {KEY: str(VERSION)} if rest else {}


def drop_version(query: Mapping[str, str], problems: list[InvalidInput] | None = None) -> dict[str, str]:
    """An address without its version, in today's defaults. Without a version it means these too.

    Args:
        problems: where given, an unknown version is reported here; otherwise it raises.
    """
    text = query.get(KEY, str(VERSION))
    if text in _BEFORE:
        query = _BEFORE[text] | dict(query)
    elif text != str(VERSION):
        problem = InvalidInput(
            KEY, f"{show(text)} is not a version of links that dpviz knows", f"Defaults are those of version {VERSION}."
        )
        if problems is None:
            raise problem
        problems.append(problem)
    return {key: value for key, value in query.items() if key != KEY}
