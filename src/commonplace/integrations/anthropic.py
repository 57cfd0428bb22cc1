"""Anthropic's memory tool over a memory: the files that a model keeps under /memories are memories.

    from commonplace.integrations.anthropic import CommonplaceMemoryTool, CommonplaceAsyncMemoryTool

A file is one memory, whose content is the file's text: other protocols find it, and its history keeps what it was.
There are no folders but those that files are in. What does not have this adapter's source and shape is no file.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any
from uuid import uuid4

from commonplace.integrations.access import AnyMemory, MemoryAccess, PendingReview, require_done
from commonplace.integrations.framework import framework
from commonplace.wire.errors import Conflict, Fault, NotFound, ValidationError

with framework("anthropic", "1.0", extra="anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

ROOT = "/memories"
_SOURCE = "anthropic"
_DEPTH = 2  # levels that a listing shows, as the tool's description promises the model
_LINES = 999_999  # of a file that is shown
_AROUND = 2  # lines above and below a change that are shown
_TICK_S = 0.002  # more than the millisecond by which times are told apart


class MemoryFiles:
    """The six commands, each answered with the text for the model; what cannot be done is a `Fault` that says so."""

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def view(self, command: Any) -> str:
        path = _checked(command.path)
        file = await self._find(path)
        if file is not None:
            return _numbered(path, _text(file), getattr(command, "view_range", None))
        within = [each async for each in self._within(path)]
        if not within and path != ROOT:
            raise _missing(path)
        return _listing(path, within)

    async def create(self, command: Any) -> str:
        path = _checked(command.path)
        await self._require_free(path)
        draft = self._draft(path, command.file_text)
        draft["metadata"][_SOURCE]["creation"] = str(uuid4())  # of two with the same text, too, one is the creator
        made = await self._access.create_once(path, draft, lambda: self._find(path))
        if made is None:
            raise _taken(path)
        require_done(made)
        if await self._is_late(path, [{**draft, "id": made.id, "updated_at": made.stored_at}]):
            await self._forget([made.id])
            raise _taken(path)
        return f"File created successfully at: {path}"

    async def str_replace(self, command: Any) -> str:
        path, old, new = _checked(command.path), command.old_str, getattr(command, "new_str", None) or ""
        file = await self._require_file(path)
        text = _text(file)
        found = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)] if old else []
        if not found:
            raise ValidationError(f"No replacement was performed: old_str did not appear verbatim in {path}.")
        if len(found) > 1:
            lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in found)
            raise ValidationError(
                f"No replacement was performed: old_str appears more than once in {path}, in lines {lines}. "
                "Make it longer, so that it is unique."
            )
        after = text[: found[0]] + new + text[found[0] + len(old) :]
        await self._write(file, path, after)
        first = text.count("\n", 0, found[0])
        shown = _lines(after, first - _AROUND, first + new.count("\n") + _AROUND + 1)
        return f"The memory file has been edited. This is what is there now (with line numbers):\n{shown}"

    async def insert(self, command: Any) -> str:
        path, at = _checked(command.path), command.insert_line
        file = await self._require_file(path)
        # Only at "\n", by which a view numbers lines: splitlines would also cut at form feeds, U+2028 and others.
        lines = re.findall(r"[^\n]*\n|[^\n]+", _text(file))
        if not 0 <= at <= len(lines):
            raise ValidationError(f"insert_line must be from 0 to {len(lines)}, not {at}: {path} has so many lines.")
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        added = command.insert_text
        lines.insert(at, added if added.endswith("\n") else added + "\n")
        await self._write(file, path, "".join(lines))
        return f"The file {path} has been edited."

    async def delete(self, command: Any) -> str:
        path = _checked(command.path)
        if path == ROOT:
            raise ValidationError(f"{ROOT} itself cannot be deleted.")
        ids = [file["id"] async for file in self._at_or_within(path)]
        if not ids:
            raise _missing(path)
        await self._forget(ids)
        return f"Successfully deleted {path}"

    async def rename(self, command: Any) -> str:
        old, new = _checked(command.old_path), _checked(command.new_path)
        if ROOT in (old, new) or new.startswith(f"{old}/"):
            raise ValidationError(f"{old} cannot be renamed to {new}.")
        moved = [file async for file in self._at_or_within(old)]
        if not moved:
            raise _missing(old)
        await self._require_free(new)
        there = [await self._write(file, new + _path(file).removeprefix(old), _text(file)) for file in moved]
        if await self._is_late(new, there):
            for file in there:
                await self._write(file, old + _path(file).removeprefix(new), _text(file))
            raise _taken(new)
        return f"Successfully renamed {old} to {new}"

    async def clear(self) -> str:
        if ids := [file["id"] async for file in self._within(ROOT)]:
            await self._forget(ids)
        return "All memory cleared"

    # files as memories

    async def _find(self, path: str) -> dict[str, Any] | None:
        return await anext(aiter(self._list({f"{_SOURCE}.path": path})), None)

    def _within(self, path: str) -> AsyncIterator[dict[str, Any]]:
        return self._list({f"{_SOURCE}.folders": {"$contains": path}})

    async def _at_or_within(self, path: str) -> AsyncIterator[dict[str, Any]]:
        # All of that path: one that waited for a person while another was created is there beside it.
        async for file in self._list({f"{_SOURCE}.path": path}):
            yield file
        async for file in self._within(path):
            yield file

    async def _list(self, filter: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async for memory in self._access.list_own({**filter, "source": _SOURCE}):
            if _is_file(memory):
                yield memory

    async def _require_file(self, path: str) -> dict[str, Any]:
        file = await self._find(path)
        if file is not None:
            return file
        if path == ROOT or await anext(aiter(self._within(path)), None) is not None:
            raise ValidationError(f"{path} is a directory, not a file.")
        raise _missing(path)

    async def _require_free(self, path: str) -> None:
        if path == ROOT or await anext(aiter(self._at_or_within(path)), None) is not None:
            raise _taken(path)
        for folder in _folders(path):
            if await self._find(folder) is not None:
                raise Conflict(f"{folder} is a file, so there can be nothing inside of it.")

    async def _is_late(self, place: str, written: list[dict[str, Any]]) -> bool:
        """Whether another has put a file where one of these is now, at or within the place, and earlier. A rename and
        a creation may both have found it free: both look again, and whoever wrote second takes it back; of two in the
        same millisecond, the one with the larger id."""
        await asyncio.sleep(_TICK_S)  # whoever writes after this look has a later time, whatever its id
        ids = {file["id"] for file in written}
        orders = {_path(file): _order(file) for file in written}
        others = [file async for file in self._at_or_within(place) if file["id"] not in ids]
        return any(_path(file) in orders and _order(file) < orders[_path(file)] for file in others)

    async def _write(self, file: dict[str, Any], path: str, text: str) -> dict[str, Any]:
        draft = self._draft(path, text)
        written = await self._access.memory.update(
            file["id"],
            content=draft["content"],
            metadata=draft["metadata"],
            expected_version=file["version"],
            agent_id=self._access.agent_id,
        )
        require_done(written)
        return written

    async def _forget(self, ids: list[str]) -> None:
        reason = "deleted with Anthropic's memory tool"
        require_done(await self._access.memory.forget(ids, reason=reason, agent_id=self._access.agent_id))

    def _draft(self, path: str, text: str) -> dict[str, Any]:
        # A memory says something, a file may be blank: then its name is what it is found by.
        blank = not text.strip()
        kept = {"path": path, "folders": _folders(path), "blank": text if blank else None}
        metadata = {"kind": "anthropic_file", "title": path, _SOURCE: kept}
        return {"content": path if blank else text, "metadata": metadata, "source": _SOURCE, **self._access.scope}


class _MemoryFilesTool:
    """How both tools are made and closed; stands before the library's class, whose constructor takes the rest."""

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]
        self._access = MemoryAccess(memory, _error, agent_id, user_id)
        self._files = MemoryFiles(self._access)

    def close(self) -> None:
        self._access.close()


