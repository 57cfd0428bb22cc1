"""What the inbox says of a decision, beside the templates that show it."""

from __future__ import annotations

import pytest
from replica_house import AGENT, house, run

from commonplace.engine import Forget
from commonplace.testing.subject import WHO
from commonplace.ui.inbox import decide, decide_many
from commonplace.ui.page import PageRequest, Redirect, TemplatePage


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("many", [False, True])
@run
async def test_a_decision_names_a_store_that_has_not_done_it(many: bool, down: bool) -> None:
    async with house(copies=2) as h:
        staged = await h.engine.forget(WHO, Forget(AGENT, [await h.remember("tea")], approval_required=True))
        review = str(staged.review_id)
        await h.outbox.join()
        h.copies[1].down = "out of order" if down else None
        form = {"decision": ["approve"], "review": [f"{review}:1"], "revision": ["1"]}
        call = PageRequest(h.engine, WHO, {"review": review}, {}, form)
        answer = await (decide_many if many else decide)(call)
        if isinstance(answer, Redirect):
            assert (many, down) == (False, False)
            return
        assert isinstance(answer, TemplatePage)
        assert answer.status == 200
        said = answer.values["said"]
        assert said.startswith("Approved")
        assert ("copy1" in said, "out of order" in said, "copy:" in said) == (down, down, False)
