"""`measure`: the shipped recall against plain ways to search, and without each of its parts, on every data set."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.quality.datasets import Space
from bench.quality.judging import RememberedJudge
from bench.quality.measures import Figures, by_category, figures
from bench.quality.report import as_json, plots, table
from bench.quality.sources import Sources
from bench.quality.stocked import Stocked, stocked
from bench.quality.systems import ABLATIONS, BASELINES, outcomes, shipped


async def measure(sources: Sources, out: Path, *, quick: bool) -> dict[str, Any]:
    sets: dict[str, list[Space]] = {
        "locomo": sources.locomo,
        "corpus, tune": _only(sources.corpus, "tune"),
        "corpus, test": _only(sources.corpus, "test"),
        "microbench": sources.microbench,
        "microbench, all users": sources.unfiltered,
    }
    began = time.perf_counter()
    results: dict[str, dict[str, dict[str, Figures]]] = {}
    everything = [*sources.locomo, *sources.corpus, *sources.microbench, *sources.unfiltered]
    async with stocked(everything, sources.embedder, RememberedJudge()) as held:
        print(f"stocked in {time.perf_counter() - began:.1f} s, {sources.embedder.embedded} texts embedded for it")
        for name, spaces in sets.items():
            if spaces:
                results[name] = await _measured(held, name, spaces, quick)
    embedding = sources.embedder.latency([q.text for q in sources.corpus[0].questions[:40]])
    print(
        f"\nembedding one question takes {embedding:.2f} ms with {sources.embedder.name}; not part of the times above"
    )
    as_json({"embedder": sources.embedder.name, "embed_ms": embedding, "results": results}, out / "quality.json")
    for file in (out / "quality.json", *plots(results, out)):
        print(file)
    return results


async def _measured(held: Stocked, name: str, spaces: list[Space], quick: bool) -> dict[str, dict[str, Figures]]:
    ours = shipped()
    await outcomes(held, spaces, ours)  # embeds every question once, so that times are those of recall
    compared: dict[str, Figures] = {}
    for title, system in BASELINES.items():
        compared[title] = figures(await outcomes(held, spaces, system))
    done = await outcomes(held, spaces, ours)
    compared["recall"] = figures(done)
    parts = {"compared": compared, "by category": by_category(done)}
    if not quick:
        rows = {"recall": compared["recall"]}
        rows |= {title: figures(await outcomes(held, spaces, system)) for title, system in ABLATIONS.items()}
        parts["without one part"] = rows
    for title, rows in parts.items():
        print("\n" + table(f"{name}: {title}", rows))
    return parts


def _only(spaces: list[Space], split: str) -> list[Space]:
    return [replace(space, questions=[q for q in space.questions if q.split == split]) for space in spaces]
