"""An import that is run again, whatever happened at the source and here meanwhile, for every format."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from foreign_documents import DOCUMENTS, written
from foreign_files import node, said
from hypothesis import HealthCheck, given, settings, strategies as st
from transfer_scenarios import WHO

from commonplace.engine import Forget
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import FakeClock, open_subject
from commonplace.transfer.import_source import Target, import_source

WORDS = {"a": "Alice drinks tea", "b": "Bob keeps bees", "c": "Carol sails"}
FATES = st.dictionaries(st.sampled_from(sorted(WORDS)), st.sampled_from(["same", "changed", "forgotten"]), min_size=1)


def source(name: str, texts: dict[str, str], folder: Path) -> Path:
    """A file of the format in which each id has its text."""
    if name == "markdown":
        for id, text in texts.items():
            (folder / f"{id}.md").write_text(f"---\ncreated: 2025-01-01\n---\n{text}")
        return folder
    documents: dict[str, Any] = {
        "claude": [
            {
                "uuid": "s",
                "chat_messages": [{"uuid": id, "text": text, "sender": "human"} for id, text in texts.items()],
            }
        ],
        "mem0": [{"id": id, "memory": text, "hash": text[-4:]} for id, text in texts.items()],
        "server_memory": [
            {"type": "entity", "name": id, "entityType": "x", "observations": [text]} for id, text in texts.items()
        ],
        "trusty": [{"id": id, "content": text, "drawer_type": "UserFact"} for id, text in texts.items()],
        "amp": {"lessons": [{"id": id, "title": id, "content": text, "tags": ["x"]} for id, text in texts.items()]},
    }
    if name == "chatgpt":
        ids = list(texts)
        around = zip([None, *ids], ids, [*ids[1:], None], strict=False)
        mapping = {
            id: node(id, before, [after] if after else [], said(id, "user", texts[id])) for before, id, after in around
        }
        documents["chatgpt"] = [{"title": "T", "mapping": mapping, "current_node": ids[-1], "conversation_id": "s"}]
    return written(name, documents[name], folder)


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(fates=FATES)
def test_an_import_again_takes_what_changed_and_nothing_else(name: str, fates: dict[str, str]) -> None:
    before = {id: WORDS[id] for id in fates}
    after = {id: f"{text} again" if fates[id] == "changed" else text for id, text in before.items()}
    changed = list(fates.values()).count("changed")
    clock = FakeClock()
    with TemporaryDirectory() as folder, open_subject(InMemory(clock), clock) as (subject, run):

        def imported(texts: dict[str, str]) -> dict[str, Any]:
            subject.clock.advance(60_000)
            path = source(name, texts, Path(folder))
            return run(import_source(subject.engine, WHO, path, name, Target("agent", all_to_agent=True))).document()

        def here() -> dict[str, int]:
            listed = run(subject.engine.list(WHO, ("agent",), limit=100)).memories
            return {memory.content: memory.version for memory in listed}

        assert imported(before)["written"] == {"memory": len(fates)}
        sequence = run(subject.store.sequence("local"))
        assert imported(before)["known"] == {"memory": len(fates)}
        assert run(subject.store.sequence("local")) == sequence
        gone = [WORDS[id] for id, fate in fates.items() if fate == "forgotten"]
        for memory in run(subject.engine.list(WHO, ("agent",), limit=100)).memories:
            if memory.content in gone:
                run(subject.engine.forget(WHO, Forget("agent", [memory.id])))
        report = imported(after)
        if name == "server_memory":  # which knows an observation by its words: another one is another memory
            assert (report["written"], report["updated"]) == ({"memory": changed} if changed else {}, {})
            kept = {text: 1 for text in (*before.values(), *after.values()) if text not in gone}
        else:
            assert (report["written"], report["updated"]) == ({}, {"memory": changed} if changed else {})
            kept = {after[id]: 1 + (fate == "changed") for id, fate in fates.items() if fate != "forgotten"}
        assert here() == kept
        assert sum(each["count"] for each in report["left_out"] if "forgotten or erased" in each["reason"]) == len(gone)
        sequence = run(subject.store.sequence("local"))
        assert (imported(after)["written"], here()) == ({}, kept)
        assert run(subject.store.sequence("local")) == sequence
