"""A link holds what differs from the defaults and the version of these."""

from urllib.parse import parse_qsl

import pytest
from support_pages import opened

import dpviz
from dpviz.experiments.run import links
from dpviz.experiments.run.spec import RunSpec
from dpviz.reporting import address

RUN = {"dataset": "iris", "epsilon": "0.5"}


def test_a_link_names_its_version_and_nothing_that_is_default() -> None:
    spec = RunSpec.from_query(RUN)
    assert dict(parse_qsl(address(spec)[1:])) == {**RUN, "v": str(links.VERSION)}
    assert address(RunSpec()) == "/"
    assert RunSpec.from_query(address(spec)) == RunSpec.from_query({**RUN, "v": str(links.VERSION)}) == spec


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "²", "01", "99999999999999"])
def test_an_unknown_version_is_reported(text: str) -> None:
    problems: list[dpviz.InvalidInput] = []
    assert RunSpec.from_query({**RUN, "v": text}, problems) == RunSpec.from_query(RUN)
    assert [one.field for one in problems] == ["v"]
    with pytest.raises(dpviz.InvalidInput, match="not a version of links"):
        RunSpec.from_query({**RUN, "v": text})


def test_a_page_writes_the_version() -> None:
    page = opened("One_model", epsilon="0.5")
    assert page.query_params["v"] in (str(links.VERSION), [str(links.VERSION)])
    assert any("not a version of links" in one.value for one in opened("One_model", v="7", epsilon="0.5").warning)
