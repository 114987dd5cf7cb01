"""Opens pages without a browser."""

from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest
from support import LIMIT, until

from dpviz.dashboard.jobs import pool

ROOT = Path(__file__).parents[1]
PAGES = {path.stem.split("_", 1)[1]: path for path in (ROOT / "pages").glob("*.py")} | {"": ROOT / "app.py"}
SENSITIVITY, ACCOUNTING = "Sensitivity", "Accounting"


class Page(AppTest):
    """A page that no run may end with an exception."""

    def _run(self, *given: Any, **more: Any) -> AppTest:
        super()._run(*given, **more)
        assert not self.exception
        return self


def with_open_folds(page: AppTest) -> AppTest:
    """The same page with its folds open when it is drawn: what is closed is not sent."""
    folds = "numbers attack computed about noises orders curve steps relations papers received right rows scores attacks exposed"
    for key in (*(f"fold-{name}" for name in folds.split()), "claim-details", "whole-figures"):
        page.session_state[key] = True
    return page


def addressed(name: str, **query: str) -> AppTest:
    """A page with its address, before it is drawn for the first time; `name` is "" for the first page."""
    page = Page(PAGES[name], default_timeout=LIMIT)
    page.query_params.update({"dataset": "teaching", "seeds": "2"} | query)
    return page


def opened(name: str, **query: str) -> AppTest:
    return with_open_folds(addressed(name, **query)).run()


def stills(page: AppTest) -> list[str]:
    """The pictures that are drawn as SVG."""
    return [one.proto.body for one in page.get("html") if one.proto.body.startswith('<div class="dpviz-picture')]


def text(page: AppTest) -> str:
    """What the page says in sentences, without the signs that keep Markdown and lines as they are."""
    parts = (*page.markdown, *page.caption, *page.info, *page.warning, *page.error)
    return plain("\n".join(part.value for part in parts))


def plain(markdown: str) -> str:
    """Markdown without the signs that keep it and lines as they are."""
    return markdown.replace("\\", "").replace("\u00a0", " ").replace("\u2060", "")


def address(page: AppTest) -> dict[str, str]:
    return {k: v if isinstance(v, str) else v[-1] for k, v in page.query_params.items()}


def settled(page: AppTest) -> AppTest:
    """The page when its jobs have ended."""
    until(lambda: all(job.over for job in pool.pool().jobs()), "the end of all jobs")
    return page.run()
