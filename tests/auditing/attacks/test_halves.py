"""Models on random halves: independent, kept, resumed, cancelled, and refused in words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

import dpviz
from dpviz.auditing.attacks.halves import BLOCK, SHADOW, TARGET, Halves, KeptModels, train_models
from dpviz.common import version
from dpviz.common.version import content_hash
from dpviz.datasets.sources.uploads import PREFIX
from dpviz.experiments.run.setup import setup_for

SPEC = dpviz.RunSpec("iris", mechanism="dp-gd", epsilon=1.0, seeds=1, params={"steps": 5})

UPLOAD = f"{PREFIX}{0:016x}"


@pytest.fixture
def store(tmp_path: Path) -> KeptModels:
    return KeptModels(tmp_path)


def all_models(spec: dpviz.RunSpec, count: int, store: KeptModels | None = None, role: str = SHADOW) -> np.ndarray:
    return np.concatenate([models for _, _, models in train_models(Halves.make(spec), [(role, count)], store)])


def test_kept_models_are_of_this_code_of_auditing(monkeypatch: pytest.MonkeyPatch) -> None:
    def keyed(change: bytes) -> str:
        def changed(sources: dict[str, bytes]) -> str:
            return content_hash({name: text + change * name.startswith("auditing/") for name, text in sources.items()})

        version.engine_version.cache_clear()
        monkeypatch.setattr(version, "content_hash", changed)
        return Halves.make(SPEC).key(SHADOW, range(BLOCK))

    assert keyed(b"") == Halves.make(SPEC).key(SHADOW, range(BLOCK)) != keyed(b"# another line")
    version.engine_version.cache_clear()


def test_halves_are_uniform_and_have_one_size() -> None:
    halves = Halves.make(SPEC)
    member = halves.member(SHADOW, 2000, np.arange(halves.problem.n))
    assert (member.sum(axis=1) == halves.size).all()
    assert chisquare(member.sum(axis=0)).pvalue > 0.001


def test_targets_share_no_randomness_with_shadows() -> None:
    """Neither halves nor noise: membership of a row in a target says nothing about the shadow model of the same number."""
    halves = Halves.make(SPEC)
    everybody = np.arange(halves.problem.n)
    shadow, target = (halves.member(role, 400, everybody) for role in (SHADOW, TARGET))
    assert abs(np.corrcoef(shadow.ravel(), target.ravel())[0, 1]) < 4 / np.sqrt(shadow.size)
    assert not (shadow == target).all(axis=1).any()
    streams = {
        tuple(halves._stream(role, k, p).generate_state(4)) for role in (SHADOW, TARGET) for k in range(50) for p in (0, 1)
    }
    assert len(streams) == 200


def test_a_model_of_a_half_is_what_the_mechanism_trains_on_those_rows() -> None:
    halves = Halves.make(replace(SPEC, mechanism="non-private", params={}))
    models = all_models(halves.spec, 3)
    for k in range(3):
        problem = halves.half(SHADOW, k)
        assert problem.n == halves.problem.n // 2 == halves.setting.n
        gradient = problem.model.sum_gradient(models[k][None], problem.rows)[0] / problem.n + problem.lam * models[k]
        assert np.abs(gradient).max() < 1e-8
    private = Halves.make(SPEC)
    assert private.calibration.noise_scale == pytest.approx(
        2 * SPEC.build().calibrate(setup_for(SPEC).problem.setting, dpviz.resolve(SPEC).budget).noise_scale
    )


def test_more_models_begin_with_those_that_are_there(tmp_path: Path, store: KeptModels) -> None:
    few = all_models(SPEC, BLOCK, store)
    assert len(list(tmp_path.glob("*.models"))) == 1
    many = all_models(SPEC, 2 * BLOCK + 3, store)
    assert (many[:BLOCK] == few).all()
    assert len(list(tmp_path.glob("*.models"))) == 3
    assert (all_models(SPEC, 2 * BLOCK + 3) == many).all()


def test_what_was_finished_is_not_trained_again(store: KeptModels, monkeypatch: pytest.MonkeyPatch) -> None:
    before = all_models(SPEC, BLOCK, store)

    def never(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(Halves, "train", never)
    assert (all_models(SPEC, BLOCK, store) == before).all()
    with pytest.raises(AssertionError, match="trained again"):
        all_models(replace(SPEC, seed=1), BLOCK, store)


def test_nothing_of_an_upload_goes_to_the_disk(tmp_path: Path, store: KeptModels) -> None:
    store.put("key", UPLOAD, np.ones((2, 3)))
    assert not list(tmp_path.iterdir())
    assert store.get("key", UPLOAD, (2, 3)) is None
