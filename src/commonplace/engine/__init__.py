"""All policy, once: what may be written, read, merged, forgotten, staged and audited. No HTTP, no SQL.

`Engine` is the only door. Other layers use it, and the requests, answers and rules named here; import-linter keeps them
out of the rooms behind it.
"""

from commonplace.engine.core import Settings, require_role
from commonplace.engine.engine import Engine
from commonplace.engine.governance.reviews import Decision, ReviewOutcome
from commonplace.engine.memory.read import tagged
from commonplace.engine.memory.write import MAX_BATCH
from commonplace.engine.palaces.palace_recall import PalaceRecall, effective_importance
from commonplace.engine.palaces.palaces import Palace
from commonplace.engine.peers.asking import MOST_ASKED, Match, PeerQuery, in_domain
from commonplace.engine.peers.identity import Identity
from commonplace.engine.peers.peers import Peers, Requester, TrustContext
from commonplace.engine.peers.request_dedup import RequestIdReused, slot
from commonplace.engine.peers.trust import Peer, author_level
from commonplace.engine.peers.vouches import VouchedTrust
from commonplace.engine.rate_limit import Budget, refuse
from commonplace.engine.recall.recall import shown_relevance
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.run_notes import RunNote
from commonplace.engine.runs.runs import BACKENDS, Run, check_secrets
from commonplace.engine.tokens import Token, authenticate
from commonplace.engine.types import (
    BatchItem,
    Draft,
    Expire,
    Forget,
    ForgetResult,
    Hit,
    Merge,
    MergeResult,
    Query,
    RecallResult,
    Receipt,
    SearchResult,
    Snapshot,
    UpsertResult,
)
from commonplace.stores.base import AuditEntry, Progress
from commonplace.stores.graph import Triple

__all__ = [
    "BACKENDS",
    "MAX_BATCH",
    "MOST_ASKED",
    "AuditEntry",
    "BatchItem",
    "Budget",
    "Decision",
    "Draft",
    "Engine",
    "Expire",
    "Forget",
    "ForgetResult",
    "Hit",
    "Identity",
    "Match",
    "MemoryScope",
    "Merge",
    "MergeResult",
    "Palace",
    "PalaceRecall",
    "Peer",
    "PeerQuery",
    "Peers",
    "Progress",
    "Query",
    "RecallResult",
    "Receipt",
    "RequestIdReused",
    "Requester",
    "ReviewOutcome",
    "Run",
    "RunNote",
    "SearchResult",
    "Settings",
    "Snapshot",
    "Token",
    "Triple",
    "TrustContext",
    "UpsertResult",
    "VouchedTrust",
    "authenticate",
    "author_level",
    "check_secrets",
    "effective_importance",
    "in_domain",
    "refuse",
    "require_role",
    "shown_relevance",
    "slot",
    "tagged",
]
