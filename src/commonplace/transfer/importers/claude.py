"""Claude's data export: conversations.json, projects.json and memories.json, in a zip, a folder or alone."""

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
    text_of,
)

NAME, TITLE = "claude", "Claude export"
_FILES = r"(conversations|projects|memories)\.json"


def matches(source: Source) -> bool:
    files = source.named(_FILES) or (source.members if len(source.members) == 1 else [])
    marks = (b'"chat_messages"', b'"conversations_memory"', b'"prompt_template"')
    return any(mark in source.head(file) for file in files for mark in marks)


def read(source: Source) -> Iterator[Item]:
    files = source.named(_FILES) or [source.single()]
    yield from source.others(files)
    for file in files:
        with source.open(file) as lines:
            for line, element in elements(lines, file):
                if not isinstance(element, dict):
                    yield Broken(f"{file} line {line}", "is not an object")
                elif isinstance(element.get("chat_messages"), list):
                    yield from _conversation(element)
                elif "conversations_memory" in element or "project_memories" in element:
                    yield from _memories(element)
                elif isinstance(element.get("docs"), list):
                    yield from _project(element)
                else:
                    yield Broken(f"{file} line {line}", "is neither a conversation, nor a project, nor memories")


def _conversation(conversation: dict[str, Any]) -> Iterator[Item]:
    session, title = text_of(conversation.get("uuid")), text_of(conversation.get("name"))
    if conversation.get("summary"):
        yield LeftOut(label(title or session), "the summary of a conversation is not imported")
    for number, message in enumerate(conversation["chat_messages"]):
        if not isinstance(message, dict):
            yield Broken(f"conversation {label(title or session)}, message {number + 1}", "is not an object")
            continue
        id = text_of(message.get("uuid")) or f"{session}/{number}"
        where = f"{label(title)}: {id}"
        text, others = _text(message)
        for kind in others:
            yield LeftOut(where, f"a part of it is not text but {label(kind)}")
        at = milliseconds(message.get("created_at")) or milliseconds(conversation.get("created_at"))
        draft = Draft(
            "", "episodic", text, kind="message", title=title or None, speaker=text_of(message.get("sender")) or None,
            session_id=session or None, event_time=at, source=f"claude:{session}" if session else "claude",
        )  # fmt: skip
        if text:
            yield SourceMemory(id, draft, at, _changed(message))
        elif not list_of(message.get("attachments")):
            yield LeftOut(where, "it has no text")
        yield from _attachments(message, id, draft, at)


def _text(message: dict[str, Any]) -> tuple[str, list[str]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content] if content else []
    given = [_words(block) for block in blocks]
    texts = [text for text in given if text is not None]
    others = [
        str(block.get("type")) if isinstance(block, dict) else type(block).__name__
        for block, text in zip(blocks, given, strict=True)
        if text is None
    ]
    return ("\n".join(filter(None, texts)) or text_of(message.get("text"))).strip(), others


def _words(block: Any) -> str | None:
    """What a block of text says, which may also be a plain text; None where it is something else."""
    if isinstance(block, dict):
        text = block.get("text", "") if block.get("type") == "text" else None
        return text if isinstance(text, str) else None
    return block if isinstance(block, str) else None


def _attachments(message: dict[str, Any], id: str, draft: Draft, at: int | None) -> Iterator[Item]:
    from dataclasses import replace

    given = message.get("attachments")
    for number, attached in enumerate(given if isinstance(given, list) else [given] if given else []):
        if not isinstance(attached, dict):
            yield LeftOut(f"{id}: {label(str(attached))}", "an attachment that is no object")
            continue
        name, text = text_of(attached.get("file_name")), text_of(attached.get("extracted_content")).strip()
        if not text:
            yield LeftOut(label(name), "an attachment without extracted text")
            continue
        yield SourceMemory(
            f"{id}/attachment/{number}", replace(draft, content=text, kind="attachment", title=name or draft.title), at
        )
    files = message.get("files")
    for file in files if isinstance(files, list) else [files] if files else []:
        yield LeftOut(
            label(text_of(file.get("file_name") if isinstance(file, dict) else "")),
            "pictures and files are not imported",
        )


def _project(project: dict[str, Any]) -> Iterator[Item]:
    name, id = text_of(project.get("name")), text_of(project.get("uuid"))
    for key in ("description", "prompt_template"):
        if project.get(key) is not None and not isinstance(project[key], str):
            yield LeftOut(f"{label(name)}: {key}", "it is no text")
        if text := text_of(project.get(key)).strip():
            draft = Draft(
                "", "semantic", text, kind=key, title=name or None, project=name or None, source=f"claude:{id}"
            )
            yield SourceMemory(f"{id}/{key}", draft, milliseconds(project.get("created_at")), _changed(project))
    for number, document in enumerate(project["docs"]):
        text = text_of(document.get("content")).strip() if isinstance(document, dict) else ""
        if not text:
            yield LeftOut(f"{label(name)}: document {number + 1}", "it has no text")
            continue
        file = text_of(document.get("filename"))
        draft = Draft(
            "", "semantic", text, kind="document", title=file or None, project=name or None, source=f"claude:{id}"
        )
        yield SourceMemory(
            text_of(document.get("uuid")) or f"{id}/{number}", draft, milliseconds(document.get("created_at"))
        )


def _memories(element: dict[str, Any]) -> Iterator[Item]:
    account = text_of(element.get("account_uuid")) or "account"
    if text := text_of(element.get("conversations_memory")).strip():
        yield SourceMemory(f"{account}/memory", Draft("", "semantic", text, kind="memory", source="claude:memories"))
    elif not isinstance(element.get("conversations_memory", ""), str):
        yield LeftOut(f"{account}/memory", "a memory that is no text")
    projects = element.get("project_memories")
    if projects and not isinstance(projects, dict):
        yield LeftOut(f"{account}/memory", "memories of projects that are no object")
    for id, text in projects.items() if isinstance(projects, dict) else ():
        if not isinstance(text, str):
            yield LeftOut(f"{account}/memory/{label(id)}", "a memory that is no text")
        elif text.strip():
            draft = Draft("", "semantic", text.strip(), kind="memory", source=f"claude:{id}")
            yield SourceMemory(f"{account}/memory/{id}", draft)


def _changed(element: dict[str, Any]) -> dict[str, Any]:
    at = milliseconds(element.get("updated_at"))
    return {} if at is None else {"updated_at": at}
