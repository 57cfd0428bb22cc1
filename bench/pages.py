"""How long the server takes for each page of a large store: `python -m bench.pages`.

100,000 memories and 10,000 reviews that wait, by default; every page is asked for over HTTP, and what the server says
it took in its log is counted: the time of the slowest of twenty, and the median.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commonplace.config import Config, LifecycleConfig
from commonplace.engine import BatchItem, Draft, Settings, Statement
from commonplace.engine_factory import open_engine
from commonplace.wire.record import Principal

LIMIT_MS = 200.0
ROUNDS = 20
_WORDS = [
    "alice",
    "bob",
    "tea",
    "coffee",
    "rome",
    "oslo",
    "deploy",
    "billing",
    "pilot",
    "meeting",
    "salary",
    "report",
    "friday",
    "garden",
    "piano",
    "doctor",
]
_LISTENING = re.compile(r"listening on http://[^:]+:(\d+)")


def text(i: int) -> str:
    return f"Note {i}: " + " ".join(_WORDS[(i * k + k) % len(_WORDS)] for k in range(1, 9))


async def fill(data: Path, memories: int, reviews: int) -> dict[str, str]:
    """Through the engine, without vectors: what a page shows does not depend on them."""
    lifecycle = LifecycleConfig(expire=("type=emotional",))
    engine = await open_engine(Config(data, embedder="none", lifecycle=lifecycle), settings=Settings())
    who, first = Principal(), ""
    for start in range(0, memories, 1000):
        items = [
            BatchItem(Draft(f"agent-{i % 10}", "semantic", text(i), tags=[_WORDS[i % 16]]))
            for i in range(start, min(start + 1000, memories))
        ]
        kept = await engine.remember_many(who, items)
        first = first or kept[0].id  # type: ignore[union-attr]
        print(f"\r{start + len(items):,} memories", end="", flush=True)
    review = ""
    for i in range(reviews):
        draft = Draft(f"agent-{i % 10}", "semantic", f"{text(i)} and more", tags=["waiting"])
        request = {"agent_id": draft.agent_id, "type": "semantic", "content": draft.content, "approval_required": True}
        staged = await engine.remember(who, draft, approval=request, reasoning="it was said on the phone")
        review = review or staged.review_id or ""
        if i % 200 == 0:
            print(f"\r{i:,} reviews         ", end="", flush=True)
    for i in range(300):
        await engine.assert_fact(who, Statement("agent-0", f"thing {i % 40}", f"ties {i % 7}", f"thing {(i * 7) % 40}"))
    felt = [BatchItem(Draft("agent-0", "emotional", f"Alice felt {text(i)}")) for i in range(1000)]
    await engine.remember_many(who, felt)
    run = (await engine.lifecycle.run(who, "expire")).run_id
    await engine.close()
    print()
    return {"memory": first, "review": review, "run": run or ""}


@contextmanager
def serving(data: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """A server on it; its port, and its log of requests."""
    command = [sys.executable, "-m", "commonplace.cli", "serve", "--port", "0", "--data", str(data)]
    environment = {"COMMONPLACE_EMBEDDER": "none", "PATH": "/usr/bin:/bin"}
    import os

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    log: list[dict[str, Any]] = []

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            with_fields = json.loads(line) if line.startswith("{") else {}
            if with_fields.get("event") == "request":
                log.append(with_fields)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        assert process.stdout is not None
        port = next(int(found[1]) for line in process.stdout if (found := _LISTENING.search(line)))
        yield port, log
    finally:
        process.terminate()
        process.wait(60)
        thread.join(5)


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def walked(port: int, path: str, pages: int) -> list[str]:
    """The addresses of so many pages, each found on the one before."""
    found = [path]
    while len(found) < pages:
        following = re.search(r'href="([^"]*cursor=[^"]*)"', get(port, found[-1])[1])
        if following is None:
            break
        found.append(following[1].replace("&amp;", "&"))
    return found


def measure(port: int, log: list[dict[str, Any]], paths: list[str]) -> dict[str, Any]:
    for path in paths[:1]:
        get(port, path)  # templates are compiled and caches are filled once
    seen = len(log)
    for i in range(ROUNDS):
        status, _ = get(port, paths[i % len(paths)])
        assert status == 200, paths[i % len(paths)]
    while len(log) < seen + ROUNDS:
        time.sleep(0.01)
    took = sorted(float(line["ms"]) for line in log[seen : seen + ROUNDS])
    return {"median_ms": round(statistics.median(took), 1), "slowest_ms": round(took[-1], 1)}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--memories", type=int, default=100_000)
    given.add_argument("--reviews", type=int, default=10_000)
    given.add_argument("--data", type=Path, help="keep the store here, and use it again")
    options = given.parse_args()
    data = options.data or Path(tempfile.mkdtemp(prefix="commonplace-pages-"))
    known = data / "pages.json"
    ids = json.loads(known.read_text()) if known.is_file() else None
    if ids is None:
        data.mkdir(parents=True, exist_ok=True)
        ids = asyncio.run(fill(data, options.memories, options.reviews))
        known.write_text(json.dumps(ids))
    results: dict[str, Any] = {}
    with serving(data) as (port, log):
        pages = {
            "inbox": walked(port, "/ui/inbox", 10), "inbox, one agent": ["/ui/inbox?agent=agent-3"],
            "review": [f"/ui/inbox/{ids['review']}"], "memories": walked(port, "/ui/memories", 10),
            "memories, one agent": ["/ui/memories?agent=agent-3"], "search": ["/ui/memories?q=billing+deploy+friday"],
            "memory": [f"/ui/memories/{ids['memory']}"], "graph": ["/ui/graph?agent=agent-0&about=thing+3"],
            "things": ["/ui/graph?agent=agent-0"], "lifecycle": ["/ui/lifecycle"],
            "lifecycle run": [f"/ui/lifecycle/{ids['run']}"], "proofs": ["/ui/audit/proofs?entry=7&from=1000"],
            "audit": walked(port, "/ui/audit", 10),
            "audit, one operation": ["/ui/audit?operation=graph_assert"], "health": ["/ui/health"],
            "policies": ["/ui/policies"], "tokens": ["/ui/tokens"],
        }  # fmt: skip
        for name, paths in pages.items():
            results[name] = measure(port, log, paths)
            row = results[name]
            over = "" if row["slowest_ms"] <= LIMIT_MS else f"  over {LIMIT_MS:.0f} ms"
            print(f"{name:22} median {row['median_ms']:8.1f} ms   slowest {row['slowest_ms']:8.1f} ms{over}")
    out = Path("bench/results")
    out.mkdir(parents=True, exist_ok=True)
    (out / "pages.json").write_text(json.dumps(results, indent=1) + "\n")
    if options.data is None:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    main()
