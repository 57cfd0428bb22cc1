"""What every operation works with: the primary store, the embedder, the clock, and whose memory a caller may use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from commonplace.config import AuditConfig, GovernanceConfig, LifecycleConfig, MrpConfig, RedactionConfig, RoutingConfig
from commonplace.embedders.base import Embedder, Encoding, Vectors
from commonplace.embedders.cache import CachedEmbedder
from commonplace.embedders.registry import open_recorded
from commonplace.embedders.text_queue import Lane
from commonplace.engine.checks import require_role
from commonplace.engine.governance.policies import Policies
from commonplace.engine.memory.passages import indexed_text, passages
from commonplace.engine.outbox.outbox import Outbox
from commonplace.engine.outbox.replicas import Attachment, Replicas
from commonplace.engine.recall_priority import RecallPriority
from commonplace.engine.redaction import Redactor, Secrets
from commonplace.engine.second_leg import SecondLeg
from commonplace.engine.transfer.migration_marks import refuse_while_filled, require_whole
from commonplace.engine.types import SYSTEM as SYSTEM
from commonplace.judges.base import Judge
from commonplace.stores.base import EmbedderInfo, Entry, Primary, StaleGeneration, Transaction
from commonplace.stores.optional import LateVectors
from commonplace.stores.text import terms
from commonplace.stores.token_vectors import Codes, QuestionTokens, quantise
from commonplace.wire.errors import Fault, Forbidden, RateLimited, Unavailable, ValidationError
from commonplace.wire.record import Clock, Memory, Principal, Role, system_clock

T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger("commonplace.engine")

#: A stale attempt means that another's write was done, so that trying again is progress.
_RETRIES = 128
#: What is written waits for its vectors up to this length, and this long; then it is kept without, and they follow.
EMBEDDED_AT_ONCE_CHARS = 64_000
_EMBEDDING_SECONDS = 5.0
#: How long the vectors of a group that goes to another store are waited for: its lease must not run out meanwhile.
_COPY_SECONDS = 30.0
_LONG_CHARS = 1_000

#: Kinds of records that more than one room of the engine reads.
REVIEW, IDEMPOTENCY, BACKUP = "review", "idempotency", "backup"


@dataclass(slots=True)
class Settings:
    """What an operator may change about the engine."""

    recalls_at_once: bool = False  # write recall audit before answering, as servers that require tokens do
    review_url: str = ""  # where reviews are looked at, "" when nothing serves them
    recalls_per_minute: int = 0  # of each agent; 0 is without limit
    embeds_behind: bool = False  # keep what is long before its vectors are made, as processes that live on can
    store: str = ""  # what tells the primary store from others that use the same folder; "" where nothing does
    folder: Path | None = None  # where this installation keeps files of its own, such as its keys
    redaction: RedactionConfig = field(default_factory=RedactionConfig)
    mrp: MrpConfig = field(default_factory=MrpConfig)
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    governance: GovernanceConfig = field(default_factory=GovernanceConfig)
    governance_client: Any = None  # a GovernanceClient that is asked about everything that is staged
    policy: tuple[dict[str, Any], ...] = ()  # the operator's rules, which hold for every tenant
    routing: RoutingConfig = field(default_factory=RoutingConfig)
    host_names: tuple[str, ...] = ()  # that lead to its server, besides its own


class Core:
    def __init__(
        self,
        primary: Primary,
        clock: Clock = system_clock,
        settings: Settings | None = None,
        replicas: Sequence[Attachment] = (),
    ) -> None:
        self.primary = primary
        self.clock = clock
        self.settings = settings or Settings()
        routing = self.settings.routing
        self.outbox = Outbox(self, Replicas(replicas, clock), writes=routing.write == "fan_out")
        self.redactor = Redactor(self.settings.redaction, self.settings.folder)
        self.policies = Policies(
            primary, self.settings.policy, lambda: self.settings.governance.auto_allow_after, self.transact
        )
        self.embedding: CachedEmbedder | None = None
        self.judge: Judge | None = None
        self.embedder_info: EmbedderInfo | None = None
        self.second = SecondLeg(primary)
        self._chosen: Embedder | None = None  # the one last asked for, whether or not it made the store's vectors
        self._reading = asyncio.Lock()
        self.left_behind = 0  # entries made without the vectors they should have
        self.fill_vectors: Callable[[], None] = lambda: None  # told when such entries are in the store
        self.recall_priority = RecallPriority()
        self.writing = 0  # units of work handed to the store and not answered yet
        self._used_tenants = set[str]()  # in which something was done, so that no migration takes their place any more
        self.note: str | None = "no embedder is configured: recall is by keywords only"

    async def use_embedder(self, embedder: Embedder | None) -> None:
        """Adopt it if the store has none yet; otherwise it must be the one that made the store's vectors."""
        if embedder is None:
            return
        info = await self.primary.embedder()
        self._chosen = embedder
        if info is None:
            try:
                dimension = await asyncio.to_thread(lambda: embedder.dimension)
            except Unavailable as fault:  # nobody can say yet what its vectors are like, and nobody is refused for it
                self.note = f"{fault.message}; recall is by keywords only until this is started again while it answers"
                return
            info = await self.primary.adopt_embedder(embedder.name, dimension)
        await self._use(embedder, info)

    async def _use(self, embedder: Embedder, info: EmbedderInfo) -> None:
        # The embedder and what is known of it change together: whoever reads both finds a pair.
        old, self.embedder_info = self.embedding, info
        if info.name == embedder.name and (expect := getattr(embedder, "expect_dimension", None)):
            expect(info.dimension)
        if info.name == embedder.name and info.dimension == embedder.dimension:
            if old is None or old.embedder is not embedder:
                self.embedding = CachedEmbedder(embedder)
            self.note = None
        else:
            self.embedding = None
            made_by = f"{info.name} with {info.dimension} dimensions" if info.name == embedder.name else info.name
            self.note = (
                f"this store's vectors were made by {made_by}, which cannot be used here: recall is by keywords "
                f"only until `commonplace reindex` has made them anew with {embedder.name}"
            )
        if old is not None and old is not self.embedding:
            await asyncio.to_thread(old.close)  # it finishes what others have asked of it

    # authority

    def require(self, who: Principal, agent_id: str, role: Role) -> None:
        """What every operation on an agent's memory begins with. Names are looked at before rights: no refusal, audit
        entry or log line that follows may repeat a secret."""
        self.check_names(agent_id=agent_id, principal=who.name)
        require_role(who, role)
        if not who.may_use(agent_id):
            raise Forbidden(f"{who.name} may not use agent {agent_id!r}")

    async def agent_names(self, tenant: str) -> list[str]:
        """Every agent with memories; not those whose names hold a secret, kept before it was looked for."""
        return [name for name in await self.primary.agent_names(tenant) if self.redactor.is_name(name)]

    async def usable_agents(self, who: Principal) -> list[str]:
        """Of those, the ones the caller may use."""
        return [name for name in await self.agent_names(who.tenant) if who.may_use(name)]

    # secrets

    def check_names(self, **names: str | Iterable[str] | None) -> None:
        """Refuses what holds a secret among the names of an operation, by their fields; None is no name."""
        for field_name, given in names.items():
            for name in () if given is None else (given,) if isinstance(given, str) else given:
                self.redactor.check_name(name, field_name)

    def redact_text(self, text: str, field: str = "text", extra: Secrets | None = None) -> str:
        """A text that is about to be kept, without secrets; refused instead where the operator has chosen that.
        `extra` are those a caller knows of, such as a run's."""
        return self.redactor.redact_text(text, field, extra)

    def redact_document(self, document: Any, field: str, extra: Secrets | None = None) -> Any:
        """As `redact_text`, for every string in a JSON document."""
        return self.redactor.redact_document(document, field, extra)

    async def redact_async(self, document: Any, field: str, extra: Secrets | None = None) -> Any:
        """As `redact_document`, beside the event loop: in megabytes it takes seconds."""
        return await asyncio.to_thread(self.redact_document, document, field, extra)

    # derived data

    async def encode_with_info(
        self, texts: Sequence[str], tenant: str, lane: Lane = Lane.WRITE, *, bounded: bool = False
    ) -> tuple[list[Encoding] | None, EmbedderInfo | None]:
        """What the embedder makes of them, and which one it was: another may take its place meanwhile. Where the queue
        is `bounded`, RateLimited when it is full."""
        if bounded and self.embedding is not None:
            self.embedding.check_room(tenant, lane)
        while (embedding := self.embedding) is not None:
            info = self.embedder_info
            try:
                encoded = await embedding.encode_async(texts, tenant=tenant, lane=lane)
            except Unavailable as fault:
                if embedding is not self.embedding:  # replaced, and closed before it had answered
                    continue
                # A memory is never refused because a model is missing: it is found by its words until `reindex`.
                self.note = f"{fault.message}; recall is by keywords only until this is started again while it answers"
                log.warning("%s", self.note)
                return None, info
            if embedding is self.embedding:
                self.note = None
            return encoded, info
        return None, self.embedder_info

    async def make_entries(self, memories: Sequence[Memory], given: Sequence[list[float] | None] = ()) -> list[Entry]:
        """Memories with their vectors and terms, made outside any lock."""
        while True:
            embedding = self.embedding
            parts, words = await self._read(memories, reads_speakers(embedding))
            wanted = [text for i, texts in enumerate(parts) if not (given and given[i]) for text in texts]
            tenant = memories[0].tenant
            encoded, info = await self._encode_written(wanted, tenant) if wanted else (None, self.embedder_info)
            if reads_speakers(embedding) == reads_speakers(self.embedding):
                break  # otherwise another embedder took its place, which reads something else of them
        generation = info.generation if info else 0
        second = await self._second_vectors(memories)
        second_generation = self.second.info.generation if self.second.info else 0
        entries, start = [], 0
        for i, (memory, texts) in enumerate(zip(memories, parts, strict=True)):
            vectors: Vectors | None = None
            tokens: list[Codes] | None = None
            supplied = given[i] if given else None
            if supplied:
                vectors = self.given_vector(supplied)
            elif encoded is not None:
                vectors, tokens = memory_vectors(encoded[start : start + len(texts)])
                start += len(texts)
            entry = Entry(memory, vectors, words[i], generation, tokens)
            if second is not None:
                entry.second, entry.second_generation = second[i], second_generation
            entries.append(entry)
        return entries

    async def make_copies(self, memories: Sequence[Memory]) -> list[Entry]:
        """As `make_entries`, for another store. No author waits for it, and no vectors follow there by themselves:
        what is long, or too much together, gets them here."""
        entries = await self.make_entries(memories)
        with suppress(TimeoutError):
            async with asyncio.timeout(_COPY_SECONDS):
                for entry in entries:
                    if entry.vectors is None and not await self._add_vectors(entry):
                        break
        return entries

    async def _add_vectors(self, entry: Entry) -> bool:
        """Whether there is an embedder that answers."""
        texts = passages(entry.memory, speakers=reads_speakers(self.embedding))
        try:
            encoded, info = await self.encode_with_info(texts, entry.memory.tenant, Lane.BACKGROUND)
        except ValidationError as fault:  # this text cannot be embedded; the others can
            log.warning("memory %s is copied without vectors: %s", entry.memory.id, fault.message)
            return True
        if encoded is None or info is None:
            return False
        entry.vectors, entry.tokens = memory_vectors(encoded)
        entry.generation = info.generation
        return True

    async def _second_vectors(self, memories: Sequence[Memory]) -> list[Vectors] | None:
        """Of each memory; None where there are none, or they follow later."""
        if self.second.embedding is None:
            return None
        vectors, behind = None, self.settings.embeds_behind
        parts, tenant = [passages(memory) for memory in memories], memories[0].tenant
        texts = [text for own in parts for text in own]
        if not behind or sum(map(len, texts)) <= EMBEDDED_AT_ONCE_CHARS:
            with suppress(TimeoutError):
                async with asyncio.timeout(_EMBEDDING_SECONDS if behind else None):
                    vectors = await self.second.embed(texts, tenant)
        if vectors is None:
            self.left_behind += behind
            return None
        return np.split(vectors, np.cumsum([len(own) for own in parts])[:-1])

    async def _read(self, memories: Sequence[Memory], speakers: bool) -> tuple[list[list[str]], list[bytes]]:
        """What is embedded of each, and its terms. Of what is long one batch at a time: whoever does something else
        waits at each of its steps for one text, not for one of every batch."""
        long = any(len(memory.content) > _LONG_CHARS for memory in memories)
        parts, words = [], []
        async with self._reading if long else nullcontext():
            for memory in memories:
                found = await asyncio.to_thread(_derived, memory, speakers) if long else _derived(memory, speakers)
                parts.append(found[0])
                words.append(found[1])
        return parts, words

    async def _encode_written(
        self, texts: Sequence[str], tenant: str
    ) -> tuple[list[Encoding] | None, EmbedderInfo | None]:
        """Nothing where making it would keep the author, or others, waiting: vectors are filled in later."""
        if not self.settings.embeds_behind or self.embedding is None or not isinstance(self.primary, LateVectors):
            return await self.encode_with_info(texts, tenant)
        try:
            if sum(map(len, texts)) <= EMBEDDED_AT_ONCE_CHARS:
                async with asyncio.timeout(_EMBEDDING_SECONDS):
                    return await self.encode_with_info(texts, tenant, bounded=True)
        except (TimeoutError, RateLimited):
            pass
        self.left_behind += 1
        return None, self.embedder_info

    def given_vector(self, embedding: list[float]) -> Vectors:
        info = self.embedder_info
        if info is None:
            raise ValidationError(
                "embedding was given, but this store has no embedder to compare it with", field="embedding"
            )
        vector = np.asarray(embedding, dtype=np.float64)  # squares of large float32 values would overflow
        length = float(np.linalg.norm(vector))
        if vector.shape != (info.dimension,) or not length > 0:
            raise ValidationError(
                f"embedding must be {info.dimension} numbers, not all zero (the store's embedder is {info.name})",
                field="embedding",
            )
        return (vector / length).astype(np.float32)[None, :]

    async def delete_migration_backups(self, who: Principal) -> str | None:
        """Something was erased: remove the copies the store made of itself. Why that failed, which undoes nothing."""
        try:
            await self.primary.delete_migration_backups()
        except (Fault, OSError) as error:
            why = error.summary if isinstance(error, Fault) else str(error)
            log.warning("a copy made before a migration could not be removed: %s", why)
            said = "a copy that the store made of itself before a migration could not be removed"
            return f"{said}: {why}" if who.is_operator else said  # it names the file
        return None

    async def backups(self, who: Principal) -> tuple[list[str], int]:
        """The backups that may still hold what was erased, and how many."""
        paths = [record.value["path"] for record in await self.primary.records(SYSTEM, BACKUP)]
        # Where they lie is the operator's business; that they still hold it is everybody's.
        return (paths if who.is_operator else []), len(paths)

    # transactions

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        self.writing += 1
        try:
            if tenant not in self._used_tenants:
                return await self._transact_unused(tenant, work)
            return await self._transact(tenant, work)
        finally:
            self.writing -= 1

    async def _transact_unused(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        """Nothing was done there yet when it was opened, so it may be the target of a migration by now: that takes away
        what it did not write itself, also in a tenant that it has ended with, until it has ended with all of them."""
        await require_whole(self.primary)

        @wraps(work)
        def guarded(tx: Transaction) -> tuple[T, bool]:
            refuse_while_filled(tx)
            result = work(tx)
            return result, tx.seq > 0 or tx.audit_head()[0] > 0

        result, is_used = await self._transact(tenant, guarded)
        if is_used:
            self._used_tenants.add(tenant)
        return result

    async def _transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        if self.outbox.notes_changes:
            return await self.outbox.transact(tenant, work)
        return await self.primary.transact(tenant, work)

    async def transact_in_chunks(
        self,
        who: Principal,
        items: Sequence[R],
        size: int,
        work: Callable[[Transaction, Sequence[R]], list[str]],
        *,
        begun: bool = False,
        gives_way: bool = False,
    ) -> tuple[list[str], str | None]:
        """Each chunk its own unit of work, up to the first that fails: the ids done, and why there are not more.

        As long as nothing is done, nor was `begun`, the failure is raised; later it would say that nothing was written.
        """
        done: list[str] = []
        for start in range(0, len(items), size):
            if gives_way:  # to recalls: nobody waits for this
                await self.recall_priority.give_way()
            try:
                done += await self.transact(
                    who.tenant,
                    lambda tx, start=start: work(tx, items[start : start + size]),  # type: ignore[misc]
                )
            except Fault as fault:
                if not done and not begun:
                    raise
                return done, fault.summary_for(is_operator=who.is_operator)
        return done, None

    async def retry_on_conflict(self, attempt: Callable[[], Awaitable[R]]) -> R:
        """Run an attempt that prepared its vectors beforehand, again if the store moved on meanwhile."""
        before = self.left_behind
        for _ in range(_RETRIES):
            try:
                result = await attempt()
                if self.left_behind != before:  # by this attempt, or by another meanwhile, which does no harm
                    self.fill_vectors()
                return result
            except StaleRead:
                continue
            except StaleGeneration:
                await self._follow_store()
        raise Unavailable("the memories kept changing while this was being done; try again")

    async def _follow_store(self) -> None:
        """Someone has replaced the embedder: use the one that made the vectors, if it can be had here."""
        if await self.second.follow():
            self.fill_vectors()
        info = await self.primary.embedder()
        if info is None or self._chosen is None or info == self.embedder_info:  # another caller has followed already
            return
        at_hand = [self._chosen, *([self.embedding.embedder] if self.embedding else [])]
        same = next((embedder for embedder in at_hand if embedder.name == info.name), None)
        await self._use(same or _reopened(info) or self._chosen, info)


def memory_vectors(encoded: Sequence[Encoding]) -> tuple[Vectors, list[Codes] | None]:
    """Of one memory, from the encodings of its passages: as an entry and a store take them."""
    with_tokens = all(each.tokens.size for each in encoded)
    tokens = [quantise(each.tokens[each.kept]) for each in encoded] if with_tokens else None
    return np.stack([each.vector for each in encoded]), tokens


def question_tokens(encoded: Encoding) -> QuestionTokens | None:
    """None where the embedder gives no token vectors."""
    return QuestionTokens.of(encoded.tokens, encoded.weights) if encoded.tokens.size else None


def reads_speakers(embedder: Embedder | None) -> bool:
    """Whether it was trained on turns with their speaker before them; vectors of others are of the text alone."""
    return bool(getattr(embedder, "reads_speakers", False))


def _derived(memory: Memory, speakers: bool) -> tuple[list[str], bytes]:
    return passages(memory, speakers=speakers), terms(indexed_text(memory))


def _reopened(info: EmbedderInfo) -> Embedder | None:
    try:
        found = open_recorded(info.name)
        return found if found and (found.name, found.dimension) == (info.name, info.dimension) else None
    except Fault:
        return None


async def yield_to_others(content: str) -> None:
    """Between long texts of a batch: a thousand of them in one go would hold up everyone else for seconds."""
    if len(content) > _LONG_CHARS:
        await asyncio.sleep(0)


class StaleRead(Exception):
    """What was read outside the transaction is no longer what is there."""
