"""Why ours loses where it does. A loss without a sentence here is reported as unexplained.

A sentence is looked up by measure and system, then by measure alone; a measure is named without p50, p95 or CPU where
the three have one cause. Each must be true wherever it is shown: of the systems as they are used here, at any size.
"""

from __future__ import annotations

ANY = "*"

_ENGINE = (
    "Beside the search by meaning a recall of Commonplace searches by words, reads the turns around the best "
    "hits, ranks by time, speaker and validity, and counts and audits what it gave; that part does not grow with "
    "the store, so it weighs most in a small one."
)
_BARE_SEARCH = (
    "sqlite-vec alone compares the vector with every row and does nothing else; its time grows with every memory, "
    "while Commonplace's is mostly ranking, counting and audit, which do not."
)
_NO_SEARCH = (
    "The MCP memory server embeds nothing: it reads its whole file and looks for the question as one piece of "
    "text, which hardly any memory contains; the corpus shows what that finds."
)
_JUDGE = (
    "With all defaults Commonplace says whether anything answers at all, and has its judge read the best "
    "candidates where that is in doubt; no peer does, and the rows without judging are the like-for-like ones."
)
_ONE_TRANSACTION = (
    "Commonplace writes a version, its terms, its vectors and a chained audit entry in one transaction, on a "
    "thread of its own that keeps the caller's loop free; the peer writes less."
)
_NOT_SYNCED = (
    "LanceDB answers before the disk has written anything (see Durability): what it has acknowledged can be lost "
    "with the power. Commonplace syncs every memory."
)
_SEPARATE_WRITES = (
    "memorywire makes a transaction of each statement, which is more waiting for the disk but less bookkeeping: its "
    "audit is not chained, and its words are FTS5's own."
)
_FILE_REWRITTEN = (
    "The MCP memory server neither embeds nor syncs; it writes its whole file anew for every memory, which grows "
    "with the store."
)
_ENGINE_AND_MODELS = (
    "A process of Commonplace holds the engine beside the embedder, and the judge as soon as an answer is in "
    "doubt; the peer is given the embedder alone."
)
_NO_MODEL = "The MCP memory server loads no model, because it does not search by meaning."
_MORE_KEPT = (
    "Commonplace keeps versions, audit entries, terms for the search by words and what its ranking derives from a "
    "text beside text and vector, so that a memory can be found, traced and taken back; the peer keeps less."
)
_NEVER_ANYTHING = (
    "The MCP memory server finds nothing for nearly every question, whether a memory answers it or not; the column of "
    "answerable questions shows it."
)

REASONS: dict[tuple[str, str], str] = {
    ("recall_given", ANY): _ENGINE,
    ("recall_given", "sqlite-vec"): _BARE_SEARCH,
    ("recall_given", "mcp-memory"): _NO_SEARCH,
    ("recall_filtered", ANY): _ENGINE,
    ("recall_filtered", "sqlite-vec"): _BARE_SEARCH,
    ("recall_filtered", "mcp-memory"): _NO_SEARCH,
    ("recall_unjudged", ANY): _ENGINE,
    ("recall_unjudged", "sqlite-vec"): _BARE_SEARCH,
    ("recall_unjudged", "mcp-memory"): _NO_SEARCH,
    ("recall_own", ANY): _JUDGE,
    ("recall_own", "mcp-memory"): _NO_SEARCH,
    ("remember_given", ANY): _ONE_TRANSACTION,
    ("remember_given", "lancedb"): _NOT_SYNCED,
    ("remember_given", "mcp-memory"): _FILE_REWRITTEN,
    ("remember_given", "memorywire"): _SEPARATE_WRITES,
    ("remember_own", ANY): _ONE_TRANSACTION,
    ("remember_own", "lancedb"): _NOT_SYNCED,
    ("remember_own", "mcp-memory"): _FILE_REWRITTEN,
    ("remember_own", "memorywire"): _SEPARATE_WRITES,
    ("start", ANY): _ENGINE_AND_MODELS,
    ("start", "mcp-memory"): _NO_MODEL,
    ("memory", ANY): _ENGINE_AND_MODELS,
    ("memory", "mcp-memory"): _NO_MODEL,
    ("disk", ANY): _MORE_KEPT,
    ("no-match", "mcp-memory"): _NEVER_ANYTHING,
}


def reason(measure: str, system: str) -> str | None:
    family = measure.partition(" ")[0]
    for key in ((measure, system), (family, system), (measure, ANY), (family, ANY)):
        if key in REASONS:
            return REASONS[key]
    return None
