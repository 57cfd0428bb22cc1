"""What the report of a migration says, for each kind of source, target and embedder."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.stores.base import EmbedderInfo
from commonplace.stores.memory import InMemory
from commonplace.stores.optional import SecondEmbedderInfo
from commonplace.testing import FakeClock
from commonplace.transfer.fidelity import fidelity

MADE_BY = EmbedderInfo("minilm", 384, 1)
RECORDS = "reviews, rules, tokens, trust, palaces, runs, idempotency keys"


class Plain(InMemory):
    """A primary that has neither statements nor a list of the kinds of its records."""

    capabilities = InMemory.capabilities - {"graph", "fts"}
    record_kinds = None  # type: ignore[assignment]


def rows(
    source: Any = None, target: Any = None, embedder: EmbedderInfo | None = MADE_BY, has_embedder: bool = True,
    second: SecondEmbedderInfo | None = None,
) -> dict[str, tuple[str, str]]:  # fmt: skip
    source = source or InMemory(FakeClock())
    found = fidelity(source, target, embedder, has_embedder, second)
    assert len({row["what"] for row in found}) == len(found)
    return {row["what"]: (row["kept"], row["remark"]) for row in found}


def test_a_target_that_can_do_less_is_said_to_with_what_it_cannot() -> None:
    assert rows(target=Plain(FakeClock()))["what the target cannot do"] == ("lost", "fts, graph")
    for target in (None, InMemory(FakeClock())):  # of one that is not there yet nobody knows
        assert "what the target cannot do" not in rows(target=target)


def test_records_that_a_source_cannot_list_are_said_to_stay() -> None:
    assert rows()[RECORDS] == ("the same", "")
    assert rows(Plain(FakeClock()))[RECORDS] == ("not carried", "this kind of source cannot list them")


@pytest.mark.parametrize(
    ("embedder", "has_embedder", "what", "kept", "remark"),
    [
        (None, False, "vectors", "none", "the source has none"),
        (MADE_BY, True, "vectors, keyword indexes", "made anew", "by minilm, which made"),
        (MADE_BY, False, "vectors", "not carried", "minilm made them and is not installed here"),
    ],
)
def test_what_becomes_of_vectors(
    embedder: EmbedderInfo | None, has_embedder: bool, what: str, kept: str, remark: str
) -> None:
    found = rows(embedder=embedder, has_embedder=has_embedder)[what]
    assert found[0] == kept
    assert remark in found[1]


def test_vectors_of_a_second_model_are_said_to_stay() -> None:
    name = "vectors of the second model"
    assert name not in rows()
    assert rows(second=SecondEmbedderInfo("multilingual", 256, 1, True))[name][0] == "not carried"
