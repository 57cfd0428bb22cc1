"""Taint: which versions of a memory a bad source is to blame for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine.governance.taint import BadSource, Taint, last_good
from commonplace.engine.types import Forget
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.record import Principal

MALLORY = Principal("mallory")


@pytest.mark.parametrize(("bad", "theirs"), [
    (BadSource(principal="mallory"), {2, 4}), (BadSource(source="mail"), {2}),
    (BadSource(principal="mallory", source="mail"), {2, 4}), (BadSource(principal="nobody"), None),
])  # fmt: skip
def test_whose_versions_are_whose(subject: Subject, run: Any, bad: BadSource, theirs: set[int] | None) -> None:
    """A source goes on with the memory, whoever changes it next; only the version that brought it is blamed on it."""
    id = run(subject.remember("good"))
    for who, content in ((MALLORY, "bad"), (WHO, "fine"), (MALLORY, "worse")):
        change = {"content": content, "source": "mail"}
        run(subject.engine.update_with(who, "agent", id, lambda m, change=change: replace(m, **change)))
    run(subject.engine.forget(WHO, Forget("agent", [id])))
    versions = run(subject.store.history("local", id))

    async def source_of(_: str, version: int) -> str | None:
        return next(each.source for each in versions if each.version == version)

    taint = Taint(bad, source_of)
    run(taint.feed(run(subject.store.audit("local"))))
    if theirs is None:
        assert not taint.memories
        return
    found = taint.memories[id]
    assert (found.version, found.versions, found.direct) == (2, theirs, True)
    good = last_good(found, versions)
    assert good is not None
    assert good.content == "good"
