"""Claude's data export: conversations.json, projects.json and memories.json, in a zip, a folder or alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
    milliseconds,
    mistyped_fields,
    noted_times,
    object_of,
    text_of,
)

NAME, TITLE = "claude", "Claude export"
_FILES = r"(conversations|projects|memories)\.json"
_TIMES = ("created_at", "updated_at")
#: What is read of each; the other fields are named.
_CONVERSATION = ("uuid", "name", "summary", "chat_messages", *_TIMES)
_MESSAGE = ("uuid", "text", "content", "sender", "attachments", "files", *_TIMES)
_PROJECT = ("uuid", "name", "description", "prompt_template", "docs", *_TIMES)
_DOCUMENT = ("uuid", "filename", "content", "created_at")
_MEMORIES = ("conversations_memory", "project_memories", "account_uuid")


def matches(source: Source) -> bool:
    files = source.named(_FILES) or (source.members if len(source.members) == 1 else [])
    marks = (b'"chat_messages"', b'"conversations_memory"', b'"prompt_template"')
    return any(mark in head for head in source.heads(files) for mark in marks)


def read(source: Source) -> Iterator[Item]:
    files = source.named(_FILES) or [source.single()]
    yield from source.others(files)
    for found in elements_of_each(source, files):
        if isinstance(found, Broken):
            yield found
            continue
        where, element = found
        if not isinstance(element, dict):
            yield Broken(where, "is not an object")
        elif isinstance(element.get("chat_messages"), list):
            yield from _conversation(source, element)
        elif "conversations_memory" in element or "project_memories" in element:
            yield from _memories(source, element)
        elif isinstance(element.get("docs"), list):
            yield from _project(source, element, where)
        else:
            yield Broken(where, "is neither a conversation, nor a project, nor memories")


def _conversation(source: Source, conversation: dict[str, Any]) -> Iterator[Item]:
    session, title = text_of(conversation.get("uuid")), text_of(conversation.get("name"))
    where = label(title or session)
    source.note_unread_fields("conversations", conversation, _CONVERSATION)
    yield from mistyped_fields(conversation, where, texts=("uuid", "name"), times=_TIMES)
    if has_value(conversation.get("summary")):
        yield LeftOut(where, "the summary of a conversation is not imported")
    if not conversation["chat_messages"]:
        yield LeftOut(where, "it has no messages")
    for number, message in enumerate(conversation["chat_messages"]):
        if not isinstance(message, dict):
            yield Broken(f"conversation {where}, message {number + 1}", "is not an object")
        elif not session and not text_of(message.get("uuid")):
            # By its place alone it would be taken for that of another conversation.
            yield Broken(f"conversation {where}, message {number + 1}", "has no uuid, nor has its conversation")
        else:
            yield from _message(source, conversation, message, number)


def _message(source: Source, conversation: dict[str, Any], message: dict[str, Any], number: int) -> Iterator[Item]:
    session, title = text_of(conversation.get("uuid")), text_of(conversation.get("name"))
    id = text_of(message.get("uuid")) or f"{session}/{number}"
    where = f"{label(title)}: {id}"
    text, others = _text(source, message)
    for reason in others:
        yield LeftOut(where, reason)
    at = milliseconds(message.get("created_at")) or milliseconds(conversation.get("created_at"))
    draft = Draft(
        "", "episodic", text, kind="message", title=title or None, speaker=text_of(message.get("sender")) or None,
        session_id=session or None, event_time=at, source=f"claude:{session}" if session else "claude",
    )  # fmt: skip
    noted = _noted(message, conversation=conversation)
    attachments = [each for each in enumerate(_listed(message.get("attachments"))) if has_value(each[1])]
    if not text and not attachments:
        yield LeftOut(where, "it has no text")
    else:
        source.note_unread_fields("messages", message, _MESSAGE)
        yield from mistyped_fields(message, where, texts=("uuid", "sender", "text"), times=_TIMES)
    if text:
        yield SourceMemory(id, draft, at, noted)
    for place, attached in attachments:
        yield from _attachment(source, attached, SourceMemory(f"{id}/attachment/{place}", draft, at, noted))
    for file in filter(has_value, _listed(message.get("files"))):
        yield LeftOut(label(text_of(object_of(file).get("file_name"))), "pictures and files are not imported")


def _text(source: Source, message: dict[str, Any]) -> tuple[str, list[str]]:
    """What a message says, and why other parts of it are left out."""
    blocks = [block for block in _listed(message.get("content")) if has_value(block)]
    given = [_words(source, block) for block in blocks]
    said = "\n".join(filter(None, given)).strip()
    odd = [block for block, text in zip(blocks, given, strict=True) if text is None]
    kinds = [_kind(block) for block in odd]
    others = [f"a part of it is not text but {label(kind)}" for kind in kinds]
    plain = text_of(message.get("text")).strip()
    if said and plain and plain.split() != said.split():
        others.append("its text is another than that of its content, which is read")
    return said or plain, others


def _words(source: Source, block: Any) -> str | None:
    """What a block of text says, which may also be a plain text; None where it is something else."""
    if not isinstance(block, dict):
        return block if isinstance(block, str) else None
    text = block.get("text") if has_value(block.get("text")) else ""
    if block.get("type") != "text" or not isinstance(text, str):
        return None
    source.note_unread_fields("contents of messages", block, ("type", "text"))
    return text


def _kind(block: Any) -> str:
    if not isinstance(block, dict):
        return type(block).__name__
    return str(block["type"]) if has_value(block.get("type")) else "of no type"


def _attachment(source: Source, attached: Any, memory: SourceMemory) -> Iterator[Item]:
    if not isinstance(attached, dict):
        yield LeftOut(f"{memory.id}: {label(str(attached))}", "an attachment that is no object")
        return
    name, text = text_of(attached.get("file_name")), text_of(attached.get("extracted_content")).strip()
    if not text:
        yield LeftOut(label(name), "an attachment without extracted text")
        return
    source.note_unread_fields("attachments", attached, ("file_name", "extracted_content"))
    yield from mistyped_fields(attached, memory.id, texts=("file_name",))
    draft = replace(memory.draft, content=text, kind="attachment", title=name or memory.draft.title)
    yield replace(memory, draft=draft)


def _project(source: Source, project: dict[str, Any], where: str) -> Iterator[Item]:
    name, id = text_of(project.get("name")), text_of(project.get("uuid"))
    if not id:  # of which its texts have theirs
        yield Broken(where, "is a project without a uuid")
        return
    source.note_unread_fields("projects", project, _PROJECT)
    texts = ("name", "description", "prompt_template")
    yield from mistyped_fields(project, label(name or id), texts=texts, times=_TIMES)
    about = {key: text_of(project.get(key)).strip() for key in ("description", "prompt_template")}
    if not any(about.values()) and not project["docs"]:
        yield LeftOut(label(name or id), "it has no text")
    for key, text in about.items():
        if text:
            draft = Draft(
                "", "semantic", text, kind=key, title=name or None, project=name or None, source=f"claude:{id}"
            )
            yield SourceMemory(f"{id}/{key}", draft, milliseconds(project.get("created_at")), _noted(project))
    for number, document in enumerate(project["docs"]):
        yield from _document(source, project, document, number)


def _document(source: Source, project: dict[str, Any], document: Any, number: int) -> Iterator[Item]:
    name, id = text_of(project.get("name")), project["uuid"]
    where = f"{label(name or id)}: document {number + 1}"
    text = text_of(object_of(document).get("content")).strip()
    if not text:
        yield LeftOut(where, "it has no text")
        return
    source.note_unread_fields("documents", document, _DOCUMENT)
    yield from mistyped_fields(document, where, texts=("uuid", "filename"), times=("created_at",))
    draft = Draft(
        "", "semantic", text, kind="document", title=text_of(document.get("filename")) or None, project=name or None,
        source=f"claude:{id}",
    )  # fmt: skip
    yield SourceMemory(
        text_of(document.get("uuid")) or f"{id}/{number}", draft, milliseconds(document.get("created_at")),
        _noted({}, project=project),
    )  # fmt: skip


def _memories(source: Source, element: dict[str, Any]) -> Iterator[Item]:
    account = text_of(element.get("account_uuid")) or "account"
    source.note_unread_fields("memories", element, _MEMORIES)
    texts = ("account_uuid", "conversations_memory")
    yield from mistyped_fields(element, f"{account}/memory", texts=texts, objects=("project_memories",))
    if text := text_of(element.get("conversations_memory")).strip():
        yield SourceMemory(f"{account}/memory", Draft("", "semantic", text, kind="memory", source="claude:memories"))
    for id, text in object_of(element.get("project_memories")).items():
        if has_value(text) and not isinstance(text, str):
            yield LeftOut(f"{account}/memory/{label(id)}", "a memory that is no text")
        elif text_of(text).strip():
            draft = Draft("", "semantic", text.strip(), kind="memory", source=f"claude:{id}")
            yield SourceMemory(f"{account}/memory/{id}", draft)


def _listed(value: Any) -> list[Any]:
    """A list, or what stands in the place of one."""
    return value if isinstance(value, list) else [value] if has_value(value) else []


def _noted(element: dict[str, Any], **around: dict[str, Any]) -> dict[str, Any]:
    """When the source last changed it, and the times of what it is a part of."""
    noted: dict[str, Any] = noted_times(updated_at=element.get("updated_at"))
    for name, of in around.items():
        times = noted_times(created_at=of.get("created_at"), updated_at=of.get("updated_at"))
        noted |= {name: times} if times else {}
    return noted
