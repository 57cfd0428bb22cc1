from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from commonplace.embedders.base import Embedder
from commonplace.embedders.hashing import Hashing, open_embedder
from commonplace.wire.errors import ValidationError

any_text = st.text(st.characters(), max_size=60)


@given(st.lists(any_text, max_size=6), st.sampled_from([8, 64, 256, 300]))
def test_every_text_has_a_unit_vector_that_nothing_else_changes(texts: list[str], dimension: int) -> None:
    embedder = Hashing(dimension)
    assert isinstance(embedder, Embedder)
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert embedder.embed([text]).tobytes() == vector.tobytes()


def test_similar_texts_are_nearer() -> None:
    text, similar, other = Hashing().embed(
        ["Alice drinks green tea", "Alice drinking green teas", "the database ran out of disk space"]
    )
    assert text @ similar > 0.4
    assert abs(text @ other) < 0.2


def test_word_order_matters_a_little() -> None:
    text, turned = Hashing().embed(["the dog bit the man", "the man bit the dog"])
    assert 0.5 < text @ turned < 0.999


def test_another_process_gives_the_same_bytes() -> None:
    script = "from commonplace.embedders.hashing import Hashing; print(Hashing(16).embed(['tea']).tobytes().hex())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == Hashing(16).embed(["tea"]).tobytes().hex()


@pytest.mark.parametrize(
    ("spec", "name"),
    [("hashing", "hashing-256"), ("hashing-128", "hashing-128"), ("hashing?dimension=64", "hashing-64")],
)
def test_specs(spec: str, name: str) -> None:
    assert open_embedder(spec).name == name


@pytest.mark.parametrize("spec", ["hashing-", "hashing-0", "hashing-99999", "hashing?size=3", "hashing:3"])
def test_wrong_specs(spec: str) -> None:
    with pytest.raises(ValidationError, match="hashing-N"):
        open_embedder(spec)
