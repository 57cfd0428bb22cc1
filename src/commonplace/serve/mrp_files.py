"""MRP through a folder: whoever writes `request-{uuid}.json` finds `response-{uuid}.json` beside it, whole.

Answers are written under another name, synced and renamed, so that a process killed between any two steps leaves
either no answer, and the request is answered when it starts again, or all of it. A request is answered once: its
answer's presence is what says so. Requests are only read, never moved or removed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from commonplace.dialects.mrp.messages import Document, message, new_id
from commonplace.wire.durable import sync_file
from commonplace.wire.errors import (
    Fault,
    Forbidden,
    PayloadTooLarge,
    RateLimited,
    Unauthenticated,
    Unavailable,
    ValidationError,
    internal_error,
)
from commonplace.wire.record import Clock, system_clock
from commonplace.wire.strict_json import InvalidJson, NestedTooDeeply, decode
from commonplace.wire.times import iso

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("commonplace.serve")

MAX_BYTES = 1024 * 1024
#: How many looks a file that is not JSON must stay the same before it counts as broken, not as still being written.
LOOKS = 10
ANSWERS = {"request": "response", "verify": "verify-result"}
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ASKS = re.compile(rf"({'|'.join(ANSWERS)})-({_UUID})\.json\Z")
_ALMOST = re.compile(rf"({'|'.join(ANSWERS)})-.*\.json\Z", re.IGNORECASE | re.DOTALL)
_HALF = re.compile(rf"\.({'|'.join(ANSWERS.values())})-({_UUID})\.json\.tmp\Z")
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_IDS = {"memory_verify": "verify_id"}  # the others are told apart by request_id
_SKIPPED_CHECKS: Document = {
    "evidence": {"status": "skip", "accessible_count": 0, "total_count": 0},
    "vouches": {"status": "skip", "vouch_count": 0, "trusted_vouchers": []},
    "freshness": {"status": "skip", "age_days": 0},
    "consistency": {"status": "skip", "conflicts": []},
}

#: How a request becomes its answer, and what is told in words to whoever runs the process.
Answer = Callable[[Document], Awaitable[Document]]
Report = Callable[[str], None]


@dataclass(slots=True, frozen=True)
class AnswerSummary:
    """One answer that now lies in the folder."""

    request: str
    response: str
    status: str
    results: int
    message: str


class Pause(Protocol):
    """What happens between two looks."""

    @property
    def stopped(self) -> bool: ...

    async def wait(self) -> None: ...


@dataclass(slots=True, frozen=True)
class _RequestFile:
    name: str
    kind: str
    id: str
    file: tuple[int, int, int]  # size, time of change and inode: with others it is another request

    @property
    def answer_name(self) -> str:
        return f"{ANSWERS[self.kind]}-{self.id}.json"


class RequestFolder:
    """The requests of one folder. Only one process at a time answers them."""

    def __init__(
        self, path: Path, answer: Answer, *, responder: str, report: Report, clock: Clock = system_clock
    ) -> None:
        self.path = path
        self._answer = answer
        self._responder = responder
        self._report = report
        self._clock = clock
        self._unread: dict[
            str, tuple[_RequestFile, int]
        ] = {}  # not JSON yet, and for how many looks it has not changed
        self._unsent: dict[str, tuple[_RequestFile, Document]] = {}  # answered, but the answer could not be written yet
        self._reported: dict[str, str] = {}
        self._postponed: set[str] = set()  # asked too often, so they are due later
        self._lock = -1

    @property
    def settled(self) -> bool:
        """Whether another look would find nothing that this one has not answered or given up."""
        return not self._unread and not self._postponed

    def __enter__(self) -> RequestFolder:
        if self.path.exists() and not self.path.is_dir():
            raise ValidationError(f"{self.path} is not a folder; give the folder that requests come to", field="dir")
        if not self.path.is_dir():
            raise ValidationError(f"there is no folder {self.path}; make it first: mkdir {self.path}", field="dir")
        if fcntl is not None:
            try:
                self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                raise Unavailable(f"cannot use {self.path}: {error.strerror}") from None
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.__exit__()
                raise Unavailable(f"another process already answers the requests in {self.path}") from None
            except OSError:
                log.debug("no locks in %s", self.path)  # some file systems have none
        self._remove_unfinished_answers()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _remove_unfinished_answers(self) -> None:
        """Of a process that was killed."""
        with suppress(OSError):
            for name in os.listdir(self.path):
                if _HALF.match(name):
                    with suppress(OSError):
                        os.unlink(self.path / name)

    async def look(self) -> AsyncIterator[AnswerSummary]:
        """Answers every request that has no answer yet, oldest first."""
        self._postponed.clear()
        for ask in self._open_requests():
            document = await self._answer_to(ask)
            if document is not None and self._publish(ask, document):
                yield _summary(ask, document)

    def _open_requests(self) -> list[_RequestFile]:
        found: list[_RequestFile] = []
        try:
            with os.scandir(self.path) as entries:
                present = {entry.name: entry for entry in entries}
        except OSError as error:
            self._report_once(".", f"cannot read {self.path}: {error.strerror}")
            return []
        self._reported.pop(".", None)
        for name, entry in present.items():
            matched = _ASKS.match(name)
            if matched is None:
                if _ALMOST.match(name):
                    self._report_once(
                        name, f"{name}: left alone, because its name is not request-UUID.json in lower case"
                    )
                continue
            if f"{ANSWERS[matched[1]]}-{matched[2]}.json" in present:
                continue
            with suppress(OSError):  # gone again
                known = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(known.st_mode):
                    found.append(
                        _RequestFile(name, matched[1], matched[2], (known.st_size, known.st_mtime_ns, known.st_ino))
                    )
                else:
                    self._report_once(name, f"{name}: left alone, because it is not a regular file")
        for notes in (self._unread, self._unsent, self._reported):
            for name in [name for name in notes if name != "." and name not in present]:
                notes.pop(name)
        return sorted(found, key=lambda ask: (ask.file[1], ask.name))

    async def _answer_to(self, ask: _RequestFile) -> Document | None:
        """The answer, also when it is a refusal; None when the request must wait."""
        kept = self._unsent.get(ask.name)
        if kept is not None and kept[0] == ask:
            return kept[1]
        try:
            document = decode(self._content(ask))
        except OSError as error:
            self._report_once(ask.name, f"{ask.name}: cannot be read: {error.strerror}")
            return None
        except NestedTooDeeply as wrong:
            return self._refusal(ask, "error", f"the file is {wrong}")
        except InvalidJson as wrong:  # broken, or not written to its end yet
            place = f" at line {wrong.line}" if wrong.line else ""
            return self._once_settled(ask, f"the file is {wrong}{place}")
        except PayloadTooLarge as wrong:
            return self._refusal(ask, "error", wrong.message)
        self._unread.pop(ask.name, None)
        if (problem := _mismatch(ask, document)) is not None:
            return self._refusal(ask, "error", problem)
        try:
            return await self._answer(document)
        except RateLimited:
            self._postponed.add(ask.name)
            self._report_once(ask.name, f"{ask.name}: its requester has asked too often; it is tried again")
            return None
        except Fault as fault:
            return self._refusal(
                ask, "declined" if isinstance(fault, (Unauthenticated, Forbidden)) else "error", fault.message
            )
        except Exception as error:
            # Only its kind: the text of an exception may hold what the request held.
            self._report_once(ask.name, f"{ask.name}: unexpected {type(error).__name__}; this is a bug in Commonplace")
            log.debug("answering %s failed", ask.name, exc_info=error)
            return self._refusal(ask, "error", internal_error().message)

    def _content(self, ask: _RequestFile) -> bytes:
        file = os.open(self.path / ask.name, _READ)  # a link that took the file's place since is not followed
        with os.fdopen(file, "rb") as stream:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(0, "it is not a regular file")
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise PayloadTooLarge(f"a request may have at most {MAX_BYTES:,} bytes")
        return content

    def _once_settled(self, ask: _RequestFile, problem: str) -> Document | None:
        """A refusal of what has not changed for so long that nobody is still writing it."""
        before, looks = self._unread.get(ask.name, (ask, 0))
        looks = looks + 1 if before == ask else 1
        self._unread[ask.name] = (ask, looks)
        if looks < LOOKS:
            return None
        del self._unread[ask.name]
        return self._refusal(ask, "error", problem)

    def _refusal(self, ask: _RequestFile, code: str, problem: str) -> Document:
        now = iso(self._clock())
        if ask.kind == "verify":
            results = {"signature": {"status": "fail", "detail": problem}, **_SKIPPED_CHECKS}
            aggregate = {"trust_score": 0, "recommendation": "reject"}
            header = {"verify_id": ask.id, "timestamp": now}
            return message("verify_result", header, results=results, aggregate=aggregate)
        header = {"request_id": ask.id, "response_id": new_id(), "timestamp": now}
        responder, status = {"agent_id": self._responder}, {"code": code, "message": problem}
        return message("memory_response", header, responder=responder, status=status, results=[])

    def _publish(self, ask: _RequestFile, document: Document) -> bool:
        """Whether the answer is now there for everyone, and stays there through a power cut."""
        target, half = self.path / ask.answer_name, self.path / f".{ask.answer_name}.tmp"
        data = json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
        try:
            with suppress(FileNotFoundError):
                os.unlink(half)
            file = os.open(half, _MAKE, 0o666)
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                sync_file(file)
            os.rename(half, target)
        except OSError as error:
            with suppress(OSError):
                os.unlink(half)
            self._unsent[ask.name] = (ask, document)
            self._report_once(
                ask.name, f"{ask.name}: the answer cannot be written: {error.strerror}; it is tried again"
            )
            return False
        self._unsent.pop(ask.name, None)
        self._reported.pop(ask.name, None)
        if self._lock >= 0:
            with suppress(OSError):  # some file systems cannot; the answer is there all the same
                sync_file(self._lock)
        return True

    def _report_once(self, name: str, problem: str) -> None:
        """Each problem once, however often it is met."""
        if self._reported.get(name) != problem:
            self._reported[name] = problem
            self._report(problem)


async def watch(
    folder: RequestFolder, pause: Pause, on_answer: Callable[[AnswerSummary], None], *, once: bool = False
) -> None:
    """Answers requests until told to stop, or once everything that is there is answered or given up."""
    while not pause.stopped:
        async for answer in folder.look():
            on_answer(answer)
            if pause.stopped:
                return
        if once and folder.settled:
            return
        await pause.wait()


def _mismatch(ask: _RequestFile, document: Any) -> str | None:
    """What keeps a document from being the one that the file's name says it is."""
    if not isinstance(document, dict):
        return "the file holds no JSON object"
    name = _IDS.get(str(document.get("type")), "request_id")
    header = document.get("header")
    given = header.get(name) if isinstance(header, dict) else None
    if given != ask.id:
        return f"header.{name} must be {ask.id}, as in the file's name"
    return None


def _summary(ask: _RequestFile, document: Document) -> AnswerSummary:
    if document.get("type") == "verify_result":
        recommendation = document["aggregate"]["recommendation"]
        return AnswerSummary(ask.name, ask.answer_name, recommendation, 0, document["results"]["signature"]["detail"])
    status, results = document["status"], document["results"]
    return AnswerSummary(ask.name, ask.answer_name, status["code"], len(results), status["message"])