class CommonplaceMemoryTool(_MemoryFilesTool, BetaAbstractMemoryTool):
    """For `client.beta.messages.tool_runner(tools=[CommonplaceMemoryTool(memory)], …)`.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`.
        user_id: The person whose files these are; others' are not seen. Without one, those of no person.
        agent_id: Another agent than the memory's own.
        cache_control: As every tool of the library takes it.
    """

    def view(self, command: Any) -> str:
        return self._access.wait(self._files.view(command))

    def create(self, command: Any) -> str:
        return self._access.wait(self._files.create(command))

    def str_replace(self, command: Any) -> str:
        return self._access.wait(self._files.str_replace(command))

    def insert(self, command: Any) -> str:
        return self._access.wait(self._files.insert(command))

    def delete(self, command: Any) -> str:
        return self._access.wait(self._files.delete(command))

    def rename(self, command: Any) -> str:
        return self._access.wait(self._files.rename(command))

    def clear_all_memory(self) -> str:
        return self._access.wait(self._files.clear())


class CommonplaceAsyncMemoryTool(_MemoryFilesTool, BetaAsyncAbstractMemoryTool):
    """The same for the async client, over any memory."""

    async def view(self, command: Any) -> str:
        return await self._access.run(self._files.view(command))

    async def create(self, command: Any) -> str:
        return await self._access.run(self._files.create(command))

    async def str_replace(self, command: Any) -> str:
        return await self._access.run(self._files.str_replace(command))

    async def insert(self, command: Any) -> str:
        return await self._access.run(self._files.insert(command))

    async def delete(self, command: Any) -> str:
        return await self._access.run(self._files.delete(command))

    async def rename(self, command: Any) -> str:
        return await self._access.run(self._files.rename(command))

    async def clear_all_memory(self) -> str:
        return await self._access.run(self._files.clear())


