"""Memories and conditions to try filters with: every operator, and anything at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from commonplace.wire.filters import COLUMNS, DOCUMENTS, OPERATORS, Condition
from commonplace.wire.record import Memory

NOW = 1_750_000_000_000

# Pools that overlap, so that generated conditions meet generated values often.
_KEYS = ("a", "b", "c d", "é", "line\nbreak", "0", "a[0]", "x'y", "metadata", "#", "日本", "tab\t")
_STRINGS = (
    "",
    "a",
    "b",
    "ab",
    "A",
    "1",
    "1.0",
    "true",
    "null",
    "é",
    "e\u0301",
    "nul\0byte",
    "😀",
    "\u202eright",
    "é\u2028",
    "%",
    "_",
)
# Integers past 64 bits are floats to SQLite: as a stored value only, and never beside a float as large as they are.
_NUMBERS = (
    0, -0.0, 1, 1.0, -1, 2, 0.1, 0.5, 1e300, -1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63),
    float(2**63), NOW, 1.5,
)  # fmt: skip
BEYOND_64_BITS = (2**63, 2**63 + 1, -(2**63) - 1, 10**30, 10**400)

scalars = st.one_of(st.none(), st.booleans(), st.sampled_from(_STRINGS), st.sampled_from(_NUMBERS))
stored = st.one_of(
    scalars, st.sampled_from(BEYOND_64_BITS), st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    stored,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3),
    max_leaves=6,
)
documents = st.dictionaries(st.sampled_from(_KEYS), values, max_size=4)
floats = st.floats(-9e18, 9e18, allow_nan=False)
operands = st.one_of(
    scalars.filter(lambda v: not isinstance(v, float) or abs(v) < 2**63),
    st.text(max_size=2),
    st.integers(-(2**63), 2**63 - 1),
    floats,
)


@st.composite
def conditions(draw: Any) -> Condition:
    if draw(st.booleans()):
        document = draw(st.sampled_from(sorted(DOCUMENTS)))
        path = (document, *draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=2)))
    else:
        path = (draw(st.sampled_from(sorted(COLUMNS))),)
    op = draw(st.sampled_from(sorted(OPERATORS)))
    if op in ("in", "nin"):
        return Condition(path, op, draw(st.lists(operands, max_size=4)))
    if op == "exists":
        return Condition(path, op, draw(st.booleans()))
    if op in ("gt", "gte", "lt", "lte"):
        return Condition(
            path, op, draw(operands.filter(lambda v: isinstance(v, (int, float, str)) and not isinstance(v, bool)))
        )
    return Condition(path, op, draw(operands))


@st.composite
def memories(draw: Any) -> Memory:
    text = st.sampled_from(_STRINGS) | st.none()
    moment = st.sampled_from((0, 1, NOW, 2**53)) | st.none()
    return Memory(
        id="", tenant="t", agent_id="agent", type=draw(st.sampled_from(("semantic", "episodic"))),
        content=draw(st.sampled_from(_STRINGS)), kind=draw(st.sampled_from(_STRINGS)), user_id=draw(text),
        project=draw(text), title=draw(text), entity_name=draw(text), source=draw(text), session_id=draw(text),
        speaker=draw(text), tags=draw(st.lists(st.sampled_from(_STRINGS), max_size=3)), metadata=draw(documents),
        privacy=draw(documents),
        confidence=draw(st.sampled_from((0.0, 0.1, 0.5, 1.0, 1))), importance=draw(st.sampled_from((None, 0.5, 1))),
        expires_at=draw(moment), event_time=draw(moment), created_at=NOW, demotion=draw(st.sampled_from((1.0, 0.25))),
    )  # fmt: skip


MEMORY = Memory(
    "1", "t", "agent", "semantic", "Alice eats no peanuts", user_id="alice", tags=["food", "health"], confidence=0.5,
    metadata={"n": 3, "s": "text", "yes": True, "none": None, "list": [1, "x", None, [2]], "deep": {"er": {"est": 7}}},
)  # fmt: skip

MEANING = [
    # path, operator, operand, holds
    ("n", "$eq", 3, True), ("n", "$eq", 3.0, True), ("n", "$eq", "3", False), ("n", "$eq", True, False),
    ("yes", "$eq", True, True), ("yes", "$eq", 1, False), ("yes", "$eq", False, False),
    ("none", "$eq", None, True), ("absent", "$eq", None, True), ("s", "$eq", None, False),
    ("list", "$eq", 1, True), ("list", "$eq", "x", True), ("list", "$eq", None, True), ("list", "$eq", 2, False),
    ("deep", "$eq", 7, False), ("deep.er.est", "$eq", 7, True), ("metadata.deep.er.est", "$eq", 7, True),
    ("s.er", "$eq", None, True), ("list.0", "$eq", 1, False),
    ("n", "$ne", 3, False), ("n", "$ne", 4, True), ("absent", "$ne", 4, True), ("list", "$ne", 1, False),
    ("n", "$gt", 2, True), ("n", "$gt", 3, False), ("n", "$gte", 3, True), ("n", "$lt", 4, True),
    ("n", "$lt", 3, False), ("n", "$lte", 3, True), ("n", "$gt", "2", False), ("s", "$gt", "tex", True),
    ("s", "$lt", "tex", False), ("absent", "$lt", 1, False), ("none", "$lt", 1, False), ("yes", "$gt", 0, False),
    ("list", "$gt", 0, False), ("n", "$gt", 2.5, True),
    ("n", "$in", [1, 3], True), ("n", "$in", [], False), ("absent", "$in", [None], True),
    ("list", "$in", [5, "x"], True),
    ("n", "$nin", [1, 3], False), ("n", "$nin", [], True), ("absent", "$nin", [1], True),
    ("absent", "$nin", [None], False),
    ("n", "$exists", True, True), ("n", "$exists", False, False), ("absent", "$exists", False, True),
    ("none", "$exists", True, False), ("deep", "$exists", True, True), ("tags", "$exists", True, True),
    ("title", "$exists", True, False), ("title", "$exists", False, True),
    ("s", "$contains", "ex", True), ("s", "$contains", "", True), ("s", "$contains", "EX", False),
    ("n", "$contains", 3, False), ("list", "$contains", "x", True), ("list", "$contains", None, True),
    ("list", "$contains", 9, False), ("tags", "$contains", "food", True), ("tags", "$contains", "foo", False),
    ("content", "$contains", "peanuts", True), ("content", "$contains", "Bob", False),
    ("user_id", "$eq", "alice", True), ("type", "$in", ["episodic", "semantic"], True),
    ("confidence", "$lt", 0.6, True),
    ("tags", "$eq", "health", True), ("tags", "$nin", ["food"], False), ("tags", "$eq", None, False),
]  # fmt: skip
