"""Conversations as coding agents and chats keep them, turn by turn: Claude Code, Codex, ChatGPT exports."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from commonplace.transfer.bounded_lines import bounded_lines
from commonplace.transfer.importers import chatgpt
from commonplace.transfer.importers.source import Source, SourceMemory, milliseconds, object_of, text_of
from commonplace.transfer.report import Broken, BrokenFile, with_file_name
from commonplace.wire.errors import ValidationError

FORMATS = ("claude-code", "codex", "chatgpt")
_HEAD_LINES = 50
_MAX_LINE = 64 << 20
_INTERRUPTED = re.compile(r"^\s*\[Request interrupted[^\]\n]*\]")  # which Claude Code says in the user's name
# The IDE extension of Codex puts what is open and selected in the editor before what the person typed.
_CODEX_CONTEXT = ("# Context from my IDE setup", "# Files mentioned by the user", "## My request for Codex:")
_CODEX_REQUEST = re.compile(r"^## My request for Codex:", re.MULTILINE)


@dataclass(slots=True, frozen=True)
class Turn:
    speaker: Literal["user", "assistant"]
    text: str
    id: str
    session: str = ""
    at: int | None = None  # ms
    folder: str = ""  # the one that was worked in


def read_transcript(path: Path, format: str = "auto") -> tuple[str, list[Turn], list[Broken]]:
    """Its format, what was said in it, and the lines that are none; refused where nothing in it is a turn."""
    path = _expanded(path)
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe is read once, and a device may never end
        raise ValidationError(f"{path} is no file: save the transcript to one first")
    try:
        found = detect(path) if format == "auto" else format
        if found == "chatgpt":
            turns, broken = _chatgpt(path)
        else:
            turns, broken = _lines(path, _claude_code if found == "claude-code" else _codex)
    except BrokenFile as error:
        raise ValidationError(with_file_name(path.name, str(error))) from error
    except OSError as error:
        raise ValidationError(f"cannot read {path}: {error.strerror or error}") from error
    if not turns:
        raise ValidationError(f"{path.name} is no transcript of {found}: nobody says anything in it")
    return found, [_whole(turn) for turn in turns], broken


def _expanded(path: Path) -> Path:
    """Refused where no file can be of this name: opening it would fail as if this were a mistake of the program."""
    try:
        if b"\0" not in os.fsencode(path):
            return path.expanduser()
    except RuntimeError as error:
        raise ValidationError(f"cannot read {path}: there is no home folder of that user") from error
    except UnicodeEncodeError:
        pass  # half of a character
    raise ValidationError(f"{str(path)!r} is no name that a file can have")


def _whole(turn: Turn) -> Turn:
    """JSON can spell half of a character, which nothing can keep: it is shown as one that is missing."""
    texts = {name: getattr(turn, name) for name in ("text", "id", "session", "folder")}
    return replace(turn, **{name: text.encode("utf-8", "replace").decode() for name, text in texts.items()})


def detect(path: Path) -> str:
    path.open("rb").close()  # one that cannot be read is no broken part of itself
    source = Source(path)
    if chatgpt.matches(source):
        return "chatgpt"
    with path.open("rb") as file:
        for _, line in zip(range(_HEAD_LINES), bounded_lines(file, _MAX_LINE), strict=False):
            document = _document(line or b"")
            if "sessionId" in document or "leafUuid" in document or "parentUuid" in document:
                return "claude-code"
            if document.get("type") in ("session_meta", "response_item", "event_msg") or _is_codex_item(document):
                return "codex"
    raise ValidationError(f"{path.name} is no transcript; there are {', '.join(FORMATS)}", field="format")


def _lines(path: Path, read: Any) -> tuple[list[Turn], list[Broken]]:
    turns: list[Turn] = []
    broken: list[Broken] = []
    session, folder = path.stem, ""
    with path.open("rb") as file:
        for number, line in enumerate(bounded_lines(file, _MAX_LINE), start=1):
            if line is not None and not line.strip():
                continue
            document = _document(line or b"")
            if not document:
                broken.append(Broken(f"line {number}", "is not a JSON object"))
                continue
            if document.get("type") == "session_meta":
                told = object_of(document.get("payload"))
                session, folder = text_of(told.get("id")) or session, text_of(told.get("cwd"))
            turn = read(document, number, session, folder)
            if turn is not None and turn.text.strip():
                turns.append(turn)
    return turns, broken


def _document(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _claude_code(line: dict[str, Any], number: int, session: str, folder: str) -> Turn | None:
    kind, message = line.get("type"), line.get("message")
    # What a person did not type: notes of the program, its summaries, and work of sub-agents.
    aside = line.get("isMeta") or line.get("isSidechain") or line.get("isCompactSummary")
    if kind not in ("user", "assistant") or aside or not isinstance(message, dict):
        return None
    text = _text(message.get("content"), "text")
    return Turn(
        kind, _INTERRUPTED.sub("", text) if kind == "user" else text, text_of(line.get("uuid")) or str(number),
        text_of(line.get("sessionId")) or session, milliseconds(line.get("timestamp")), text_of(line.get("cwd")),
    )  # fmt: skip


def _is_codex_item(line: dict[str, Any]) -> bool:
    return line.get("type") == "message" and line.get("role") in ("user", "assistant", "developer", "system")


def _codex(line: dict[str, Any], number: int, session: str, folder: str) -> Turn | None:
    item = line.get("payload") if line.get("type") == "response_item" else line
    if not isinstance(item, dict) or not _is_codex_item(item) or item["role"] not in ("user", "assistant"):
        return None
    text = _text(item.get("content"), "input_text", "output_text", "text")
    if text.lstrip().startswith(("<environment_context>", "<user_instructions>", "# AGENTS.md")):
        return None  # which Codex says in the user's name
    if text.lstrip().startswith(_CODEX_CONTEXT):
        # After the last, since a selected text may have such a heading, too; without one nobody typed any of it.
        text = _CODEX_REQUEST.split(text)[-1] if _CODEX_REQUEST.search(text) else ""
    id = text_of(item.get("id")) or f"{session}/{number}"
    return Turn(item["role"], text, id, session, milliseconds(line.get("timestamp")), folder)


def _chatgpt(path: Path) -> tuple[list[Turn], list[Broken]]:
    turns: list[Turn] = []
    broken: list[Broken] = []
    for item in chatgpt.read(Source(path)):
        if isinstance(item, Broken):
            broken.append(item)
        elif isinstance(item, SourceMemory) and item.draft.speaker in ("user", "assistant"):
            speaker: Any = item.draft.speaker
            turns.append(Turn(speaker, item.draft.content, item.id, item.draft.session_id or "", item.created_at))
    return turns, broken


def _text(content: Any, *kinds: str) -> str:
    """The words of a message, which is a text or a list of blocks; what tools say is none of it."""
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return "\n".join(text_of(block.get("text")) for block in blocks if block.get("type") in kinds)
