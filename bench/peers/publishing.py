"""Results into docs/benchmarks.md, between its marks, and the plots beside it."""

from __future__ import annotations

from pathlib import Path

from bench.peers import chart, report
from bench.peers.environment import ROOT
from bench.peers.results import Results
from bench.peers.systems import SYSTEMS

DOCS = ROOT / "docs"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_LINES = {
    "peers-recall": ("Recall, vector given: p50", "recall_given"),
    "peers-recall-embed": ("Recall and embed, all defaults: p50", "recall_own"),
    "peers-remember-embed": ("Remember and embed: p50", "remember_own"),
}


def publish(results: Results, docs: Path = DOCS) -> list[Path]:
    """The files that were written."""
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    written = []
    for name, drawn in plots(results).items():
        (images / f"{name}.svg").write_text(drawn, "utf-8")
        written.append(images / f"{name}.svg")
    page = docs / "benchmarks.md"
    page.write_text(between(page.read_text("utf-8"), rendered(results)), "utf-8")
    return [page, *written]


def between(page: str, text: str) -> str:
    """The page with this between its marks instead of what is there."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}: put them around what is measured")
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}"


def rendered(results: Results) -> str:
    versions = ", ".join(f"{SYSTEMS[n].title} {v}" for n, v in results.versions.items() if not SYSTEMS[n].ours)
    ours = next((v for n, v in results.versions.items() if SYSTEMS[n].ours), "")
    machine = results.machine
    load = machine.get("load") or [0.0]
    took = f", {results.minutes:g} minutes" if results.minutes else ""
    said = [
        f"Measured {machine['at'][:10]} with `{results.command}`: {machine['cores']} cores ({machine['machine']}), "
        f"Python {machine['python']}, load at the beginning {load[0]:.1f}{took}. Commonplace {ours} with its embedder "
        f"`{results.embedder}`; {versions}.",
        "",
        *(f"![{title}](images/{name}.svg)" for name, (title, _) in _LINES.items()),
        "![What is found on the corpus](images/peers-quality.svg)" if results.quality else "",
        "",
        "## Ratios",
        "",
        "How many times better Commonplace is: above 1 it wins. A loss is bold, and the number after it leads to why.",
        "",
        report.ratios_table(results),
        "",
        "## Figures",
        "",
        report.tables(results),
    ]
    return "\n".join(said)


def plots(results: Results) -> dict[str, str]:
    made = {}
    for name, (heading, part) in _LINES.items():
        series = {
            SYSTEMS[system].title: [
                (float(size), rows[system][part]["p50_ms"])
                for size, rows in sorted(results.sizes.items())
                if part in rows.get(system, {})
            ]
            for system in SYSTEMS
        }
        made[name] = chart.lines(heading, "ms", series)
    if held := {name: row for name, row in results.quality.items() if "recall@5" in row}:
        rows = {report.title(name): (row["recall@5"], row["rightly_empty"]) for name, row in held.items()}
        names = ("recall@5", "unanswerable questions answered with nothing")
        made["peers-quality"] = chart.bars("What is found on the corpus", rows, names)
    return made
