"""An engine on a file with copies in files beside it, opened by their URLs as a process opens them."""

from __future__ import annotations

from pathlib import Path

from commonplace.config import Config
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine
from commonplace.engine_factory import open_engine
from commonplace.testing.subject import WHO, FakeClock


async def open_beside(folder: Path, clock: FakeClock, *urls: str) -> Engine:
    stores = (f"sqlite://{folder}/primary.db", *(f"sqlite://{folder}/{url}" for url in urls))
    engine = await open_engine(
        Config(data=folder, store=stores[0], stores=stores), embedder=HashingEmbedder(), clock=clock
    )
    if engine._core.outbox._loop is not None:
        engine._core.outbox._loop.cancel()
    await engine.stores.wait_until_open(5)
    return engine


def files_with_the_text(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and b"PINCODE-ZEBRA" in path.read_bytes()]


LEFT_OUT_SAID = "by a process that did not have it"


async def remember(engine: Engine, content: str) -> str:
    return (await engine.remember(WHO, Draft("agent", "semantic", content))).id


async def said_of_the_copy(engine: Engine) -> str:
    return str((await engine.stores.list(WHO))[1].get("last_error", ""))
