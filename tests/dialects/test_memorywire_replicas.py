"""What memorywire's answers say of stores beside the primary."""

from __future__ import annotations

from replica_house import AGENT, house, run

from commonplace.dialects.memorywire.operations import Memorywire
from commonplace.testing.subject import WHO
from commonplace.wire.models import ExpirePolicy, ExpireRequest, ForgetRequest, MergeRequest


@run
async def test_forget_merge_and_expire_name_what_each_store_did_and_why_not() -> None:
    async with house(copies=2) as h:
        one, two, three = [await h.remember(text) for text in ("tea", "green tea", "coffee")]
        h.copies[1].down = "out of order"
        wire = Memorywire(h.engine, WHO)
        merged = await wire.merge(MergeRequest(agent_id=AGENT, canonical=one, duplicates=[two]))
        assert merged.stores == [h.primary.name, "copy"]
        assert [(each.store, "out of order" in each.error) for each in merged.errors or ()] == [("copy1", True)]
        gone = await wire.forget(ForgetRequest(agent_id=AGENT, ids=[three]))
        assert [(each.store, each.count) for each in gone.stores] == [(h.primary.name, 1), ("copy", 1), ("copy1", 0)]
        assert "out of order" in (gone.stores[2].error or "")
        rest = await wire.expire(ExpireRequest(agent_id=AGENT, policy=ExpirePolicy(type="semantic"), action="archive"))
        assert (rest.matched_count, rest.stores) == (1, [h.primary.name, "copy"])
        assert [each.store for each in rest.errors or ()] == ["copy1"]
