"""ChatGPT's data export: conversations.json, or conversations-000.json and so on, in a zip, a folder or alone.

A conversation is a tree of messages; what its owner saw is the path from `current_node` to the root. Each message of a
person or of the model becomes one memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commonplace.engine import Draft
from commonplace.transfer.importers.json_stream import elements
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    label,
    list_of,
    milliseconds,
    object_of,
    text_of,
)

NAME, TITLE = "chatgpt", "ChatGPT export"
_FILES = r"conversations(-\d+)?\.json"
_TEXT = ("text", "multimodal_text")
_SPEAKERS = ["user", "assistant"]  # not a set: a role may be anything


def matches(source: Source) -> bool:
    files = source.named(_FILES) or (source.members if len(source.members) == 1 else [])
    return any(b'"mapping"' in source.head(file) for file in files[:1])


def read(source: Source) -> Iterator[Item]:
    files = source.named(_FILES) or [source.single()]
    yield from source.others(files)
    for file in files:
        with source.open(file) as lines:
            for line, conversation in elements(lines, file):
                if not isinstance(conversation, dict) or not isinstance(conversation.get("mapping"), dict):
                    yield Broken(f"{file} line {line}", "is no conversation: it has no mapping")
                    continue
                yield from _conversation(conversation)


def _conversation(conversation: dict[str, Any]) -> Iterator[Item]:
    mapping: dict[str, Any] = conversation["mapping"]
    title = text_of(conversation.get("title"))
    shown = _path(mapping, conversation.get("current_node"))
    for id in shown:
        yield from _message(conversation, title, id, mapping[id].get("message"))
    on_path = set(shown)
    aside = [id for id, node in mapping.items() if id not in on_path and _speaks(node)]
    for id in aside:
        yield LeftOut(f"{label(title)}: {id}", "it is on a branch that was edited or regenerated away")


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


def _speaks(node: Any) -> bool:
    message = object_of(object_of(node).get("message"))
    return object_of(message.get("author")).get("role") in _SPEAKERS


def _words(part: Any) -> str | None:
    """What a part says, if it says anything: what was spoken comes as an object with its transcription."""
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
        return text_of(part.get("text")) or None
    return part if isinstance(part, str) else None


def _message(conversation: dict[str, Any], title: str, id: str, message: Any) -> Iterator[Item]:
    if not isinstance(message, dict):
        return  # the root says nothing
    where = f"{label(title)}: {id}"
    role, more = object_of(message.get("author")).get("role"), object_of(message.get("metadata"))
    content = object_of(message.get("content"))
    hidden = more.get("is_visually_hidden_from_conversation")
    if role not in _SPEAKERS or hidden or message.get("recipient", "all") != "all":
        yield LeftOut(where, "it is of the system or of a tool")
        return
    if content.get("content_type", "text") not in _TEXT:
        yield LeftOut(where, f"it is not text but {label(str(content.get('content_type')))}")
        return
    texts = [_words(part) for part in list_of(content.get("parts"))]
    text = "\n".join(part for part in texts if part is not None).strip()
    if None in texts:
        yield LeftOut(where, "pictures and files are not imported")
    for attached in list_of(more.get("attachments")):
        name = text_of(object_of(attached).get("name")) or text_of(object_of(attached).get("id"))
        yield LeftOut(f"{where}: {label(name)}", "an attached file is not imported")
    if not text:
        yield LeftOut(where, "it has no text")
        return
    at = milliseconds(message.get("create_time")) or milliseconds(conversation.get("create_time"))
    session = text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))
    model = text_of(more.get("model_slug"))
    draft = Draft(
        "", "episodic", text, kind="message", title=title or None, speaker=role, session_id=session or None,
        event_time=at, source=f"chatgpt:{session}" if session else "chatgpt",
        metadata={"model": model} if model else {},
    )  # fmt: skip
    yield SourceMemory(text_of(message.get("id")) or id, draft, at)