def _error(refusal: Fault | PendingReview) -> ToolError:
    # Without the hint, which is for a person at a shell: the model that reads this has these six commands.
    return ToolError(refusal.summary)


def _taken(path: str) -> Conflict:
    return Conflict(f"{path} already exists.")


def _missing(path: str) -> NotFound:
    return NotFound(f"The path {path} does not exist. Please provide a valid path.")


def _checked(path: str) -> str:
    """The path in its one spelling. Nothing is resolved: whatever could lead elsewhere, in whichever encoding, is
    refused before it is looked at."""
    names = path.rstrip("/").split("/")
    if names[:2] != ["", ROOT[1:]]:
        raise ValidationError(f"Paths begin with {ROOT}, and {path!r:.200} does not.")
    if any(name in ("", ".", "..") for name in names[2:]) or not path.isprintable() or re.search(r"[\\%]", path):
        raise ValidationError(
            f"{path!r:.200} is no path under {ROOT}: names are plain text, without '.', '..', '\\', '%' and empty ones."
        )
    return "/".join(names)


def _folders(path: str) -> list[str]:
    """Those that a path is in, from the root on."""
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(2, len(names))]


def _is_file(memory: dict[str, Any]) -> bool:
    """Whether it is what `_draft` makes; anyone may write such metadata, and half of it would break every listing."""
    kept = memory["metadata"][_SOURCE]
    path, blank = kept.get("path"), kept.get("blank", "missing")
    if not isinstance(path, str) or not (blank is None or (isinstance(blank, str) and not blank.strip())):
        return False
    try:
        is_spelled = _checked(path) == path != ROOT
    except ValidationError:
        return False
    return is_spelled and kept.get("folders") == _folders(path)


def _path(file: dict[str, Any]) -> str:
    return str(file["metadata"][_SOURCE]["path"])


def _order(file: dict[str, Any]) -> tuple[int, str]:
    return file["updated_at"], file["id"]


def _text(file: dict[str, Any]) -> str:
    blank = file["metadata"][_SOURCE]["blank"]
    return str(file["content"] if blank is None else blank)


def _numbered(path: str, text: str, view_range: Any) -> str:
    total = text.count("\n") + 1
    if total > _LINES:
        raise ValidationError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    shown = _lines(text, max(first, 1) - 1, total if last == -1 else last)
    return f"Here's the content of {path} with line numbers:\n{shown}"


def _lines(text: str, start: int, end: int) -> str:
    lines = [*enumerate(text.split("\n"), 1)][max(start, 0) : max(end, 0)]
    return "\n".join(f"{number:>6}\t{line}" for number, line in lines)


def _listing(path: str, files: Iterable[dict[str, Any]]) -> str:
    """Sizes and paths, two levels deep; a folder is as large as what is in it."""
    sizes: dict[str, int] = {path: 0}
    for file in files:
        names = _path(file).removeprefix(f"{path}/").split("/")
        if any(name.startswith(".") for name in names):
            continue
        size = len(_text(file).encode("utf-8", "surrogatepass"))
        sizes[path] += size
        for depth in range(1, min(len(names), _DEPTH) + 1):
            place = "/".join([path, *names[:depth]]) + ("/" if depth < len(names) else "")
            sizes[place] = sizes.get(place, 0) + size
    head = f"Here're the files and directories up to {_DEPTH} levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *(f"{_size(sizes[place])}\t{place}" for place in sorted(sizes))])


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "K", "M"):
        if value < 1024 or unit == "M":
            break
        value /= 1024
    return f"{value:.1f}".removesuffix(".0") + unit
