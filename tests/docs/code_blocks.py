"""The code in a document: blocks with the file they are, and blocks without."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


def files_of(document: str) -> dict[str, str]:
    """What is written after a line that is nothing but a file name and a colon."""
    return {match["file"]: match["code"] for match in _BLOCK.finditer(document) if match["file"]}


def blocks_of(document: str, language: str) -> list[str]:
    """Those that are no whole file."""
    found = _BLOCK.finditer(document)
    return [match["code"] for match in found if match["language"] == language and not match["file"]]


def without_files(document: str) -> str:
    """The document without the files that its readers are to write: what they name need not exist yet."""
    return _BLOCK.sub(lambda match: "" if match["file"] else match[0], document)


def shell_steps(document: str) -> list[tuple[str, list[str]]]:
    """Each shell block with the lines of the block right after it: what it prints, where that is shown."""
    steps: list[tuple[str, list[str]]] = []
    end = -1
    for match in _BLOCK.finditer(document):
        if match["language"] == "sh":
            steps.append((match["code"], []))
            end = match.end()
        elif match["language"] == "" and end >= 0 and not document[end : match.start()].strip():
            steps[-1][1].extend(match["code"].splitlines())
            end = -1
    return steps
