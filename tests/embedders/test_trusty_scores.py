"""trusty-memory's scores with the model that ships: what its documentation says of them."""

from __future__ import annotations

import asyncio

import pytest

from commonplace.dialects.trusty.operations import Trusty
from commonplace.embedders.encoder import Encoder
from commonplace.engine.engine import Engine
from commonplace.stores.memory import InMemory
from commonplace.testing import FakeClock
from commonplace.wire.record import Principal

#: A small palace: what it says, and a question that each drawer answers in other words.
DRAWERS = {
    "The API gateway validates JWT tokens using RS256.": "How does token validation work?",
    "Deployments happen on Tuesdays after the stand-up.": "When do we deploy?",
    "The billing service stores invoices in PostgreSQL.": "Where are invoices kept?",
    "Alice owns the mobile client and its release notes.": "Who is responsible for the mobile app?",
    "Feature flags live in the config repository under flags.yaml.": "Where are feature flags configured?",
    "Nightly backups are kept for thirty days in cold storage.": "How long are backups retained?",
    "The search index is rebuilt every Sunday at 03:00 UTC.": "When is the search index rebuilt?",
    "Bob reviews every change to the payment module.": "Who reviews payment changes?",
    "Rate limits are 100 requests per minute per API key.": "What is the rate limit of the API?",
    "The design system uses an eight-pixel grid.": "What grid does the design system use?",
}


@pytest.mark.slow
@pytest.mark.parametrize(("in_other_words", "least"), [(True, 0.55), (False, 0.95)])
def test_the_first_of_ten_drawers_is_the_one_that_answers(in_other_words: bool, least: float) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        engine = await Engine.open(InMemory(clock), Encoder(), clock=clock)
        trusty = Trusty(engine, Principal(), "palace")
        for text in DRAWERS:
            await trusty.memory_remember("palace", text, None, None)
        for text, question in DRAWERS.items():
            asked = question if in_other_words else text
            for deep in (False, True):
                first, *others = (await trusty.memory_recall("palace", asked, 10, deep=deep))["results"]
                assert (first["content"], first["layer"]) == (text, 3 if deep else 2)
                assert first["score"] >= least
                assert len(others) == 9
                assert all(other["score"] < 0.2 for other in others)
        await engine.close()

    asyncio.run(scenario())
