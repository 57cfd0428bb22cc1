"""Figures as tables on the terminal, as JSON and as plots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.quality.measures import Figures

COLUMNS = ("recall@1", "recall@5", "recall@10", "ndcg@10", "mrr", "median ms")


def table(title: str, rows: Mapping[str, Figures]) -> str:
    width = max([len(name) for name in rows] + [20])
    lines = [title, f"{'':<{width}}{'n':>6}" + "".join(f"{column:>11}" for column in COLUMNS)]
    for name, figures in rows.items():
        cells = "".join(f"{figures.values.get(c, 0.0):>11.{2 if c == 'median ms' else 3}f}" for c in COLUMNS)
        lines.append(f"{name:<{width}}{figures.questions:>6}{cells}")
    return "\n".join(lines)


def as_json(results: Mapping[str, Any], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)

    def plain(value: Any) -> Any:
        return {"questions": value.questions, **value.values} if isinstance(value, Figures) else str(value)

    file.write_text(json.dumps(results, indent=2, default=plain) + "\n")


def plots(results: Mapping[str, Mapping[str, Mapping[str, Figures]]], folder: Path) -> list[Path]:
    """One picture per data set: what is compared, and the categories. None without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, parts in results.items():
        figure, axes = pyplot.subplots(1, len(parts), figsize=(6 * len(parts), 4.5), squeeze=False)
        for axis, (title, rows) in zip(axes[0], parts.items(), strict=True):
            places = range(len(rows))
            for offset, measure in ((-0.2, "recall@5"), (0.2, "recall@10")):
                values = [figures.values[measure] for figures in rows.values()]
                axis.barh([place + offset for place in places], values, 0.4, label=measure)
            axis.set_yticks(list(places), list(rows))
            axis.invert_yaxis()
            axis.set_xlim(0, 1)
            axis.set_title(f"{name}: {title}")
        axes[0][0].legend(loc="lower right")
        figure.tight_layout()
        file = folder / f"quality-{name.replace(' ', '-').replace(',', '')}.png"
        figure.savefig(file, dpi=110)
        pyplot.close(figure)
        files.append(file)
    return files
