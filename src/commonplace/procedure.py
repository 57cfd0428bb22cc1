"""One procedure of a memory, wherever the memory is kept."""

from __future__ import annotations

from commonplace.interface import MemoryInterface
from commonplace.interface.base import Document


class Procedure:
    """A procedure that is a state machine, to be moved by its triggers.

    >>> tea = await memory.remember(
    ...     '{"name": "tea", "states": ["cold", "hot"], '
    ...     '"transitions": [{"trigger": "boil", "source": "cold", "dest": "hot", "conditions": "has_water"}]}',
    ...     type="procedural")
    >>> procedure = Procedure(memory, tea.id)
    >>> await procedure.fire("boil", has_water=True)
    'hot'
    >>> await procedure.reset()
    'cold'
    """

    def __init__(self, memory: MemoryInterface, id: str) -> None:
        self._memory = memory
        self.id = id

    async def show(self) -> Document:
        """Where it stands, what it may do, and its version."""
        return await self._memory.procedure_show(self.id)

    async def state(self) -> str:
        return str((await self.show())["state"])

    async def possible(self) -> list[str]:
        """The triggers that its state has a transition for."""
        return [move["trigger"] for move in (await self.show())["possible"]]

    async def fire(self, trigger: str, /, **facts: bool) -> str:
        """The state it is in afterwards; the facts are what its guards ask for."""
        return str((await self._memory.procedure_fire(self.id, trigger, facts))["state"])

    async def reset(self) -> str:
        return str((await self._memory.procedure_reset(self.id))["state"])

    async def draw(self, format: str = "svg") -> str:
        """As an SVG document, or a Mermaid state diagram."""
        return str((await self._memory.procedure_draw(self.id, format=format))["drawing"])
