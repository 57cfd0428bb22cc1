"""What is staged and what is done at once, and what is told of either."""

from __future__ import annotations

import asyncio

import pytest

from commonplace.engine import MAX_BATCH, BatchItem, Engine
from commonplace.engine.types import Draft, Receipt
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import ValidationError


def test_of_a_batch_what_needs_approval_is_staged_and_the_rest_kept(subject: Subject) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(subject.clock), clock=subject.clock)
        drafts = [Draft("agent", "semantic", text) for text in ("one", "two", "", "four")]
        items = [BatchItem(draft, approval={"content": draft.content} if i else None) for i, draft in enumerate(drafts)]
        kept, staged, wrong, also = await engine.remember_many(WHO, items)
        assert isinstance(wrong, ValidationError)
        assert [isinstance(each, Receipt) and bool(each.review_id) for each in (kept, staged, also)] == [
            False, True, True,
        ]  # fmt: skip
        for many in ([], [items[1]] * (MAX_BATCH + 1)):
            with pytest.raises(ValidationError, match=f"1 to {MAX_BATCH}"):
                await engine.remember_many(WHO, many)
        assert len(await engine.reviews.list(WHO)) == 2, "none of a batch that is too large is staged"
        await engine.close()

    asyncio.run(scenario())
