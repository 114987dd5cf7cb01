"""A demonstration takes no uploads, fetches no data, and has limits of its own."""

from pathlib import Path

import pytest
from support_pages import addressed

import dpviz
from dpviz.common import memory
from dpviz.common.limits import DEMO, DEMO_LIMITS
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.audit import attack, ordinary_rows
from dpviz.dashboard.frame import guard, server
from dpviz.datasets.sources import folder, remote
from dpviz.experiments.run.resolve import resolve


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


def test_a_demonstration_has_limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = [dpviz.RunSpec("teaching", seeds=DEMO_LIMITS.seeds + 1), dpviz.RunSpec(f"census-{DEMO_LIMITS.rows + 1}", seeds=2)]
    for spec in greedy:
        assert resolve(spec).spec.seeds == spec.seeds, "the control: elsewhere they are fine"
    monkeypatch.setenv(DEMO, "1")
    resolve(dpviz.RunSpec(f"census-{DEMO_LIMITS.rows}", seeds=DEMO_LIMITS.seeds))
    for spec, field in zip(greedy, ("seeds", "dataset"), strict=True):
        with pytest.raises(InvalidInput, match="this demonstration takes at most") as problem:
            resolve(spec)
        assert problem.value.field == field


def test_links_of_a_demonstration_train_no_more_models_than_it_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    for of, key, asked in ((attack.fields_of, "runs", "20000"), (ordinary_rows.fields_of, "shadows", "4096")):
        monkeypatch.setenv(DEMO, "0")
        (field,) = (one for one in of(dpviz.RunSpec()) if one.key == key)
        assert field.read(asked) == asked
        monkeypatch.setenv(DEMO, "1")
        (field,) = (one for one in of(dpviz.RunSpec()) if one.key == key)
        with pytest.raises(InvalidInput):
            field.read(asked)
        assert field.read(field.default) == field.default


def test_what_all_sessions_keep_is_bounded_in_a_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: memory.Cache[int] = memory.Cache("of this test", 10**12, lambda number: number)
    for demonstration, left in (("0", True), ("1", False)):
        monkeypatch.setenv(DEMO, demonstration)
        kept.put("a", DEMO_LIMITS.megabytes * 1_000_000 + 1)
        addressed("Data").run()
        assert ("a" in kept) is left


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
