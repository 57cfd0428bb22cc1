"""What a run found, on disk after every step: a run that is stopped keeps what it has, and can be taken up again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.speed.report import machine

FILE = "peers.json"
FORMAT = 1


@dataclass(slots=True)
class Results:
    """`sizes` has the rows of every size, by system; `quality` and `syncs` do not depend on the size."""

    machine: dict[str, Any] = field(default_factory=machine)
    command: str = ""
    embedder: str = ""
    split: str = "test"
    versions: dict[str, str] = field(default_factory=dict)
    complete: list[int] = field(default_factory=list)  # sizes that were measured to the end
    sizes: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    quality: dict[str, dict[str, Any]] = field(default_factory=dict)
    syncs: dict[str, float | None] = field(default_factory=dict)
    minutes: float | None = None  # that the run took, once it was over

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        document = {"format": FORMAT, **{name: getattr(self, name) for name in self.__slots__}}
        document["sizes"] = {str(size): rows for size, rows in sorted(self.sizes.items())}
        file, beside = folder / FILE, folder / f"{FILE}.new"
        beside.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
        beside.replace(file)
        return file

    @classmethod
    def read(cls, folder: Path) -> Results | None:
        """None where there is nothing, or something that another version wrote."""
        try:
            document = json.loads((folder / FILE).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
            return None
        document["sizes"] = {int(size): rows for size, rows in document["sizes"].items()}
        return cls(**document)

    def same_subject(self, other: Results) -> bool:
        """Whether what the other holds can stand beside what this one will measure."""
        common = self.versions.keys() & other.versions.keys()
        return self.embedder == other.embedder and all(self.versions[n] == other.versions[n] for n in common)


def parse_size(text: str) -> int:
    """1k, 10k, 1m or a plain number."""
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    digits = text[:-1] if factor > 1 else text
    if not (digits.isascii() and digits.isdigit() and int(digits)):
        raise ValueError(f"{text!r} is not a size; write for example 1k,10k or 500")
    return int(digits) * factor
