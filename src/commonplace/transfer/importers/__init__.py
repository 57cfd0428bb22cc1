"""One module = one format of another product: `NAME`, `TITLE`, `matches(source)` and `read(source)`.

A format that is added is one module here, and a row in docs/moving.md.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

#: Modules of this package that are no format.
_SHARED = ("source", "json_files", "json_stream", "front_matter")


def names() -> list[str]:
    """Every format there is, in the order in which files are tried."""
    return sorted(module.name for module in iter_modules(__path__) if module.name not in _SHARED)


def importer(name: str) -> Any:
    return import_module(f"{__name__}.{name.replace('-', '_')}")
