"""A judge with a memory on disk, so that a second run of a benchmark reads nothing again."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

from commonplace.embedders.packaged_files import sha256_of
from commonplace.judges.minilm import MODEL, NAME, SHA256, MiniLMJudge


class RememberedJudge:
    """The judge of a file, by default the one that ships; of a pair it has read before it says the same again."""

    note: str | None = None
    reads_pairs = True

    def __init__(self, model: Path = MODEL, folder: Path | None = None) -> None:
        sha256 = sha256_of(model)
        self.name = NAME if sha256 == SHA256 else model.stem
        self.fresh = MiniLMJudge(model, sha256=sha256, remembered=1)  # for timing: it has read nothing before
        folder = folder or Path(tempfile.gettempdir()) / "commonplace-bench"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"judge-{sha256[:12]}.db"
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._db.execute("CREATE TABLE IF NOT EXISTS verdicts(key BLOB PRIMARY KEY, logit REAL) WITHOUT ROWID")

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        keys = [hashlib.blake2b(f"{question}\0{text}".encode(), digest_size=16).digest() for text in texts]
        known: dict[bytes, float] = {}
        for key in keys:
            for (logit,) in self._db.execute("SELECT logit FROM verdicts WHERE key = ?", (key,)):
                known[key] = logit
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            read = list(zip(missing, self.fresh.judge(question, list(missing.values())), strict=True))
            self._db.executemany("INSERT OR IGNORE INTO verdicts VALUES(?, ?)", read)
            known.update(read)
        return [known[key] for key in keys]

    def close(self) -> None:
        self._db.close()
