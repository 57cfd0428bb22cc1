"""What lies in tests/stores/data/minilm.db.gz, a store that version 0.1.0 made with MiniLM; `fill` made it."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from commonplace.engine import Draft, Engine, Update
from commonplace.testing.subject import WHO
from commonplace.wire.times import DAY_MS

MINILM = "all-MiniLM-L6-v2/int8w"
START = 1_750_000_000_000
_PACKED = Path(__file__).parent / "stores" / "data" / "minilm.db.gz"

_NOTES = [
    "Alice drinks green tea in the morning",
    "Bob keeps bees behind the old mill",
    "The deployment failed because the disk was full",
    "The dentist moved the appointment to Tuesday at nine",
    "Alice is allergic to peanuts",
    "The spare key is under the blue flowerpot",
]
_TURNS = [
    ("Alice", "I adopted a kitten called Pixel"),
    ("Bob", "My sister moved to Lyon"),
    ("Alice", "I sold my piano"),
]


async def fill(engine: Engine) -> None:
    for text in _NOTES:
        await engine.remember(WHO, Draft("alice", "semantic", text))
    for n, (speaker, text) in enumerate(_TURNS):
        when = START - n * DAY_MS
        await engine.remember(WHO, Draft("alice", "episodic", text, speaker=speaker, event_time=when))
    long = "A sentence about herons. " * 80 + "The boathouse opens in May. " + "A sentence about reeds. " * 80
    await engine.remember(WHO, Draft("alice", "semantic", long, title="On the lake"))
    changed = await engine.remember(WHO, Draft("alice", "semantic", "The meeting is on Monday"))
    await engine.update(WHO, Update("alice", changed.id, content="The meeting is on Thursday"))
    gone = await engine.remember(WHO, Draft("alice", "semantic", "The old address is in Oak Lane"))
    await engine.delete(WHO, gone.id)


def unpack(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(_PACKED) as packed, (folder / "commonplace.db").open("wb") as file:
        shutil.copyfileobj(packed, file)
    return folder
