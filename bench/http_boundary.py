"""What the JSON boundary costs a request: decode, validate, encode. Nothing is stored, nothing is searched.

python -m bench.http_boundary [--rounds 5000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commonplace.serve.http_io import decode_body, encode
from commonplace.wire.models import (
    ForgetRequest,
    ForgetResponse,
    Message,
    RecallHit,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
    StoreOutcome,
)
from commonplace.wire.validate import parse

TARGET_US = 50.0
TEXT = "Alice prefers the 07:42 train because the later one is always full and she likes to arrive before nine."
ID = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
REMEMBER = {"agent_id": "assistant", "type": "semantic", "content": TEXT, "user_id": "alice", "confidence": 0.9,
            "metadata": {"tags": ["travel", "habits"], "project": "atlas", "source_line": 42}}  # fmt: skip
RECALL = {"agent_id": "assistant", "query": "which train does Alice take?", "k": 5, "types": ["semantic", "episodic"]}


def remembered() -> Message:
    return RememberResponse(id=ID, stored_at=1, stores=["sqlite"], pending_approval=False)


def recalled() -> Message:
    hits = [
        RecallHit.model_construct(
            id=ID, type="semantic", content=TEXT, score=0.5, metadata=REMEMBER["metadata"], created_at=1,
            source_store="sqlite", confidence=0.9, user_id="alice", relevance=0.7,
        )
        for _ in range(5)
    ]  # fmt: skip
    return RecallResponse(results=hits, fusion_used="rrf", stores_queried=["sqlite"], latency_ms=3)


def forgotten() -> Message:
    return ForgetResponse(forgotten_ids=[ID], stores=[StoreOutcome(store="sqlite", count=1)], hard_delete=False)


CASES: list[tuple[str, type[Message], dict[str, Any], Callable[[], Message]]] = [
    ("remember", RememberRequest, REMEMBER, remembered),
    ("recall, 5 hits", RecallRequest, RECALL, recalled),
    ("forget", ForgetRequest, {"agent_id": "assistant", "ids": [ID]}, forgotten),
]


def microseconds(work: Callable[[], object], rounds: int) -> float:
    """Processor time, the median of short batches, so that another process does not count."""
    batch = 50
    samples = []
    for _ in range(max(rounds // batch, 5)):
        started = time.process_time()
        for _ in range(batch):
            work()
        samples.append((time.process_time() - started) / batch * 1e6)
    return statistics.median(samples)


def measure(rounds: int) -> list[dict[str, Any]]:
    rows = []
    for name, model, document, answer in CASES:
        body = json.dumps(document).encode()
        plain = decode_body(body)
        parts = {
            "decode": microseconds(lambda body=body: decode_body(body), rounds),
            "validate": microseconds(lambda model=model, plain=plain: parse(model, plain), rounds),
            "encode": microseconds(lambda answer=answer: encode(answer()), rounds),
        }
        rows.append({"request": name, **parts, "total": sum(parts.values())})
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5000)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    rows = measure(given.rounds)
    print(f"{'request':<18}{'decode':>9}{'validate':>10}{'encode':>9}{'total':>9}  µs, target < {TARGET_US:g}")
    for row in rows:
        print(
            f"{row['request']:<18}{row['decode']:>9.1f}{row['validate']:>10.1f}{row['encode']:>9.1f}{row['total']:>9.1f}"
        )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
