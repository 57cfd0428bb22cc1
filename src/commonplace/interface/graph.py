"""The knowledge graph: statements that hold from one time to another."""

from __future__ import annotations

from commonplace.interface.base import Document, InterfaceBase, Time


class GraphMethods(InterfaceBase):
    async def graph_assert(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        confidence: float | None = None,
        provenance: str | None = None,
        valid_from: Time | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """State something; what held of this subject and predicate until then ends, and is shown as `replaced`.

        Args:
            provenance: Where this is known from.
            valid_from: Since when it holds; now by default.
            approval_required: State nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech", provenance=kept.id)
        >>> (await memory.graph_assert("Alice", "works at", "Globex"))["replaced"]["object"]
        'Initech'
        """
        return await self._call(Document, "kg_assert", self._request(locals()))

    async def graph_query(
        self, subject: str, *, predicate: str | None = None, as_of: Time | None = None, agent_id: str | None = None
    ) -> Document:
        """{subject, triples}: what is stated about a subject now, or held at `as_of`.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> [triple["object"] for triple in (await memory.graph_query("Alice"))["triples"]]
        ['Initech']
        """
        return await self._call(Document, "kg_query", self._request(locals()))

    async def graph_history(
        self, subject: str, *, predicate: str | None = None, agent_id: str | None = None
    ) -> Document:
        """{subject, triples}: everything that was ever stated about it, oldest first.

        >>> (await memory.graph_history("Alice"))["triples"]
        []
        """
        return await self._call(Document, "kg_history", self._request(locals()))

    async def graph_path(
        self, start: str, end: str, *, max_hops: int = 3, as_of: Time | None = None, agent_id: str | None = None
    ) -> Document:
        """{start, end, triples}: the fewest statements that lead from one thing to another.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> len((await memory.graph_path("Alice", "Initech"))["triples"])
        1
        """
        return await self._call(Document, "kg_path", self._request(locals()))

    async def graph_retract(self, subject: str, predicate: str, *, agent_id: str | None = None) -> Document:
        """End what holds now, with nothing in its place.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> ended = await memory.graph_retract("Alice", "works at")
        >>> (await memory.graph_query("Alice"))["triples"]
        []
        """
        return await self._call(Document, "kg_retract", self._request(locals()))

    async def graph_erase(self, subject: str, *, mentions: bool = False, agent_id: str | None = None) -> Document:
        """Erase everything ever stated about a subject; with `mentions` also what names it as the object.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> len((await memory.graph_erase("Initech", mentions=True))["erased"])
        1
        """
        return await self._call(Document, "kg_erase", self._request(locals()))

    async def preview_graph_erase(
        self, subject: str, *, mentions: bool = False, agent_id: str | None = None
    ) -> Document:
        """{subject, triples}: what `graph_erase` would erase; nothing changes.

        >>> (await memory.preview_graph_erase("Initech"))["triples"]
        []
        """
        return await self._call(Document, "preview_kg_erase", self._request(locals()))

    would_graph_erase = preview_graph_erase

    async def neighbors(self, id: str, *, hops: int = 1, agent_id: str | None = None) -> Document:
        """{id, neighbors}: the memories within so many hops of one, each with its distance.

        >>> (await memory.neighbors(kept.id, hops=2))["neighbors"]
        []
        """
        request = self._request({"memory_id": id, "hops": hops, "agent_id": agent_id})
        return await self._call(Document, "kg_neighbors", request)
