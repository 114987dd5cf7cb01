"""Copies of downloads on this machine: damaged ones and those that others can write are not read."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.datasets.process import fetch


def test_a_damaged_copy_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    frame = pd.DataFrame(
        {"Clump_Thickness": np.arange(699.0) % 10, "Class": pd.Categorical(["benign", "malignant", "benign"] * 233)}
    )
    fetch.store("openml-15", frame.to_parquet(index=False), len(frame), "a prepared cache")
    before = dpviz.load_dataset("breast-cancer-original")
    assert before.n == 699
    path = fetch.path_of("openml-15")
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(dpviz.InvalidInput, match="was damaged after its download"):
        dpviz.load_dataset("breast-cancer-original")
    path.write_bytes(bytes(content[:200]))
    with pytest.raises(dpviz.InvalidInput, match="was damaged after its download"):
        dpviz.load_dataset("breast-cancer-original")
    path.write_bytes(b"")
    with pytest.raises(dpviz.InvalidInput, match="not on this machine"):
        dpviz.load_dataset("breast-cancer-original")


@pytest.mark.skipif(os.name != "posix", reason="no such files there")
@pytest.mark.parametrize("kind", ["others may write", "of another user", "link", "pipe"])
def test_a_copy_that_others_can_write_is_not_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder itself may be anybody's (mode 0777): what lies in it is read only where its reader alone could write it."""
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    before = os.umask(0)
    try:
        fetch.store("openml-15", pd.DataFrame({"a": [1.0]}).to_parquet(index=False), 1, "here")
        fetch.folder().chmod(0o777)
    finally:
        os.umask(before)
    path = fetch.path_of("openml-15")
    assert path.stat().st_mode & 0o777 == 0o644
    assert fetch.read("openml-15")[1]["rows"] == 1
    if kind == "others may write":
        path.chmod(0o666)
    elif kind == "of another user" and os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    elif kind == "of another user":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    else:
        path.rename(tmp_path / "away")
        path.symlink_to(tmp_path / "away") if kind == "link" else os.mkfifo(path)
    assert fetch.facts("openml-15") is None
    with pytest.raises(dpviz.InvalidInput, match=r"others can write the copy .* Remove it and download it again"):
        fetch.read("openml-15")


def test_variants_come_from_one_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    classes = pd.Categorical(np.where(np.arange(2000) % 100 == 0, "1", "0"))
    cards_table = pd.DataFrame({"Amount": rng.random(2000), "Class": classes})
    fetch.store("openml-1597", cards_table.to_parquet(index=False), len(cards_table), "a prepared cache")
    assert dpviz.load_dataset("credit-card").n == 2000
    balanced = dpviz.load_dataset("credit-card-balanced")
    assert (balanced.n, balanced.y.sum()) == (40, 0)
    kinds = rng.choice(["normal.", "smurf.", "neptune."], 3000)
    connections = pd.DataFrame({"count": rng.random(3000), "labels": pd.Categorical(kinds)})
    fetch.store("kddcup99", connections.to_parquet(index=False), len(connections), "a prepared cache")
    kdd = dpviz.load_dataset("kddcup99-70000")
    assert kdd.label_names == ("normal", "attack")
    assert (kdd.y < 0).sum() == (kinds == "normal.").sum()
