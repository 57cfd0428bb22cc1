"""What each format's own things become here."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import apsw
import pytest
from foreign_documents import written as written_as
from foreign_files import EVERY, FILES, NELLIE, chatgpt_conversation

from commonplace.transfer.importers import importer
from commonplace.transfer.importers.source import Item, LeftOut, Source, SourceMemory, SourceStatement
from commonplace.transfer.report import Broken, BrokenFile


def read(name: str, path: Path) -> list[Item]:
    return list(importer(name).read(Source(path)))


def memories(items: list[Item]) -> dict[str, SourceMemory]:
    return {item.id: item for item in items if isinstance(item, SourceMemory)}


def reasons(items: list[Item]) -> list[str]:
    return [item.reason for item in items if isinstance(item, LeftOut)]


def written(folder: Path, document: Any, name: str = "x.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return path


# ChatGPT


def test_chatgpt_gives_the_path_that_its_owner_saw(tmp_path: Path) -> None:
    items = read("chatgpt", EVERY["chatgpt"][0](tmp_path))
    found = memories(items)
    assert list(found) == ["c1-ask", "c1-ans", "c1-pic", "c2-ask", "c2-ans", "c2-pic"]
    answer = found["c1-ans"]
    assert answer.created_at == answer.draft.event_time == 1736209420500
    assert (answer.draft.speaker, answer.draft.session_id, answer.draft.title) == ("assistant", "conv-1", "Cooking")
    assert (answer.draft.type, answer.draft.kind, answer.draft.metadata) == ("episodic", "message", {"model": "gpt-4o"})
    assert found["c1-pic"].draft.content == "Here is the menu ☃"
    assert set(reasons(items)) == {
        "it is of the system or of a tool",
        "it is on a branch that was edited or regenerated away",
        "pictures and files are not imported",
        "a file that is not read",
    }


def test_chatgpt_without_a_current_node_ends_at_the_last_leaf(tmp_path: Path) -> None:
    conversation = {**chatgpt_conversation(), "current_node": None}
    path = written(tmp_path, [conversation], "conversations.json")
    assert list(memories(read("chatgpt", path))) == ["c1-ask", "c1-ans", "c1-pic"]


def test_chatgpt_a_tree_that_goes_round_in_a_circle_ends(tmp_path: Path) -> None:
    conversation = chatgpt_conversation()
    conversation["mapping"]["c1-root"]["parent"] = "c1-pic"
    path = written(tmp_path, [conversation], "conversations.json")
    assert len(memories(read("chatgpt", path))) == 3


def test_chatgpt_what_is_no_conversation_is_broken_and_the_next_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps([1, {"a": 2}, chatgpt_conversation()], indent=0), "conversations.json")
    items = read("chatgpt", path)
    broken = [str(item) for item in items if isinstance(item, Broken)]
    assert broken[0] == "conversations.json line 2: is no conversation: it has no mapping"
    assert len(broken) == 2
    assert len(memories(items)) == 3


def test_chatgpt_what_was_spoken_is_text_and_an_attached_document_is_named(tmp_path: Path) -> None:
    conversation = chatgpt_conversation()
    asked = conversation["mapping"]["c1-ask"]["message"]
    spoken = {"content_type": "audio_transcription", "text": "Alice moves to Bergen.", "direction": "in"}
    asked["content"] = {
        "content_type": "multimodal_text",
        "parts": [spoken, {"content_type": "real_time_user_audio_video_asset_pointer"}],
    }
    asked["metadata"] = {"attachments": [{"id": "file-1", "name": "lease.pdf"}, {"id": "file-2"}]}
    items = read("chatgpt", written(tmp_path, [conversation], "conversations.json"))
    assert memories(items)["c1-ask"].draft.content == "Alice moves to Bergen."
    attached = [item.what for item in items if isinstance(item, LeftOut) and "attached" in item.reason]
    assert attached == ["Cooking: c1-ask: lease.pdf", "Cooking: c1-ask: file-2"]
    assert [item.what for item in items if isinstance(item, LeftOut) and "pictures" in item.reason] == [
        "Cooking: c1-ask",
        "Cooking: c1-pic",
    ]


# Claude


def test_claude_gives_messages_attachments_projects_and_memories(tmp_path: Path) -> None:
    items = read("claude", EVERY["claude"][0](tmp_path))
    found = memories(items)
    assert found["m-1"].draft.content == "I moved to Bergen."
    assert found["m-1"].created_at == 1736209412346
    assert found["m-1"].draft.speaker == "human"
    assert found["m-1/attachment/0"].draft.content == "The lease"
    assert found["m-1/attachment/0"].draft.title == "lease.txt"
    assert found["m-2"].draft.content == "Noted."
    assert found["d-1"].draft.project == "House"
    assert found["p-1/description"].draft.kind == "description"
    assert found["acc/memory"].draft.content == "Alice lives in Bergen"
    assert found["acc/memory/p-1"].draft.content == "shoes off"
    assert sorted(reasons(items)) == [
        "a file that is not read",
        "a part of it is not text but thinking",
        "it has no text",
        "pictures and files are not imported",
    ]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"attachments": "lease"}, "an attachment that is no object"),
        ({"attachments": ["lease"]}, "an attachment that is no object"),
        ({"files": {"file_name": "a.png"}}, "pictures and files are not imported"),
        ({"content": [7]}, "a part of it is not text but int"),
        ({"content": [{"type": "text", "text": 7}]}, "a part of it is not text but text"),
    ],
)
def test_claude_a_part_of_another_kind_is_named(more: Any, reason: str, tmp_path: Path) -> None:
    conversation = {"uuid": "c", "chat_messages": [{"uuid": "m", "text": "hi", **more}], "summary": "they met"}
    items = read("claude", written(tmp_path, [conversation]))
    assert list(memories(items)) == ["m"]
    assert reasons(items) == ["the summary of a conversation is not imported", reason]


def test_claude_a_plain_text_among_the_blocks_is_taken(tmp_path: Path) -> None:
    message = {"uuid": "m", "text": "", "content": ["I moved", {"type": "text", "text": "to Bergen"}]}
    items = read("claude", written(tmp_path, [{"uuid": "c", "chat_messages": [message]}]))
    assert [item.draft.content for item in memories(items).values()] == ["I moved\nto Bergen"]


def test_claude_memories_that_are_no_text_are_named(tmp_path: Path) -> None:
    items = read("claude", written(tmp_path, [{"conversations_memory": {"a": 1}, "project_memories": {"p": ["x"]}}]))
    assert reasons(items) == ["its conversations_memory is no text; the rest is read", "a memory that is no text"]


# MCP server-memory


def test_server_memory_gives_observations_entities_and_relations(tmp_path: Path) -> None:
    items = read("server_memory", EVERY["server_memory"][0](tmp_path))
    said = {memory.draft.content: memory.draft for memory in memories(items).values()}
    assert said["is allergic to peanuts"].entity_name == "Alice"
    assert said["is allergic to peanuts"].tags == ["person"]
    assert said['says "hi"\nin two lines ☃'].entity_name == "Bob"
    assert said["Acme (company)"].kind == "entity"
    assert said["Alice works_at Acme"].metadata == {"from": "Alice", "relation": "works_at", "to": "Acme"}
    stated = [item for item in items if isinstance(item, SourceStatement)]
    assert [(s.subject, s.predicate, s.object) for s in stated] == [
        ("Alice", "works_at", "Acme"),
        ("Alice", "knows", "Bob"),
        ("Alice", "knows", "Carol"),
    ]


@pytest.mark.parametrize("line", ['{"type":"entity"}', '{"type":"relation","from":"a"}', "[]", '"x"', "{"])
def test_server_memory_what_is_neither_is_broken(line: str, tmp_path: Path) -> None:
    assert isinstance(read("server_memory", written(tmp_path, line))[0], Broken)


def test_server_memory_an_observation_that_is_no_text_is_named(tmp_path: Path) -> None:
    line = {"type": "entity", "name": "Alice", "entityType": "person", "observations": ["keeps bees", {"a": 1}, 7]}
    items = read("server_memory", written(tmp_path, line))
    assert [item.draft.content for item in memories(items).values()] == ["keeps bees"]
    assert reasons(items) == ["an observation that is no text"] * 2


# mem0


@pytest.mark.parametrize(
    "more",
    [
        {"user_id": 7}, {"agent_id": ["x"]}, {"run_id": 7}, {"metadata": "food"}, {"created_at": "when it rained"},
        {"updated_at": {"a": 1}}, {"categories": [7]}, {"categories": {"a": 1}},
    ],
)  # fmt: skip
def test_mem0_a_field_of_another_kind_is_named_and_the_memory_is_read(more: Any, tmp_path: Path) -> None:
    items = read("mem0", written(tmp_path, [{"id": "a", "memory": "Is a vegetarian", **more}]))
    assert list(memories(items)) == ["a"]
    (reason,) = reasons(items)
    assert next(iter(more)).removesuffix("ies") in reason


def test_mem0_keeps_whose_it_is_and_what_it_was_called(tmp_path: Path) -> None:
    found = memories(read("mem0", EVERY["mem0"][0](tmp_path)))
    first, second = found.values()
    assert (first.draft.agent_id, first.draft.user_id, first.draft.session_id) == ("cook", "alice", "r1")
    assert first.draft.metadata == {"category": "food", "stars": 5}
    assert (first.created_at, first.more) == (1740823200000, {"updated_at": 1740909600000, "hash": "abc"})
    assert second.draft.tags == ["diet"]
    assert second.created_at == 1741021200000


def test_mem0_as_mem0_itself_wrote_it() -> None:
    """`files/mem0.json` is what get_all() of mem0ai 2.2.1 answered."""
    first, second = memories(read("mem0", FILES / "mem0.json")).values()
    assert (first.draft.content, first.draft.metadata, first.draft.speaker) == ("Is a vegetarian", {}, "user")
    assert (second.draft.agent_id, second.draft.metadata) == ("cook", {"category": "food", "stars": 5})
    assert second.created_at == 1794838926199


def test_mem0_relations_that_are_no_list_and_claude_projects_without_text_are_named(tmp_path: Path) -> None:
    assert reasons(read("mem0", written(tmp_path, {"results": [], "relations": "x"}))) == [
        "a relation without both its ends"
    ]
    project = {"uuid": "p", "docs": [], "description": ["x"]}
    assert reasons(read("claude", written(tmp_path, [project]))) == [
        "its description is no text; the rest is read",
        "it has no text",
    ]


def test_mem0_as_a_list(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": "a", "memory": "x"}, {"memory": "no id"}])
    items = read("mem0", path)
    assert list(memories(items)) == ["a"]
    assert isinstance(items[1], Broken)


@pytest.mark.parametrize("text", ['{"results": 3}', '{"a": 1}', '{"results": [', "{" * 5])
def test_mem0_what_is_none_of_its_answers_is_broken(text: str, tmp_path: Path) -> None:
    with pytest.raises(BrokenFile):
        read("mem0", written(tmp_path, text))


# Markdown


def test_markdown_keeps_the_text_and_ties_notes_together(tmp_path: Path) -> None:
    items = read("markdown", EVERY["markdown"][0](tmp_path))
    found = memories(items)
    coffee = found["food/coffee-brewing"]
    assert coffee.draft.title == "Coffee Brewing"
    assert coffee.draft.tags == ["coffee", "brewing"]
    assert coffee.draft.metadata == {"type": "note", "rating": 4, "nested": "  a: 1", "references": ["tea"]}
    assert coffee.created_at == 1738393200000
    assert "- [method] Pour over gives clarity #brewing (tested)" in coffee.draft.content
    assert found["tea"].draft.title == "Tea"
    assert sorted(reasons(items)) == ["it has no text", "it is not Markdown"]


@pytest.mark.parametrize(("own", "names_it"), [("[elsewhere]", True), ("", False), ("[]", False)])
def test_markdown_links_take_the_place_of_references_and_that_is_said(tmp_path: Path, own: str, names_it: bool) -> None:
    (tmp_path / "tea.md").write_text(f"---\nreferences: {own}\n---\nAs [[coffee]]")
    (tmp_path / "coffee.md").write_text("Black")
    items = read("markdown", tmp_path)
    assert memories(items)["tea"].draft.metadata == {"references": ["coffee"]}
    lost = "its own field references is not kept: the notes that it links to take its place"
    assert reasons(items) == ([lost] if names_it else [])


def test_markdown_what_is_not_text_is_broken_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "a.md").write_bytes(b"fine\n\xff\n")
    assert str(read("markdown", tmp_path / "n")[0]) == "a.md line 2: is not UTF-8 text"


def test_markdown_one_file_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "just a thought", "Thought.md")
    assert memories(read("markdown", path))["Thought"].draft.content == "just a thought"


def test_markdown_of_one_file_alone_it_is_said_that_its_links_tie_nothing(tmp_path: Path) -> None:
    """Imported again after its folder, it has no references any more."""
    path = written(tmp_path, "As [[coffee]]", "tea.md")
    items = read("markdown", path)
    assert reasons(items) == ["what it links to is not tied to it: import the folder, or the zip, that has both"]
    assert memories(items)["tea"].draft.metadata == {}
    written(tmp_path, "Black", "coffee.md")
    assert reasons(read("markdown", tmp_path)) == []


def test_markdown_without_a_date_is_from_when_its_file_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, "just a thought", "Thought.md")
    os.utime(path, (1_577_934_246, 1_577_934_246))
    assert memories(read("markdown", path))["Thought"].created_at == 1_577_934_246_000
    assert memories(read("markdown", tmp_path))["Thought"].created_at == 1_577_934_246_000


@pytest.mark.parametrize(
    ("date", "at"),
    [
        ((2020, 1, 2, 3, 4, 6), 1_577_934_246_000),
        ((1980, 1, 1, 0, 0, 0), None),  # how an archive says that nobody knows
        ((2020, 0, 0, 0, 0, 0), None),
    ],
)
def test_markdown_in_an_archive_is_from_when_that_says(tmp_path: Path, date: Any, at: int | None) -> None:
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("notes/Thought.md", date), "just a thought")
    assert memories(read("markdown", path))["notes/Thought"].created_at == at


# AMP


def test_amp_gives_lessons_and_checkpoints(tmp_path: Path) -> None:
    found = memories(read("amp", EVERY["amp"][0](tmp_path)))
    lesson, checkpoint = found["lesson-1"], found["cp-1"]
    assert (lesson.draft.kind, lesson.draft.title, lesson.draft.project) == ("lesson", "Tabs", "atlas")
    assert lesson.draft.metadata["severity"] == "critical"
    assert lesson.draft.agent_id == "shared"  # as AMP has it where no agent is named
    assert (lesson.created_at, lesson.more) == (1736200000000, {"updated_at": 1736300000000})
    assert (checkpoint.draft.agent_id, checkpoint.draft.type) == ("builder", "episodic")
    assert checkpoint.draft.metadata["state"] == {"decisions": ["use make"], "flags": ["IN_PROGRESS"]}


def test_amp_a_row_that_is_wrong_is_broken_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "n.db"
    db = apsw.Connection(str(path))
    db.execute(NELLIE)
    for id, tags in (("a", "{"), ("b", "[]")):
        db.execute("INSERT INTO lessons VALUES(?, 't', 'c', ?, 'info', NULL, NULL, 1, 1)", (id, tags))
    db.close()
    first, second = read("amp", path)
    assert str(first).startswith("lessons a: what stands in tags is not valid JSON")
    assert isinstance(second, SourceMemory)


def test_amp_a_column_of_bytes_and_a_table_of_another_name_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = EVERY["amp"][0](tmp_path)
    db = apsw.Connection(str(path))
    db.execute("ALTER TABLE lessons ADD COLUMN embedding BLOB")
    db.execute("UPDATE lessons SET embedding = x'ff00ff'")
    db.execute("CREATE TABLE agent_status(id)")
    db.close()
    items = read("amp", path)
    assert sorted(memories(items)) == ["cp-1", "lesson-1"]
    assert [(item.what, item.reason) for item in items if isinstance(item, LeftOut)][:2] == [
        ("lessons.embedding", "a column that is not read"),
        ("table agent_status", "a table that is not read"),
    ]


def test_amp_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t(a)")
    db.close()
    with pytest.raises(BrokenFile, match="has neither lessons nor checkpoints"):
        read("amp", path)


# trusty-memory


def test_trusty_gives_drawers_with_room_and_importance(tmp_path: Path) -> None:
    found = memories(read("trusty", EVERY["trusty"][0](tmp_path)))
    drawer = found["ab12"].draft
    assert (drawer.kind, drawer.importance, drawer.tags) == ("drawer", 0.9, ["ops"])
    assert drawer.metadata["drawer_type"] == "UserFact"
    assert found["ab12"].created_at == 1770091506000


def test_trusty_what_its_server_answers(tmp_path: Path) -> None:
    drawers = [
        {
            "id": "d1",
            "room_id": "r",
            "content": "x",
            "importance": 0.5,
            "created_at": "2026-02-03T04:05:06Z",
            "tags": [],
        }
    ]
    facts = [{"subject": "a", "predicate": "b", "object": "c", "valid_from": "2026-02-03T04:05:06Z", "valid_to": None}]
    assert list(memories(read("trusty", written(tmp_path, drawers)))) == ["d1"]
    (fact,) = read("trusty", written(tmp_path, facts))
    assert isinstance(fact, SourceStatement)
    assert (fact.object, fact.valid_from) == ("c", 1770091506000)


@pytest.mark.parametrize(
    "more",
    [
        {"importance": 7},
        {"importance": "high"},
        {"id": 7},
        {"created_at": "x"},
        {"updated_at": "x"},
        {"palace": "p"},
        {"tags": [7]},
    ],
)
def test_trusty_a_field_that_is_not_kept_is_named(more: Any, tmp_path: Path) -> None:
    line = {"content_hash": "ab", "content": "Bees", "drawer_type": "UserFact", **more}
    items = read("trusty", written(tmp_path, line))
    assert len(memories(items)) == 1
    (reason,) = reasons(items)
    assert next(iter(more)) in reason


def test_trusty_keeps_when_a_drawer_was_changed(tmp_path: Path) -> None:
    line = {"content_hash": "ab", "content": "Bees", "drawer_type": "UserFact", "updated_at": "2026-02-03T04:05:06Z"}
    assert memories(read("trusty", written(tmp_path, line)))["ab"].more == {"updated_at": 1770091506000}


def test_trusty_keeps_all_of_where_a_fact_is_from(tmp_path: Path) -> None:
    fact = {"subject": "a", "predicate": "b", "object": "c", "provenance": "said\nby " + "Alice " * 30}
    (stated,) = read("trusty", written(tmp_path, [fact]))
    assert isinstance(stated, SourceStatement)
    assert stated.provenance == fact["provenance"]


@pytest.mark.parametrize("line", ['{"format_version": 2, "content": "x", "drawer_type": ""}', "[1]", "{"])
def test_trusty_what_is_of_another_version_or_no_drawer_is_broken(line: str, tmp_path: Path) -> None:
    try:
        assert isinstance(read("trusty", written(tmp_path, line))[0], Broken)
    except BrokenFile:
        assert line == "{"


# What has no id


@pytest.mark.parametrize(
    ("name", "document", "says"),
    [
        ("amp", {"lessons": [{"id": None, "content": "x"}]}, "lessons row 1: has no id"),
        ("claude", [{"name": "T", "chat_messages": [{"text": "x"}]}], "has no uuid, nor has its conversation"),
        ("claude", [{"name": "T", "docs": [{"uuid": "d", "content": "x"}]}], "is a project without a uuid"),
        ("mem0", [{"memory": "x"}], "is not a memory with an id"),
    ],
)
def test_what_could_be_taken_for_another_is_broken(name: str, document: Any, says: str, tmp_path: Path) -> None:
    (item,) = read(name, written_as(name, document, tmp_path))
    assert isinstance(item, Broken)
    assert says in str(item)


@pytest.mark.parametrize("nothing", [None, "", [], {}], ids=repr)
def test_trusty_a_field_that_says_nothing_is_not_named(nothing: Any, tmp_path: Path) -> None:
    fields = ("palace", "importance", "hash_version", "format_version", "created_at", "tags", "fact_key", "room")
    drawer = {"id": "d", "content": "Bob keeps bees", "drawer_type": "UserFact", **dict.fromkeys(fields, nothing)}
    fact = {"subject": "Bob", "predicate": "keeps", "object": "bees"}
    fact |= dict.fromkeys(("palace", "confidence", "valid_from", "provenance", "unheard_of"), nothing)
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(drawer)}\n{json.dumps(fact)}\n")
    items = read("trusty", path)
    assert (len(items), reasons(items)) == (2, [])
