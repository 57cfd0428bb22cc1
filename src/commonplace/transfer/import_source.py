"""Taking in files of other products: every item goes through the engine's own door, once."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commonplace.engine import (
    IMPORTED,
    BatchItem,
    Draft,
    Engine,
    Erasures,
    Outcome,
    Progress,
    Triple,
    draft_document,
    stated_already,
)
from commonplace.transfer.import_file import is_export
from commonplace.transfer.importers import importer, names
from commonplace.transfer.importers.source import Item, LeftOut, Source, SourceMemory, SourceStatement, label
from commonplace.transfer.report import Broken, BrokenFile, ImportRefused, ImportReport, with_file_name
from commonplace.wire.errors import Conflict, Fault, ValidationError
from commonplace.wire.record import Memory, Principal

DIALECT = "import"
COMMONPLACE = "commonplace"  # the format of our own exports
_BATCH = 128  # memories embedded and written together
_BATCH_CHARS = 500_000
_STATEMENTS = uuid.UUID("7a1c2f5e-6a53-5d0e-9f0b-8f1a5f3c2b10")
#: What else a source can say of a memory. Each is noted by itself: what the source did not change stays as it is here.
_ABOUT = ("kind", "user_id", "project", "entity_name", "importance", "source", "session_id", "speaker")
_GONE = "it was imported before, and was forgotten or erased here since"
_TURNED_DOWN = "it was imported before, and was turned down, or not decided in time"
#: Of what is not here though it was imported before, by how its review stands.
_UNDECIDED = {
    "pending": "it was imported before, and waits for a reviewer",
    "rejected": _TURNED_DOWN,
    "expired": _TURNED_DOWN,
}
_CANNOT_WAIT = (
    "it changed at the source, and a change cannot wait for approval; import it without approval, or change it here"
)
_STATEMENT_CANNOT_WAIT = (
    "a statement of the graph cannot wait for approval; import it without approval, or assert it by itself"
)


@dataclass(slots=True, frozen=True)
class Target:
    """Where memories go that do not say it themselves."""

    agent: str  # of those whose source names none
    all_to_agent: bool = False  # and of all others, too
    user: str | None = None
    approval: bool = False  # whether each waits for a reviewer


def detect(path: Path) -> str:
    """Which format a file has; says which there are where it has none of them."""
    source = Source(path)
    try:
        packed = source.members if source.is_zip or path.is_dir() else []
        if len(packed) == 1 and is_export(source.head(packed[0])):
            raise ValidationError(
                f"{path.name} holds an export of ours, which is read as a file alone: take that out, and name it",
                field="file",
            )
        for name in names():
            if importer(name).matches(source):
                return name
    except BrokenFile as stop:
        raise ValidationError(with_file_name(path.name, str(stop.broken)), field="file") from None
    if source.unreadable:
        raise ValidationError(f"{path.name}: {source.unreadable[0]}", field="file")
    known = ", ".join(map(_option, names()))
    raise ValidationError(f"{path.name} is of no known format; there are commonplace, {known}", field="format")


def refuse_other_format(path: Path, format: str) -> None:
    """Says of what format a file is that was given as one which it is not; nothing where nobody knows it."""
    source = Source(path)
    try:
        if not path.is_dir() and _is_ours(path):
            if format == COMMONPLACE:
                return
            other = COMMONPLACE
        elif format != COMMONPLACE and importer(format).matches(source):
            return
        else:
            other = _option(detect(path))
    except (BrokenFile, ValidationError):
        return
    raise ValidationError(
        f"{path.name} is not of the format {_option(format)} but of {other}: leave --format out, or give {other}",
        field="format",
    )


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return is_export(file.read(400))


def _option(name: str) -> str:
    """A format as `--format` takes it."""
    return name.replace("_", "-")


async def import_source(
    engine: Engine, who: Principal, path: Path, format: str, target: Target, *, skip_broken: bool = False,
    dry_run: bool = False, progress: Progress | None = None,
) -> ImportReport:  # fmt: skip
    """Read all of it first; then take in all, or with `skip_broken` what of it is right."""
    reader = _SourceReader(format, path, ImportReport(_option(format), dry_run, hide=engine.redactor.shown))
    found = taken = False
    total = 0
    for item in reader.items():
        total += 1
        taken = taken or not isinstance(item, LeftOut)
        found = found or taken or not (isinstance(item, LeftOut) and item.is_incidental)
    if reader.report.broken_count or not taken:
        refuse_other_format(path, format)
    if not found and not reader.report.broken_count:
        raise ValidationError(
            f"{path.name} holds nothing that could be imported: export it again where it is from, or name another file",
            field="file",
        )
    if reader.report.broken_count and not skip_broken:
        raise ImportRefused(path.name, reader.report)
    reader = _SourceReader(format, path, ImportReport(_option(format), dry_run, hide=engine.redactor.shown))
    writer = _Writer(engine, who, format, target, reader.report, dry_run)
    for number, item in enumerate(reader.items(), start=1):
        match item:
            case SourceMemory():
                await writer.add(item)
            case SourceStatement():
                await writer.state(item)
            case LeftOut():
                reader.report.left_out.add(item.reason, item.what)
        if progress is not None:
            # Not of bytes: a document is read at once, and most of the time goes by afterwards.
            progress(number - writer.waiting, total)
    await writer.flush()
    if progress is not None:
        progress(total, total)
    return reader.report


class _SourceReader:
    """The items of a file; what is broken is noted."""

    def __init__(self, format: str, path: Path, report: ImportReport) -> None:
        self.source, self.report = Source(path), report
        self._read = importer(format).read

    def items(self) -> Iterator[Item]:
        try:
            for item in self._read(self.source):
                if isinstance(item, Broken):
                    self.report.add_broken(item)
                else:
                    yield item
        except BrokenFile as stop:
            self.report.add_broken(stop.broken)
        for broken in self.source.unreadable:
            self.report.add_broken(broken)
        yield from self.source.fields_left_out()


class _Writer:
    """Collects memories until a batch is worth embedding, and writes what is not here yet."""

    def __init__(
        self, engine: Engine, who: Principal, format: str, target: Target, report: ImportReport, dry_run: bool
    ) -> None:
        self._engine, self._who = engine, replace(who, dialect=who.dialect or DIALECT)
        self._format, self._target = format, target
        self._report, self._dry_run = report, dry_run
        self._batch: list[tuple[SourceMemory, Draft]] = []
        self._chars = 0
        self._seen: set[bytes] = set()
        self._erased: Erasures | None = None  # asked for with the first statement
        self._previewed = _PreviewedStatements()

    async def add(self, item: SourceMemory) -> None:
        draft = self._draft(item)
        if (why := _unkeepable([getattr(draft, name) for name in Draft.__slots__ if name != "embedding"])) is not None:
            self._report.left_out.add(why, item.id)
            return
        digest = hashlib.sha256(f"{draft.agent_id}\0{item.id}".encode("utf-8", "surrogatepass")).digest()
        if digest in self._seen:
            self._report.left_out.add("the same id is in the file twice", item.id)
            return
        self._seen.add(digest)
        self._batch.append((item, draft))
        self._chars += len(draft.content)
        if len(self._batch) >= _BATCH or self._chars >= _BATCH_CHARS:
            await self.flush()

    @property
    def waiting(self) -> int:
        """How many were added and not written."""
        return len(self._batch)

    async def flush(self) -> None:
        batch, self._batch, self._chars = self._batch, [], 0
        by_agent: dict[str, list[tuple[SourceMemory, Draft]]] = {}
        for each in batch:
            by_agent.setdefault(each[1].agent_id, []).append(each)
        for agent, items in by_agent.items():
            try:
                new = await self._compare_known(agent, items)
            except Fault as fault:
                for item, _ in items:
                    self._report.left_out.add(fault.message, item.id)
                continue
            # What was imported before was erased, or forgotten, or is written by another process since this one looked.
            for item, draft in await self._compare_known(agent, await self._remember(new)):
                self._report.left_out.add(_UNDECIDED.get(await self._review_of(item, draft) or "", _GONE), item.id)

    async def _compare_known(
        self, agent: str, items: list[tuple[SourceMemory, Draft]]
    ) -> list[tuple[SourceMemory, Draft]]:
        """Those that are not here are given back."""
        known = await self._engine.imports.known(self._who, agent, [item.id for item, _ in items])
        for item, draft in items:
            if item.id in known:
                await self._compare(item, draft, known[item.id])
        return [each for each in items if each[0].id not in known]

    async def _remember(self, items: list[tuple[SourceMemory, Draft]]) -> list[tuple[SourceMemory, Draft]]:
        """Those that were imported before are given back."""
        if not items:
            return []
        wanted = [
            BatchItem(draft, _key(self._format, draft, item), draft_document(draft) if self._target.approval else None)
            for item, draft in items
        ]
        if self._dry_run:
            outcomes = [await self._engine.imports.preview_remember(self._who, each) for each in wanted]
        else:
            outcomes = await self._engine.remember_many(self._who, wanted)
        repeated = []
        for (item, draft), done in zip(items, outcomes, strict=True):
            if isinstance(done, Conflict) and done.details.get("field") == "idempotency_key":
                repeated.append((item, draft))
            elif isinstance(done, Fault):
                self._report.left_out.add(done.message, item.id)
            elif done.review_id is not None:
                # Of what was staged before, the receipt is given again whatever was decided since.
                if not done.review_id or await self._review_of(item, draft) == "pending":
                    self._report.staged += 1
                else:
                    repeated.append((item, draft))
            elif done.memory is None:
                repeated.append((item, draft))
            else:
                self._report.written["memory"] += 1
                self._report.agents[draft.agent_id] += 1
                self._report.redacted.update(done.redacted)
        return repeated

    async def _review_of(self, item: SourceMemory, draft: Draft) -> str | None:
        return await self._engine.imports.review_status(self._who, draft, _key(self._format, draft, item))

    async def _compare(self, item: SourceMemory, draft: Draft, here: Memory) -> None:
        """What is here under that id: the same, changed at the source since, changed here since, or not imported."""
        note = here.provenance.get(IMPORTED)
        if not isinstance(note, dict) or note.get("format") != self._format:
            self._report.left_out.add("its id names a memory here that did not come from there", item.id)
        elif _is_unchanged(note, draft.provenance[IMPORTED], here) and not _changed_about(note, item.draft, here):
            self._report.known["memory"] += 1
        elif self._target.approval:
            self._report.left_out.add(_CANNOT_WAIT, item.id)
        elif here.version != note.get("version", 1):
            self._report.left_out.add("it changed at the source and here; what is here stays", item.id)
        else:
            await self._update(item, draft, here, _changed_about(note, item.draft, here))

    async def _update(self, item: SourceMemory, draft: Draft, here: Memory, about: list[str]) -> None:
        note = {**draft.provenance[IMPORTED], "version": here.version + 1}
        carried = ("content", "title", "tags", "metadata", "event_time", "expires_at")
        fields = {name: getattr(draft, name) for name in (*carried, *about)}

        def change(memory: Memory) -> Memory:
            return replace(memory, **fields, provenance={**memory.provenance, IMPORTED: note})

        try:
            if self._dry_run:
                await self._engine.imports.preview_update(self._who, here, change)
            else:
                await self._engine.update_with(self._who, here.agent_id, here.id, change, expected_version=here.version)
            self._report.updated["memory"] += 1
        except Fault as fault:
            self._report.left_out.add(fault.message, item.id)

    async def state(self, item: SourceStatement) -> None:
        agent = self._agent(item.agent)
        said = (agent, item.subject, item.predicate, item.object)
        if (why := _unkeepable([*said, item.provenance, item.confidence])) is not None:
            self._report.left_out.add(why, label(ascii(" ".join(said[1:]))))
            return
        # Without a time it has held since it is known here, and a second import finds it by its id.
        id = uuid.uuid5(_STATEMENTS, "\0".join((self._who.tenant, self._format, *said, str(item.valid_from))))
        start = self._engine.clock() if item.valid_from is None else item.valid_from
        triple = Triple(
            str(id), *said, start, item.valid_to, item.confidence, item.provenance, asserted_by=self._who.name
        )
        if self._erased is None:
            self._erased = await self._engine.imports.erasures(self._who)
        done = await self._engine.imports.statement(
            self._who, triple, self._erased, dry_run=self._dry_run or self._target.approval, same_id_is_known=True
        )
        if (self._dry_run or self._target.approval) and done.result == "written":
            done = self._previewed.add(triple)
        if self._target.approval and done.result == "written":
            done = Outcome("left_out", _STATEMENT_CANNOT_WAIT)
        if done.result == "left_out":
            self._report.left_out.add(done.reason, label(f"{item.subject} {item.predicate} {item.object}"))
        else:
            (self._report.written if done.result == "written" else self._report.known)["statement"] += 1

    def _agent(self, named: str) -> str:
        return self._target.agent if self._target.all_to_agent or not named else named

    def _draft(self, item: SourceMemory) -> Draft:
        draft = item.draft
        said = "\0".join((draft.content, draft.title or "", *draft.tags))
        note = {"format": self._format, "id": item.id, **item.more}
        note["digest"] = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        fields = json.dumps([draft.metadata, draft.event_time], sort_keys=True)
        note["fields"] = hashlib.sha256(fields.encode("ascii")).hexdigest()
        note["expires_at"] = draft.expires_at
        note["about"] = _about(draft)
        if item.created_at is not None:
            note["created_at"] = item.created_at
        return replace(
            draft,
            agent_id=self._agent(draft.agent_id),
            user_id=draft.user_id or self._target.user,
            aliases=[item.id],
            provenance={**draft.provenance, "dialect": DIALECT, IMPORTED: note},
        )


class _PreviewedStatements:
    """Those that would be written, by a run that writes them, by what each speaks of: a file has thousands."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._lines: dict[tuple[str, str, str], list[Triple]] = {}

    def add(self, triple: Triple) -> Outcome:
        """What the run would say of it, which will have written the earlier ones of the file by then."""
        line = self._lines.setdefault((triple.agent_id, triple.subject, triple.predicate), [])
        if triple.id in self._ids:
            return Outcome("known")
        if any(other.overlaps(triple) for other in line):
            return Outcome("left_out", stated_already(triple))
        self._ids.add(triple.id)
        line.append(triple)
        return Outcome("written")


