"""How fast the embedder is here: cold load, one text, batches, concurrent callers, memory. Prints a table.

python bench/embed_probe.py [--embedder SPEC] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from pathlib import Path

from commonplace.embedders.cache import CachedEmbedder
from commonplace.embedders.registry import DEFAULT, open_embedder

PLACES = ("Lisbon", "the office", "Berlin", "a train", "the kitchen", "Oslo", "the workshop", "home")
THINGS = ("green tea", "the quarterly report", "a red bicycle", "an old piano", "the build server", "two tickets")


def sentence(number: int, clauses: int = 1) -> str:
    parts = [
        f"Alice told Bob in {PLACES[(number + n) % len(PLACES)]} of {THINGS[(number * 5 + n) % len(THINGS)]}"
        for n in range(clauses)
    ]
    return f"{' and then '.join(parts)}, entry {number}."


def resident_mb(field: str = "VmRSS") -> float | None:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return int(status.split(f"{field}:")[1].split()[0]) / 1024


def measure(spec: str) -> dict[str, float | str | None]:
    before = resident_mb()
    embedder = open_embedder(spec)
    if embedder is None:
        raise SystemExit("there is nothing to measure without an embedder")
    start = time.perf_counter()
    embedder.embed(["the first text loads the model"])
    result: dict[str, float | str | None] = {
        "embedder": embedder.name,
        "dimension": embedder.dimension,
        "cold_ms": (time.perf_counter() - start) * 1e3,
        "rss_before_mb": before,
        "rss_loaded_mb": resident_mb(),
    }
    times = []
    for number in range(200):
        start = time.perf_counter()
        embedder.embed([sentence(number)])
        times.append((time.perf_counter() - start) * 1e3)
    result["one_ms_median"] = statistics.median(times)
    result["one_ms_p95"] = statistics.quantiles(times, n=20)[-1]
    for label, clauses, count in (("sentences", 1, 512), ("paragraphs", 8, 96)):
        texts = [sentence(number, clauses) for number in range(count)]
        start = time.perf_counter()
        embedder.embed(texts)
        result[f"{label}_per_s"] = count / (time.perf_counter() - start)
    cached = CachedEmbedder(embedder)
    result["callers_200_ms"] = crowd(cached)
    result["rss_worked_mb"] = resident_mb()
    result["rss_peak_mb"] = resident_mb("VmHWM")
    cached.close()  # which unloads the model, so nothing about a loaded one can be measured after it
    result["rss_unloaded_mb"] = resident_mb()
    return result


def crowd(cached: CachedEmbedder) -> float:
    async def everyone() -> None:
        await asyncio.gather(*(cached.embed_async([sentence(number + 10_000)]) for number in range(200)))

    start = time.perf_counter()
    asyncio.run(everyone())
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--embedder", default=DEFAULT)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = measure(arguments.embedder)
    for key, value in result.items():
        print(f"{key:<18}{value:>24.1f}" if isinstance(value, float) else f"{key:<18}{value!s:>24}")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
