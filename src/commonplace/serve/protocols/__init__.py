"""Every protocol that is spoken, one file each, found by listing this folder.

A file may have `PROTOCOLS`, its tables of HTTP routes; `TOOLS`, its set of MCP tools; and `POSITION`, where it stands
in /openapi.json and among the names that `--tools` takes. It loads the engine and its dialect at the first call, not
when it is imported: `commonplace mcp` answers its handshake from these files alone.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from commonplace.serve.routes import ProtocolRoutes
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.config import Config
    from commonplace.serve.mcp.tools import ToolSet

#: The set whose tools are offered unless another is asked for.
DEFAULT_TOOLS = "commonplace"


def http_protocols(config: Config) -> tuple[ProtocolRoutes, ...]:
    found = (protocol for module in _modules() for protocol in getattr(module, "PROTOCOLS", ()))
    return tuple(protocol for protocol in found if protocol.enabled(config))


def tool_set_names() -> tuple[str, ...]:
    return (*(tool_set.name for tool_set in _tool_sets()), "all")


def load_tool_set(name: str) -> ToolSet:
    """By the name that `--tools` takes; of the files only the one it is in is loaded."""
    if name == "all":  # what has the same name in two sets is the same tool
        every = {tool.name: tool for tool_set in _tool_sets() for tool in tool_set.tools}
        return load_tool_set(DEFAULT_TOOLS)._replace(name=name, tools=tuple(every.values()))
    if name in _file_names():
        tool_set: ToolSet | None = getattr(import_module(f"{__name__}.{name}"), "TOOLS", None)
        if tool_set is not None and tool_set.name == name:
            return tool_set
    raise ValidationError(f"--tools is one of {', '.join(tool_set_names())}, not {name!r:.80}", field="tools")


def _tool_sets() -> list[ToolSet]:
    return [module.TOOLS for module in _modules() if hasattr(module, "TOOLS")]


def _modules() -> list[ModuleType]:
    found = [import_module(f"{__name__}.{name}") for name in _file_names()]
    return sorted(found, key=lambda module: getattr(module, "POSITION", len(found)))


def _file_names() -> list[str]:
    return [file.name for file in iter_modules(__path__)]
