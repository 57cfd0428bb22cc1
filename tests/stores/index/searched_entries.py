"""Entries of two agents, and reaches to search them in: few enough words that they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Entry, Reach
from commonplace.stores.text import terms
from commonplace.stores.token_vectors import Codes, QuestionTokens, quantise
from commonplace.wire.canonical import mint_id
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory


def token_codes(content: str) -> Codes:
    """The tokens of a text, each word being one."""
    return quantise(HashingEmbedder(8).embed(content.split()))


ASKED = QuestionTokens.of(HashingEmbedder(8).embed(["the", "harbour", "boat"]), np.array([0.1, 1, 0.5], np.float32))


@st.composite
def entries(draw: Any) -> list[Entry]:
    words = ("boat", "harbour", "violin", "tax", "garden", "the")
    made = []
    for i in range(draw(st.integers(1, 12))):
        content = " ".join(draw(st.lists(st.sampled_from(words), min_size=1, max_size=4)))
        memory = Memory(
            mint_id(1),
            "t",
            draw(st.sampled_from(("a", "b"))),
            draw(st.sampled_from(("semantic", "episodic"))),
            content,
            user_id=draw(st.sampled_from((None, "alice", "bob"))),
            created_at=draw(st.integers(1, 5)),
            expires_at=draw(st.sampled_from((None, 3, 9))),
            metadata={"n": i},
            confidence=draw(st.sampled_from((0.1, 1.0))),
            status=draw(st.sampled_from(("live", "live", "archived", "deleted"))),
        )
        parts = draw(st.sampled_from(([content], [content], [content, "the violin"], [])))
        vectors = HashingEmbedder(16).embed(parts) if parts else None
        tokens = [token_codes(part) for part in parts] if draw(st.booleans()) else None
        made.append(Entry(memory, vectors, terms(content), 1, tokens))
    return made


conditions = st.sampled_from(
    [
        Condition(("user_id",), "eq", "alice"),
        Condition(("user_id",), "eq", None),
        Condition(("user_id",), "ne", "bob"),
        Condition(("type",), "eq", "episodic"),
        Condition(("type",), "in", ["semantic", 5]),
        Condition(("type",), "eq", 5),
        Condition(("created_at",), "gte", 3),
        Condition(("created_at",), "gte", 2.5),
        Condition(("created_at",), "lt", 4),
        Condition(("metadata", "n"), "lte", 4),
        Condition(("confidence",), "lt", 0.5),
        Condition(("recalls",), "eq", 0),
    ]
)
reaches = st.builds(
    Reach,
    st.just("t"),
    st.sampled_from((("a",), ("b", "a"), ("nobody",), ())),
    st.lists(conditions, max_size=3).map(tuple),
    st.sampled_from((("live",), ("live", "archived"), ("deleted",))),
    st.sampled_from((None, 3, 5)),
    st.sampled_from((None, None, 0, 3, 1000)),
)
