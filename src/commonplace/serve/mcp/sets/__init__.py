"""The sets of tools, each a module with a `SET`; a server loads only the one it was asked for."""

from __future__ import annotations

from importlib import import_module

from commonplace.serve.mcp.table import ToolSet
from commonplace.wire.errors import ValidationError

#: Every set by the name `--tools` takes, and where it is.
NAMES = ("commonplace", "amp", "trusty", "all")
_MODULES = {"commonplace": "ours", "amp": "amp", "trusty": "trusty", "all": "everything"}


def load(name: str) -> ToolSet:
    if name not in NAMES:
        raise ValidationError(f"--tools is one of {', '.join(NAMES)}, not {name!r:.80}", field="tools")
    found: ToolSet = import_module(f"commonplace.serve.mcp.sets.{_MODULES[name]}").SET
    return found
