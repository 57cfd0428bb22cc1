"""ChatGPT's data export: conversations.json, or conversations-000.json and so on, in a zip, a folder or alone.

A conversation is a tree of messages; what its owner saw is the path from `current_node` to the root. Each message of a
person or of the model becomes one memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commonplace.engine import Draft
from commonplace.transfer.importers.json_files import elements_of_each
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    has_value,
    label,
    list_of,
    milliseconds,
    mistyped_fields,
    noted_times,
    object_of,
    text_of,
)

NAME, TITLE = "chatgpt", "ChatGPT export"
_FILES = r"conversations(-\d+)?\.json"
_TEXT = ("text", "multimodal_text")
_SPEAKERS = ["user", "assistant"]  # not a set: a role may be anything
_SYSTEM = "it is of the system or of a tool"
_HIDDEN = "is_visually_hidden_from_conversation"
#: What is read of each; the other fields are named.
_CONVERSATION = ("title", "mapping", "current_node", "create_time", "update_time", "conversation_id", "id")
_NODE = ("id", "parent", "children", "message")
_MESSAGE = ("id", "author", "content", "metadata", "recipient", "create_time", "update_time")
_METADATA = (_HIDDEN, "attachments", "model_slug")


def matches(source: Source) -> bool:
    files = source.named(_FILES) or (source.members if len(source.members) == 1 else [])
    return any(b'"mapping"' in head for head in source.heads(files))


def read(source: Source) -> Iterator[Item]:
    files = source.named(_FILES) or [source.single()]
    yield from source.others(files)
    for found in elements_of_each(source, files):
        if isinstance(found, Broken):
            yield found
            continue
        where, conversation = found
        if not isinstance(conversation, dict) or not isinstance(conversation.get("mapping"), dict):
            yield Broken(where, "is no conversation: it has no mapping")
            continue
        yield from _conversation(source, conversation)


def _conversation(source: Source, conversation: dict[str, Any]) -> Iterator[Item]:
    mapping: dict[str, Any] = conversation["mapping"]
    title = text_of(conversation.get("title"))
    yield from _odd_conversation(source, conversation, title)
    for id, node in mapping.items():
        yield from _odd_node(source, mapping, f"{label(title)}: {id}", id, node)
    shown = _path(mapping, conversation.get("current_node"))
    for id in shown:
        yield from _message(source, conversation, title, id, mapping[id].get("message"))
    on_path = set(shown)
    for id, node in mapping.items():
        if id not in on_path and isinstance(message := object_of(node).get("message"), dict):
            speaks = object_of(message.get("author")).get("role") in _SPEAKERS
            aside = "it is on a branch that was edited or regenerated away"
            yield LeftOut(f"{label(title)}: {id}", aside if speaks else _SYSTEM)


def _odd_conversation(source: Source, conversation: dict[str, Any], title: str) -> Iterator[LeftOut]:
    mapping, last = conversation["mapping"], conversation.get("current_node")
    session, id = conversation.get("conversation_id"), conversation.get("id")
    where = label(title or text_of(session) or text_of(id))
    source.note_unread_fields("conversations", conversation, _CONVERSATION)
    texts = ("title", "current_node", "conversation_id", "id")
    yield from mistyped_fields(conversation, where, texts=texts, times=("create_time", "update_time"))
    if text_of(session) and text_of(id) and session != id:
        yield LeftOut(where, "its id is another than its conversation_id, which is kept")
    if text_of(last) and last not in mapping:
        yield LeftOut(where, "its current_node is none of its messages; the last one without an answer is taken")
    if not any(isinstance(object_of(node).get("message"), dict) for node in mapping.values()):
        yield LeftOut(where, "it has no messages")


def _odd_node(source: Source, mapping: dict[str, Any], where: str, id: str, node: Any) -> Iterator[Item]:
    """What does not fit into the tree: messages may be out of reach for it."""
    if not isinstance(node, dict):
        yield Broken(where, "is no object")
        return
    source.note_unread_fields("nodes", node, _NODE)
    yield from mistyped_fields(node, where, texts=("id", "parent"), objects=("message",), lists=("children",))
    if text_of(node.get("id")) and node["id"] != id:
        yield LeftOut(where, "its id is another than the one it goes by, which is kept")
    if text_of(node.get("parent")) and node["parent"] not in mapping:
        yield LeftOut(where, "its parent is none of the messages; the rest is read")
    for child in filter(has_value, list_of(node.get("children"))):
        if not isinstance(child, str) or object_of(mapping.get(child)).get("parent") != id:
            yield LeftOut(where, "one of its children is none of the messages below it; the rest is read")


def _path(mapping: dict[str, Any], leaf: Any) -> list[str]:
    """The ids from the root to the message that is shown last."""
    if not isinstance(leaf, str) or leaf not in mapping:
        # Older exports have none: then the last message that has no answer.
        leaves = [id for id, node in mapping.items() if isinstance(node, dict) and not node.get("children")]
        leaf = leaves[-1] if leaves else None
    found: list[str] = []
    seen: set[str] = set()
    while isinstance(leaf, str) and leaf not in seen and isinstance(mapping.get(leaf), dict):
        seen.add(leaf)
        found.append(leaf)
        leaf = mapping[leaf].get("parent")
    return found[::-1]


def _words(source: Source, part: Any) -> str | None:
    """What a part says, if it says anything: what was spoken comes as an object with its transcription."""
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription" and text_of(part.get("text")):
        source.note_unread_fields("parts of messages", part, ("content_type", "text"))
        return text_of(part["text"])
    return part if isinstance(part, str) else None


def _message(source: Source, conversation: dict[str, Any], title: str, id: str, message: Any) -> Iterator[Item]:
    if not isinstance(message, dict):
        return  # the root says nothing
    where = f"{label(title)}: {id}"
    author, content, more = (object_of(message.get(name)) for name in ("author", "content", "metadata"))
    role = author.get("role")
    if role not in _SPEAKERS or more.get(_HIDDEN) or _is_for_a_tool(message):
        yield LeftOut(where, _SYSTEM)
        return
    if has_value(content.get("content_type")) and content["content_type"] not in _TEXT:
        yield LeftOut(where, f"it is not text but {label(str(content.get('content_type')))}")
        return
    texts = [_words(source, part) for part in list_of(content.get("parts")) if has_value(part)]
    text = "\n".join(part for part in texts if part is not None).strip()
    if None in texts:
        yield LeftOut(where, "pictures and files are not imported")
    for attached in filter(has_value, list_of(more.get("attachments"))):
        name = text_of(object_of(attached).get("name")) or text_of(object_of(attached).get("id"))
        yield LeftOut(f"{where}: {label(name)}", "an attached file is not imported")
    if not text:
        yield LeftOut(where, "it has no text")
        return
    yield from _odd_message(source, message, where)
    at = milliseconds(message.get("create_time")) or milliseconds(conversation.get("create_time"))
    session = text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))
    model = text_of(more.get("model_slug"))
    draft = Draft(
        "", "episodic", text, kind="message", title=title or None, speaker=role, session_id=session or None,
        event_time=at, source=f"chatgpt:{session}" if session else "chatgpt",
        metadata={"model": model} if model else {},
    )  # fmt: skip
    noted: dict[str, Any] = noted_times(updated_at=message.get("update_time"))
    around = noted_times(created_at=conversation.get("create_time"), updated_at=conversation.get("update_time"))
    yield SourceMemory(
        text_of(message.get("id")) or id, draft, at, noted | ({"conversation": around} if around else {})
    )


def _is_for_a_tool(message: dict[str, Any]) -> bool:
    return has_value(message.get("recipient")) and message["recipient"] != "all"


def _odd_message(source: Source, message: dict[str, Any], where: str) -> Iterator[LeftOut]:
    author, content, more = (object_of(message.get(name)) for name in ("author", "content", "metadata"))
    source.note_unread_fields("messages", message, _MESSAGE)
    source.note_unread_fields("authors", author, ("role",))
    source.note_unread_fields("contents of messages", content, ("content_type", "parts"))
    source.note_unread_fields("metadata of messages", more, _METADATA)
    yield from mistyped_fields(
        message, where, texts=("id",), times=("create_time", "update_time"), objects=("metadata",)
    )
    yield from mistyped_fields(more, where, texts=("model_slug",), lists=("attachments",))
    if has_value(more.get(_HIDDEN)) and not isinstance(more[_HIDDEN], bool):
        yield LeftOut(where, f"its {_HIDDEN} is neither true nor false; the rest is read")
