from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.embedders.base import Embedder
from commonplace.embedders.encoder import Encoder
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.embedders.registry import BUILT_IN, DEFAULT, open_embedder
from commonplace.wire.errors import Unavailable, ValidationError


def test_none_means_keywords_only() -> None:
    assert open_embedder("none") is None


def test_the_default() -> None:
    assert isinstance(open_embedder(DEFAULT), Encoder)


@pytest.mark.parametrize("spec", ["encoder", "minilm", "hashing-128"])
def test_a_recorded_name_opens_the_embedder_that_bears_it(spec: str) -> None:
    opened = open_embedder(spec)
    assert opened is not None
    again = open_embedder(opened.name)
    assert again is not None
    assert (type(again), again.name, again.dimension) == (type(opened), opened.name, opened.dimension)


@pytest.mark.parametrize("spec", ["", "mini", "gpt://host", "minilm2", "hashing256"])
def test_an_unknown_name_is_told_what_there_is(spec: str) -> None:
    with pytest.raises(ValidationError) as caught:
        open_embedder(spec)
    for name in [*BUILT_IN, "none"]:
        assert name in caught.value.message


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real installed distribution, as pip would leave it on the path."""
    (tmp_path / "their_package.py").write_text(
        "from commonplace.embedders.hashing import HashingEmbedder\n"
        "def open_embedder(spec):\n"
        "    return HashingEmbedder(int(spec.partition(':')[2]))\n"
    )
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[commonplace.embedders]\ntheirs = their_package:open_embedder\nbroken = not_there:open_embedder\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_a_package_can_offer_an_embedder() -> None:
    opened = open_embedder("theirs:32")
    assert isinstance(opened, HashingEmbedder)
    assert isinstance(opened, Embedder)
    assert opened.dimension == 32


@pytest.mark.usefixtures("installed")
def test_a_package_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(Unavailable, match="'broken' cannot be imported"):
        open_embedder("broken")
