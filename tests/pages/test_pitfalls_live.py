"""The links of docs/pitfalls.md open pages with their settings, and the pages say what the links promise."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from support_pages import opened, settled, text

from dpviz.dashboard.components.recorder import get_recorder
from dpviz.experiments.run import links
from dpviz.experiments.run.spec import RunSpec

PAGE = (Path(__file__).parents[2] / "docs" / "pitfalls.md").read_text(encoding="utf-8")
LINKS = re.findall(r"^\| \d+ .* \[“(.+)”\]\(http://127\.0\.0\.1:8501(/[^)]+)\) \|$", PAGE, re.M)


def test_each_pitfall_has_a_link_of_this_version() -> None:
    assert len(LINKS) == 12
    assert all(f"&{links.KEY}={links.VERSION}" in link for _, link in LINKS)


@pytest.mark.long
@pytest.mark.parametrize(("words", "link"), LINKS, ids=range(1, len(LINKS) + 1))
def test_a_link_shows_it(words: str, link: str) -> None:
    address = urlsplit(link)
    page = settled(opened(address.path.strip("/"), **dict(parse_qsl(address.query))))
    run = get_recorder(page.session_state).run
    assert run[0].to_query() == RunSpec.from_query(address.query).to_query()
    remarks = [remark.value for remark in [*page.error, *page.warning, *page.info]]
    assert not [remark for remark in remarks if "goes on without" in remark or "no version" in remark], remarks
    assert words in text(page) + "".join(remarks)
