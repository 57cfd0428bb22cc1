"""Answers given a moment ago, for whoever asks the very same thing again under the same id.

What is remembered of a question is a salted hash. An answer is kept apart from it, bound to the memories it quotes, so
that erasing one of them takes the answer with it; it is given again only while all of them are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.memory.read import readable
from commonplace.engine.recall.recall import Recaller
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import canonical, new_salt, sha256_hex

SEEN = "mrp.seen"
ANSWER = "mrp.answer"
MAX_SEEN = 20_000  # questions remembered in one tenant; beyond that those that end soonest are forgotten first
_TIDY_MS = 60_000
_AT_ONCE = 256


class RequestIdReused(Exception):
    """The id was used before for something else."""


class RequestDedup:
    def __init__(self, core: Core, recaller: Recaller) -> None:
        self._core = core
        self._recaller = recaller
        self._tidied: dict[str, int] = {}

    async def find_answer(self, tenant: str, key: str, asked: bytes, under: Any) -> dict[str, Any] | None:
        """The answer given before, if it still stands for someone of the same standing (`under`)."""
        seen = await self._core.primary.record(tenant, SEEN, key)
        if seen is None or seen.value["until"] <= self._core.clock():
            return None
        if _hash(seen.value["salt"], asked) != seen.value["hash"]:
            raise RequestIdReused
        answer = await self._core.primary.record(tenant, ANSWER, key)
        if (
            answer is None
            or answer.value["under"] != await self._with_rules(tenant, under)
            or not await self._is_current(tenant, answer.value["versions"])
        ):
            return None
        document: dict[str, Any] = answer.value["response"]
        return document

    async def keep(
        self, tenant: str, key: str, asked: bytes, under: Any, until: int, response: dict[str, Any],
        versions: Mapping[str, int] | None,
    ) -> dict[str, Any]:  # fmt: skip
        """What to answer: of several that asked at once, the first one's. Without `versions`, those of the memories it
        shows, only the question is remembered."""
        under = await self._with_rules(tenant, under)
        salt = new_salt().hex()
        known = {"salt": salt, "hash": _hash(salt, asked), "until": until}
        value = {"response": response, "under": under, "until": until, "versions": dict(versions or {})}

        def work(tx: Transaction, write_recalls: Callable[[Transaction], None]) -> dict[str, Any]:
            write_recalls(tx)
            seen, answer = tx.record(SEEN, key), tx.record(ANSWER, key)
            if seen is not None and seen.value["until"] > tx.now:
                if _hash(seen.value["salt"], asked) != seen.value["hash"]:
                    raise RequestIdReused
                same = answer is not None and answer.value["under"] == under
                if answer is not None and same and answer.value["versions"] == value["versions"]:
                    first: dict[str, Any] = answer.value["response"]
                    return first
            tx.put_record(Record(SEEN, key, known))
            # A memory erased since it was read must not live on in what is kept here.
            if versions is not None and all(_at(tx, id) == version for id, version in versions.items()):
                tx.put_record(Record(ANSWER, key, value, tuple(versions)))
            return response

        with self._recaller.flush_with(tenant) as write_recalls:
            given = await self._core.transact(tenant, lambda tx: work(tx, write_recalls))
        await self._tidy(tenant)
        return given

    async def _with_rules(self, tenant: str, under: Any) -> Any:
        """What an answer was given under, the rules about reading included: one made since may withhold it."""
        reading = [dict(r.document) for r in await self._core.policies.in_force(tenant) if "recall" in r.operation]
        return [under, request_key(reading)] if reading else under

    async def _is_current(self, tenant: str, versions: Mapping[str, int]) -> bool:
        now = self._core.clock()
        there = {m.id: m for m in await self._core.primary.get(tenant, list(versions))}
        return all(id in there and there[id].version == v and readable(there[id], now) for id, v in versions.items())

    async def _tidy(self, tenant: str) -> None:
        """Now and then, drop what is over."""
        now = self._core.clock()
        if now - self._tidied.get(tenant, 0) < _TIDY_MS:
            return
        self._tidied[tenant] = now
        kept = await self._core.primary.records(tenant, SEEN)
        lasting = sorted((r for r in kept if r.value["until"] > now), key=lambda r: -r.value["until"])
        over = [r.key for r in kept if r.value["until"] <= now] + [r.key for r in lasting[MAX_SEEN:]]
        for start in range(0, len(over), _AT_ONCE):
            some = over[start : start + _AT_ONCE]
            await self._core.transact(tenant, lambda tx, some=some: _drop(tx, some))  # type: ignore[misc]


def _drop(tx: Transaction, keys: Sequence[str]) -> None:
    for key in keys:
        tx.drop_record(SEEN, key)
        tx.drop_record(ANSWER, key)


def _at(tx: Transaction, id: str) -> int | None:
    memory = tx.get(id)
    return None if memory is None else memory.version


def request_key(*parts: Any) -> str:
    return sha256_hex(canonical(list(parts)))


def _hash(salt: str, asked: bytes) -> str:
    return sha256_hex(bytes.fromhex(salt), asked)
