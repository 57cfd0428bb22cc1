"""Procedures: state machines that are moved by their triggers."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.interface.base import Document, InterfaceBase


class ProcedureMethods(InterfaceBase):
    async def procedure_show(self, id: str, *, agent_id: str | None = None) -> Document:
        """Where a procedure stands: {name, state, initial, states, possible, version, …}.

        >>> tea = await memory.remember(
        ...     '{"name": "tea", "states": ["cold", "hot"], '
        ...     '"transitions": [{"trigger": "boil", "source": "cold", "dest": "hot"}]}', type="procedural")
        >>> (await memory.procedure_show(tea.id))["possible"]
        [{'trigger': 'boil', 'dest': 'hot'}]
        """
        return await self._call(Document, "procedure_show", self._request(locals()))

    async def procedure_fire(
        self,
        id: str,
        trigger: str,
        facts: Mapping[str, bool] | None = None,
        *,
        expected_version: int | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """Move a procedure by a trigger; the state before stays in its history. What cannot be fired changes nothing.

        Args:
            facts: For each guard that the trigger depends on, whether it holds.
            expected_version: Refuse with a conflict when the procedure has moved on.
            approval_required: Move nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> door = await memory.remember(
        ...     '{"name": "door", "states": ["shut", "open"], '
        ...     '"transitions": [{"trigger": "push", "source": "shut", "dest": "open", "unless": "locked"}]}',
        ...     type="procedural")
        >>> (await memory.procedure_fire(door.id, "push", {"locked": False}))["state"]
        'open'
        """
        return await self._call(Document, "procedure_fire", self._request(locals()))

    async def procedure_reset(
        self,
        id: str,
        *,
        expected_version: int | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """Put a procedure back to where it starts.

        Args:
            expected_version: Refuse with a conflict when the procedure has moved on.
            approval_required: Move nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> tea = await memory.remember('{"name": "tea", "states": ["cold", "hot"], "current": "hot", '
        ...                             '"initial": "cold"}', type="procedural")
        >>> (await memory.procedure_reset(tea.id))["state"]
        'cold'
        """
        return await self._call(Document, "procedure_reset", self._request(locals()))

    async def procedure_draw(self, id: str, *, format: str = "svg", agent_id: str | None = None) -> Document:
        """{id, format, drawing}: the procedure as an SVG document or a Mermaid state diagram.

        Args:
            format: svg or mermaid.

        >>> tea = await memory.remember('{"name": "tea", "states": ["cold", "hot"]}', type="procedural")
        >>> (await memory.procedure_draw(tea.id, format="mermaid"))["drawing"].splitlines()[0]
        'stateDiagram-v2'
        """
        return await self._call(Document, "procedure_draw", self._request(locals()))
