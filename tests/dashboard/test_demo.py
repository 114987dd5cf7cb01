"""A demonstration takes no uploads and fetches no data."""

from pathlib import Path

import pytest

import dpviz
from dpviz.common.limits import DEMO
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import guard, server
from dpviz.datasets.sources import folder, remote


def test_a_demonstration_reads_no_folder_and_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,0\n2,1\n" * 40)
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    monkeypatch.setattr(remote.fetch, "fetch", lambda *_: pytest.fail("a download"))
    assert "data/mine.csv" in folder.names()
    monkeypatch.setenv(DEMO, "1")
    assert folder.names() == ()
    with pytest.raises(InvalidInput):
        dpviz.load_dataset("data/mine.csv")
    with pytest.raises(InvalidInput, match="demonstration"):
        remote.download("adult")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ancestors": ["https://x/path"]}, "--frame-ancestors"),
        ({"ancestors": ["*"]}, "--frame-ancestors"),
        ({"ancestors": ["https://a; script-src *"]}, "--frame-ancestors"),
        ({"base_path": "a b"}, "--base-path"),
        ({"base_path": "x?y"}, "--base-path"),
        ({"base_path": "../x"}, "--base-path"),
    ],
)
def test_bad_addresses_of_a_deployment_are_named(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as problem:
        server.serve(Path("app.py"), **options)  # type: ignore[arg-type]
    assert problem.value.field == field


def test_frames_are_allowed_by_name_only() -> None:
    opened = guard.headers(["https://a.example", "https://b.example"])
    assert "x-frame-options" not in opened
    assert "frame-ancestors https://a.example https://b.example;" in opened["content-security-policy"]
