"""Which data sets there are here, and the embedder they are read with."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from bench.quality import datasets
from bench.quality.datasets import Space
from bench.quality.embedding import RememberedEmbedder
from commonplace.embedders.registry import open_embedder


@dataclass(slots=True)
class Sources:
    corpus: list[Space]
    embedder: RememberedEmbedder
    locomo: list[Space] = field(default_factory=list)
    microbench: list[Space] = field(default_factory=list)
    unfiltered: list[Space] = field(default_factory=list)  # the same without the filter on the user

    @classmethod
    def of(cls, shared: Path | None, locomo: Path | None, spec: str) -> Sources:
        embedder = open_embedder(spec)
        if embedder is None:
            raise SystemExit("recall without an embedder is keywords only; name one")
        found = cls(datasets.corpus(), RememberedEmbedder(embedder))
        talk = locomo or (shared / "locomo-dev.json" if shared else None)
        if talk and talk.is_file():
            found.locomo = datasets.conversations(talk)
        if shared and (shared / "microbench.json").is_file():
            found.microbench = datasets.microbench(shared / "microbench.json")
            found.unfiltered = deepcopy(found.microbench)
            for space in found.unfiltered:
                space.name += ", all users"
                for question in space.questions:
                    question.user_id = None
        return found

    @property
    def second(self) -> RememberedEmbedder:
        second = open_embedder("multilingual")
        assert second is not None
        return RememberedEmbedder(second)
