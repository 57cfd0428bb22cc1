"""All policy, once: what may be written, read, merged, forgotten, staged and audited. No HTTP, no SQL.

`Engine` is the only door. Other layers use it, and the requests, answers and rules named here; import-linter keeps them
out of the rooms behind it.
"""

from commonplace.engine.checks import require_role as require_role
from commonplace.engine.core import Settings as Settings
from commonplace.engine.engine import Engine as Engine, callers_review_url as callers_review_url
from commonplace.engine.governance.client import (
    GovernanceClient as GovernanceClient,
    GovernanceDecision as GovernanceDecision,
    ReviewerIdentity as ReviewerIdentity,
)
from commonplace.engine.governance.decisions import Decision as Decision, ReviewOutcome as ReviewOutcome
from commonplace.engine.governance.staging import draft_document as draft_document
from commonplace.engine.governance.taint import BadSource as BadSource
from commonplace.engine.graph.statements import AssertResult as AssertResult
from commonplace.engine.ledger.audit import AUDIT_OPERATIONS as AUDIT_OPERATIONS
from commonplace.engine.ledger.evidence import read_evidence as read_evidence
from commonplace.engine.memory.read import tagged as tagged
from commonplace.engine.memory.undo import UndoResult as UndoResult
from commonplace.engine.memory.write import CAPTURED as CAPTURED, IMPORTED as IMPORTED, MAX_BATCH as MAX_BATCH
from commonplace.engine.outbox.deliveries import DeliveryReport as DeliveryReport
from commonplace.engine.outbox.replicas import Attachment as Attachment
from commonplace.engine.palaces.palace_recall import (
    PalaceRecall as PalaceRecall,
    effective_importance as effective_importance,
)
from commonplace.engine.palaces.palaces import Palace as Palace
from commonplace.engine.peers.asking import (
    MAX_ASKED as MAX_ASKED,
    Match as Match,
    PeerQuery as PeerQuery,
    in_domain as in_domain,
)
from commonplace.engine.peers.identity import Identity as Identity
from commonplace.engine.peers.peers import (
    MAX_LISTED as MAX_LISTED,
    Requester as Requester,
    TrustContext as TrustContext,
)
from commonplace.engine.peers.request_dedup import RequestIdReused as RequestIdReused
from commonplace.engine.peers.trust import Peer as Peer, author_level as author_level
from commonplace.engine.peers.vouches import VouchedTrust as VouchedTrust
from commonplace.engine.procedures.procedures import ProcedureResult as ProcedureResult
from commonplace.engine.rate_limit import TokenBucket as TokenBucket, rate_limited as rate_limited
from commonplace.engine.recall.recall import shown_score as shown_score
from commonplace.engine.redaction import Redactor as Redactor
from commonplace.engine.runs.refs import MemoryScope as MemoryScope
from commonplace.engine.runs.run_notes import RunNote as RunNote
from commonplace.engine.runs.runs import BACKENDS as BACKENDS, Run as Run, check_secrets as check_secrets
from commonplace.engine.tokens import Token as Token, authenticate as authenticate
from commonplace.engine.transfer.admission import (
    MERGED_IN_A_CIRCLE as MERGED_IN_A_CIRCLE,
    MERGED_INTO_ITSELF as MERGED_INTO_ITSELF,
)
from commonplace.engine.transfer.erasures import Erasures as Erasures
from commonplace.engine.transfer.imports import Outcome as Outcome, stated_already as stated_already
from commonplace.engine.transfer.migration import Migration as Migration
from commonplace.engine.transfer.migration_marks import (
    check_target as check_target,
    is_copy as is_copy,
    require_unfinished as require_unfinished,
    require_whole as require_whole,
)
from commonplace.engine.transfer.near_duplicates import NearDuplicates as NearDuplicates
from commonplace.engine.transfer.store_digest import plan_tenants as plan_tenants
from commonplace.engine.types import (
    BatchItem as BatchItem,
    Draft as Draft,
    Expire as Expire,
    Fire as Fire,
    Forget as Forget,
    ForgetResult as ForgetResult,
    Hit as Hit,
    Merge as Merge,
    MergeResult as MergeResult,
    Query as Query,
    Receipt as Receipt,
    Statement as Statement,
    Update as Update,
)
from commonplace.engine.upkeep.restore import restore_backup as restore_backup
from commonplace.stores.base import AuditEntry as AuditEntry
from commonplace.stores.graph import Triple as Triple
from commonplace.stores.optional import Progress as Progress
