"""What a program can do with a memory, whether it is opened here (`sdk`) or kept by a server (`remote`).

Every method turns its keywords into one memorywire request; how that is answered is the business of the two. Nothing
here may load the engine: a program that talks to a server does not pay for one.
"""

from __future__ import annotations

from commonplace.interface.governance import GovernanceMethods
from commonplace.interface.graph import GraphMethods
from commonplace.interface.memories import MemoryMethods
from commonplace.interface.operations import OperationMethods
from commonplace.interface.procedures import ProcedureMethods
from commonplace.interface.upkeep import UpkeepMethods


class MemoryInterface(
    OperationMethods, MemoryMethods, ProcedureMethods, GraphMethods, GovernanceMethods, UpkeepMethods
):
    """One agent's memory.

    Wherever a method takes it, `agent_id` means another agent than this memory's own, `user_id` the person a memory is
    about, `as_of` an earlier instant to read at; a time is a `datetime`, also within `metadata` and `filter`, or
    milliseconds since 1970. A keyword that is left out, or None, is decided by the protocol's default. Each of the five
    operations also takes its whole request as one object, such as `recall(RecallRequest(…))`: that is what makes this a
    `MemoryStore`. In the examples `memory` is open and holds `kept`, what `remember("Alice is allergic to peanuts")`
    gave.
    """

    lists_by_filter = True  # so that, attached as a store, it is asked by `list` which memories are copies

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can do, in the words of memorywire.

        >>> memory.capabilities >= {"semantic", "episodic", "vector", "fts"}
        True
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of what it holds."""
        raise NotImplementedError
