"""`python -m bench.mcp_tokens`: what each set of MCP tools costs a conversation before anything is asked.

Tokens are counted with the tokenizer of the encoder that ships (WordPiece), which takes every bracket and comma of
JSON for a token of its own and so counts more than the tokenizers of language models do; with tiktoken and its
vocabulary at hand (`TIKTOKEN_CACHE_DIR`) those of o200k_base are shown as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commonplace import embedders
from commonplace.serve.mcp.sessions import RequestSession
from commonplace.serve.mcp.versions import tool_document
from commonplace.serve.protocols import load_tool_set, tool_set_names
from commonplace.wire.record import Principal

TARGET = 2_000  # of the default set
SHOWN = ("name", "description", "inputSchema")  # what a client hands to its model

Count = Callable[[str], int]


def word_pieces() -> Count:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(embedders.__file__).parent / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def byte_pairs() -> Count | None:
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
    except Exception:  # not installed, or no vocabulary and no network
        return None
    return lambda text: len(encoding.encode(text))


def listing(name: str) -> list[dict[str, Any]]:
    """As `tools/list` answers it."""
    session: Any = RequestSession(None, Principal(), "default")  # type: ignore[arg-type]
    return [tool_document(tool, session, "2025-11-25") for tool in load_tool_set(name).tools]


def as_sent(documents: list[dict[str, Any]]) -> str:
    return json.dumps(documents, separators=(",", ":"), ensure_ascii=False)


def as_read(documents: list[dict[str, Any]]) -> str:
    """Without what a client keeps to itself: hints, titles and schemas of answers."""
    return as_sent([{key: document[key] for key in SHOWN} for document in documents])


def main() -> int:
    counts = {"WordPiece": word_pieces()}
    if (pairs := byte_pairs()) is not None:
        counts["o200k_base"] = pairs
    print(
        f"{'set':<12} {'tools':>5} {'characters':>10}  " + "  ".join(f"{name:>10}" for name in counts) + "  whole list"
    )
    for name in tool_set_names():
        documents = listing(name)
        figures = "  ".join(f"{count(as_read(documents)):>10,}" for count in counts.values())
        whole = counts["WordPiece"](as_sent(documents))
        print(f"{name:<12} {len(documents):>5} {len(as_read(documents)):>10,}  {figures}  {whole:>10,}")
    cost = counts["WordPiece"](as_read(listing("commonplace")))
    print(f"\nThe default set costs {cost:,} tokens; the target is at most {TARGET:,}.")
    return 0 if cost <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
