"""How large a run is: everything, the quick one, or the tiny one that only shows that the benchmarks work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.speed import stores
from bench.speed.material import Material, gather
from commonplace.embedders.registry import DEFAULT, open_embedder


@dataclass
class Plan:
    cache: Path
    results: Path
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    large: tuple[int, ...] = (100_000, 1_000_000)  # of these, what one large agent costs
    model: str | None = DEFAULT
    tiny: bool = False
    embedded: int = 10_000

    def pick(self, tiny: int, full: int) -> int:
        return tiny if self.tiny else full

    @cached_property
    def material(self) -> Material:
        embedder = open_embedder(self.model or "hashing")
        assert embedder is not None
        return gather(self.cache, embedder, self.embedded)

    def store(self, size: int) -> stores.Kept:
        return stores.kept(self.cache, self.material, size)

    def without_room(self) -> list[int]:
        """Sizes that the disk cannot take."""
        return [
            size
            for size in self.sizes
            if not (self.cache / f"store-{size}" / "complete.json").exists()
            and not stores.enough_room(self.cache, size)
        ]