def _is_unchanged(noted: dict[str, Any], now: dict[str, Any], here: Memory) -> bool:
    """Words, fields and end alike. Earlier versions noted only the words, then those and the fields: what they did not
    note is taken for the same, or from what is here where nobody has changed that since."""
    as_imported = here.version == noted.get("version", 1)
    ends = noted.get("expires_at", here.expires_at if as_imported else now["expires_at"])
    fields = noted.get("fields", now["fields"])
    return bool((noted.get("digest"), fields, ends) == (now["digest"], now["fields"], now["expires_at"]))


def _about(draft: Draft) -> dict[str, str]:
    """A short hash of each field that the source gives; of a user whom the caller named it is not the source's."""
    given = {name: getattr(draft, name) for name in _ABOUT}
    return {
        name: hashlib.sha256(json.dumps(value).encode("ascii")).hexdigest()[:16]
        for name, value in given.items()
        if value is not None
    }


def _changed_about(noted: dict[str, Any], draft: Draft, here: Memory) -> list[str]:
    """The fields that the source says otherwise by now."""
    now, then = _about(draft), noted.get("about")
    if isinstance(then, dict):
        return [name for name in _ABOUT if now.get(name) != then.get(name)]
    # Earlier versions noted nothing of them: then what is here is what was said, where nobody has changed it since. The
    # caller may have named the user, and what lost a secret is not as it was said.
    if here.version != noted.get("version", 1):
        return []
    said = {name: getattr(draft, name) for name in _ABOUT}
    if draft.user_id is None:
        del said["user_id"]
    return [
        name
        for name, value in said.items()
        if value != getattr(here, name) and "REDACTED:" not in str(getattr(here, name))
    ]


def _unkeepable(values: Any) -> str | None:
    """Why these cannot be kept: JSON can spell what nothing can keep, and one such thing must not take others along."""
    try:
        json.dumps(values, ensure_ascii=False, default=str, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair, which is not text"
    except ValueError:
        return "it holds a number that is beyond all numbers"
    return None


def _key(format: str, draft: Draft, item: SourceMemory) -> str:
    said = "\0".join((format, draft.agent_id, item.id))
    return f"import-{uuid.uuid5(_STATEMENTS, said)}"
