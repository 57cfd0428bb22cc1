"""What people decide and check: reviews, policies, the audit trail, and recovery from a bad source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.interface.base import Document, Documents, InterfaceBase, Time, given

if TYPE_CHECKING:
    from commonplace.engine import Progress


class GovernanceMethods(InterfaceBase):
    async def _decide(self, review_id: str, decision: Document) -> Document:
        raise NotImplementedError

    async def _edit_review(self, review_id: str, edit: Document) -> Document:
        raise NotImplementedError

    # reviews

    async def reviews(self, status: str | None = "pending") -> Documents:
        """The reviews that are pending, approved, rejected or expired; with None all of them.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> [review["operation"] for review in await memory.reviews()]
        ['remember']
        """
        return await self._call(Documents, "reviews", {"status": status or "all"})

    async def review(self, review_id: str) -> Document:
        """One review: what was asked, what it would change, and what was decided.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> (pending,) = await memory.reviews()
        >>> (await memory.review(pending["id"]))["request"]["content"]
        'Bob keeps bees'
        """
        return await self._call(Document, "review", {"id": review_id})

    async def approve(
        self,
        review_id: str,
        *,
        reviewer: str | None = None,
        reason: str | None = None,
        request: Document | None = None,
        apply: Document | None = None,
        revision: int | None = None,
    ) -> Document:
        """Let a staged write happen; the review, as decided, with its outcome.

        Args:
            reviewer: Who decides, where no token says so.
            request: What happens instead of what was asked.
            apply: A new memory joins another ({"merge_into": id}) or takes the place of others ({"forget": [ids]}).
            revision: That of the review that was looked at: another one is a conflict that carries the fresh review.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> (pending,) = await memory.reviews()
        >>> (await memory.approve(pending["id"], reviewer="bob"))["outcome"]["id"] == waiting.id
        True
        """
        fields = {"reviewer": reviewer, "reason": reason, "request": request, "apply": apply, "revision": revision}
        return await self._decide(review_id, {"approved": True, **given(fields)})

    async def reject(self, review_id: str, *, reviewer: str | None = None, reason: str | None = None) -> Document:
        """Refuse a staged write; it never happens.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> (pending,) = await memory.reviews()
        >>> (await memory.reject(pending["id"], reason="hearsay"))["status"]
        'rejected'
        """
        return await self._decide(review_id, {"approved": False, **given({"reviewer": reviewer, "reason": reason})})

    async def edit_review(self, review_id: str, request: Document, *, revision: int | None = None) -> Document:
        """Ask for something else instead; the review goes on waiting, at its next revision.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> request = {"agent_id": memory.agent_id, "type": "semantic", "content": "Bob kept bees"}
        >>> (await memory.edit_review(waiting.review_id, request))["revision"]
        2
        """
        return await self._edit_review(review_id, {"request": request, **given({"revision": revision})})

    async def decide_many(
        self, review_ids: Sequence[str], approved: bool, *, reviewer: str | None = None, reason: str | None = None
    ) -> Documents:
        """The same decision about many reviews: of each {id, status, errors?}, or {id, error}.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> [each["status"] for each in await memory.decide_many([waiting.review_id], True)]
        ['approved']
        """
        decision = {"ids": list(review_ids), "approved": approved, **given({"reviewer": reviewer, "reason": reason})}
        return await self._call(Documents, "decide_many", decision)

    # policies

    async def policies(self) -> Document:
        """{rules, configured}: the tenant's own rules, and those of the configuration, which are asked first.

        >>> (await memory.policies())["rules"]
        []
        """
        return await self._call(Document, "policies", {})

    async def set_policies(self, rules: Sequence[Document]) -> Document:
        """Make these the tenant's own rules, all of them; they hold from the next request on.

        >>> rule = {"name": "other agents", "when": {"dialect": ["mrp"]}, "action": "review"}
        >>> [each["name"] for each in (await memory.set_policies([rule]))["rules"]]
        ['other agents']
        """
        return await self._call(Document, "set_policies", {"rules": list(rules)})

    async def try_policies(self, rules: Sequence[Document], *, days: int = 30) -> Document:
        """{looked_at, counts, caught}: which writes of the last days these rules would have caught; nothing changes.

        >>> rule = {"name": "everything", "action": "review"}
        >>> (await memory.try_policies([rule]))["counts"]
        {'everything': 1}
        """
        return await self._call(Document, "try_policies", {"rules": list(rules), "days": days})

    async def learned_policies(self) -> Documents:
        """What reviewers always approve, and whether it is allowed without them by now.

        >>> await memory.learned_policies()
        []
        """
        return await self._call(Documents, "learned_policies", {})

    async def revoke_learned(self, id: str) -> Document:
        """Take back what was learned of a pattern: only later decisions count.

        >>> from commonplace.wire.errors import NotFound
        >>> try:
        ...     await memory.revoke_learned("0123456789abcdef")
        ... except NotFound:
        ...     print("nothing was learned of it")
        nothing was learned of it
        """
        return await self._call(Document, "revoke_learned", {"id": id})

    # audit

    async def audit(
        self,
        *,
        agent_id: str | None = None,
        operation: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Document:
        """A page {entries, next_cursor} of the audit trail, oldest first; of every agent where none is named.

        >>> [entry["operation"] for entry in (await memory.audit())["entries"]]
        ['remember']
        """
        return await self._call(Document, "audit", given(locals()))

    async def verify_audit(self, progress: Progress | None = None) -> Document:
        """{ok, entries, head}, and when it is not ok {first_bad, problem}.

        >>> (await memory.verify_audit())["ok"]
        True
        """
        return await self._call(Document, "verify_audit", {})

    async def audit_head(self) -> Document:
        """{tenant, size, root, at, key_id, signature}: what the audit trail is now, signed. Keep it elsewhere: it
        exposes whoever rewrites the trail later.

        >>> (await memory.audit_head())["size"]
        1
        """
        return await self._call(Document, "audit_head", {})

    async def audit_proof(self, entry: int, size: int | None = None) -> Document:
        """{entry, size, leaf_hash, path, root}: that an entry (the first is 1) is among the first `size`.

        >>> (await memory.audit_proof(1))["path"]
        []
        """
        return await self._call(Document, "audit_proof", given(locals()))

    async def audit_consistency(self, first: int, second: int | None = None) -> Document:
        """{from, to, from_root, to_root, path}: that the first entries are still those they were.

        >>> (await memory.audit_consistency(1))["to"]
        1
        """
        return await self._call(Document, "audit_consistency", {"from": first, **given({"to": second})})

    async def audit_key(self) -> Document:
        """{key_id, public_key, algorithm, retired}: the key that heads are signed with, and those before it.

        >>> (await memory.audit_key())["algorithm"]
        'ed25519'
        """
        return await self._call(Document, "audit_key", {})

    # recovery

    async def recover(
        self,
        *,
        source: str | None = None,
        principal: str | None = None,
        since: Time | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Document:
        """Take back what came from a bad source, and what was made from it: {recovery_id, affected, erased}.

        Args:
            source: What memories say they come from.
            principal: Who wrote, as the audit trail names them.
            since: Only what was done from then on.
            agent_id: Only memories of this agent; by default of every agent.
            dry_run: Say what would be taken back; nothing is changed.

        >>> bad = await memory.remember("Bob is the admin", source="https://evil.example")
        >>> done = await memory.recover(source="https://evil.example")
        >>> (await memory.undo(recovery_id=done["recovery_id"]))["restored_ids"] == [bad.id]
        True
        """
        return await self._call(Document, "recover", given(locals()))
