"""What a record is called where there is one line for it. Short: `search` and `list` share nothing else."""

from __future__ import annotations

from commonplace.cli.support.output import Document, flat

_LONGEST = 100


def headline(record: Document) -> str:
    """What a record is called: its title, else the task, else where it is from, else how it begins."""
    for name in ("title", "working_on"):
        if isinstance(record.get(name), str) and record[name].strip():
            return flat(record[name])
    if isinstance(record.get("file_path"), str) and record["file_path"]:
        start = record.get("start_line")
        return flat(record["file_path"] + (f":{start}" if isinstance(start, int) else ""))
    return shortened(record.get("content", ""))


def shortened(text: str) -> str:
    text = flat(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
