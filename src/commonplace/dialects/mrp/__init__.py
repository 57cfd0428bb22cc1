"""MRP, the Memory Request Protocol: how agents ask each other for memories, and check what they get.

`signatures` and `response_check` need no engine: whoever asks can check what it got with them alone. So `Mrp`, which
loads the engine, is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commonplace.dialects.mrp.operations import Mrp

__all__ = ["Mrp"]


def __getattr__(name: str) -> Any:
    if name != "Mrp":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from commonplace.dialects.mrp.operations import Mrp

    return Mrp
