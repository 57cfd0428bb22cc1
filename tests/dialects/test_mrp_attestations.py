"""Memories as attestations and back: nothing is lost, and what came signed stays signed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from mrp_talk import Talk, attestation, key

from commonplace.dialects.memorywire import to_wire
from commonplace.dialects.mrp import signatures
from commonplace.dialects.mrp.attestations import (
    CATEGORIES,
    CLAIMS,
    SOURCES,
    has_evidence,
    signed,
    to_attestation,
    to_draft,
    verbatim,
)
from commonplace.engine.memory.write import new_memory
from commonplace.testing.subject import DAY_MS, START, Subject
from commonplace.wire.errors import SecretLeakage, ValidationError
from commonplace.wire.record import MEMORY_TYPES, Memory, Principal
from commonplace.wire.times import iso
from commonplace.wire.validate import check

Over = tuple[Subject, Callable[[Any], Any]]
PRIVATE, PUBLIC = key()
OTHER, _ = key()

words = st.text(min_size=1, max_size=20).filter(lambda t: bool(t.strip()) and "\x00" not in t)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=5,
)  # fmt: skip
times = st.integers(0, 253_402_300_799_999).map(iso)


@st.composite
def attestations(draw: Any) -> dict[str, Any]:
    """Anything that follows the schema, with fields nobody has heard of."""
    made = attestation(draw(words))
    made |= {"id": draw(words), "agent": draw(words), "created_at": draw(times)}
    made["claim"] |= {"type": draw(st.sampled_from(CLAIMS)), "references": draw(st.lists(words, max_size=3))}
    made["salience"] |= {
        "category": draw(st.sampled_from(CATEGORIES)), "confidence": draw(st.floats(0, 1)),
        "supersedes": draw(st.lists(words, max_size=2)),
        "expected_decay": draw(
            st.sampled_from([{"type": "permanent"}, {"type": "conditional", "until": "it rains"}, None])
            | times.map(lambda at: {"type": "time-bound", "until": at})
        ),
    }  # fmt: skip
    made["provenance"] |= {
        "source": draw(st.sampled_from(SOURCES)),
        "witnesses": draw(st.lists(st.fixed_dictionaries({"agent": words, "timestamp": times}), max_size=2)),
        "chain": draw(st.lists(words | st.dictionaries(words, words, max_size=2), max_size=2)),
    }
    for part in (made, made["claim"], made["salience"], made["provenance"]):
        part.update(draw(st.dictionaries(words.map(lambda w: f"x-{w}"), plain, max_size=2)))
    return signatures.sign_attestation(made, PRIVATE)


def as_memory(document: dict[str, Any], agent: str = "alice") -> Memory:
    """What is read back after the store has written it."""
    draft = to_draft(document, agent, "Babel")
    memory = new_memory(Principal(), draft, START)
    memory.provenance = json.loads(json.dumps(memory.provenance))
    return memory


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(attestations())
def test_what_was_received_goes_out_as_it_came(document: dict[str, Any]) -> None:
    check("mrp/attestation-v1", document)
    again = signed(as_memory(document), key()[0])
    assert again == document
    assert json.dumps(again, sort_keys=True) == json.dumps(document, sort_keys=True)
    assert signatures.verify_attestation(again, PUBLIC)


@st.composite
def memories(draw: Any) -> Memory:
    optional = st.none() | words
    metadata = draw(st.dictionaries(words, plain, max_size=2))
    for name in ("why_kept", "context", "category", "references", "expected_decay"):
        if draw(st.booleans()):
            metadata[name] = draw(plain | st.sampled_from(CATEGORIES) | st.lists(words, max_size=2))
    return Memory(
        id="01977420-dc00-71a8-aa3c-9e6a9a2e68ef", tenant="t", agent_id=draw(words), content=draw(words),
        type=draw(st.sampled_from(MEMORY_TYPES)), kind=draw(st.sampled_from((*CLAIMS, "lesson", ""))),
        title=draw(optional), source=draw(optional | st.sampled_from(SOURCES)), metadata=metadata,
        confidence=draw(st.floats(0, 1)), importance=draw(st.none() | st.floats(0, 1)), created_at=START,
        expires_at=draw(st.none() | st.integers(START + 1, 2**53)), supersedes=draw(st.lists(words, max_size=2)),
        provenance=draw(st.dictionaries(st.sampled_from(("witnesses", "chain", "attestation", "source")), plain)),
    )  # fmt: skip


@settings(max_examples=75, deadline=None)
@given(memories())
def test_every_memory_makes_an_attestation_that_says_the_same(memory: Memory) -> None:
    made = signed(memory, PRIVATE)
    check("mrp/attestation-v1", made)
    assert signatures.verify_attestation(made, PUBLIC)
    assert to_attestation(memory) == to_attestation(memory), "the hash must not change from one answer to the next"
    back = to_draft(made, memory.agent_id)
    assert (back.content, back.confidence, back.supersedes) == (memory.content, memory.confidence, memory.supersedes)
    if memory.expires_at is None or memory.expires_at < 253_402_300_799_999:
        assert back.expires_at == memory.expires_at
    if memory.kind in CLAIMS:
        assert back.kind == memory.kind
    if memory.source and memory.source not in SOURCES:
        assert memory.source in back.metadata["references"]
    assert back.aliases == [memory.id]


@pytest.mark.parametrize(("claim", "type"), [
    ("fact", "semantic"), ("event", "episodic"), ("insight", "semantic"), ("observation", "semantic"),
    ("relationship", "semantic"),
])  # fmt: skip
def test_claims_and_types_map_as_the_table_says(claim: str, type: str) -> None:
    document = attestation()
    document["claim"]["type"] = claim
    memory = as_memory(document)
    assert (memory.type, memory.kind, memory.content) == (type, claim, "Pruning is identity")
    own = Memory("i", "t", "a", memory.type, "x")
    assert to_attestation(own)["claim"]["type"] == ("event" if type == "episodic" else "fact")


def test_salience_says_why_how_surely_and_how_long() -> None:
    memory = Memory(
        "i", "t", "alice", "semantic", "x", kind="lesson", confidence=0.7, expires_at=START + DAY_MS, created_at=START,
        supersedes=["old"], metadata={"why_kept": "it hurt", "references": ["a.md"]}, source="b.md", title="On x",
    )  # fmt: skip
    made = to_attestation(memory)
    assert made["salience"] == {
        "why_kept": "it hurt", "category": "ephemeral", "confidence": 0.7, "supersedes": ["old"],
        "expected_decay": {"type": "time-bound", "until": iso(START + DAY_MS)},
    }  # fmt: skip
    assert made["claim"] == {"type": "fact", "content": "x", "references": ["a.md", "b.md"], "context": "On x"}
    assert made["provenance"] == {"source": "direct-experience", "witnesses": [], "chain": []}
    assert (made["id"], made["agent"], made["created_at"]) == ("i", "alice", "2025-06-15T15:06:40.000Z")
    assert has_evidence(made, {}, own=True)
    assert not has_evidence(to_attestation(Memory("i", "t", "a", "semantic", "x")), {}, own=True)
    weighty = Memory("i", "t", "a", "semantic", "x", importance=0.9)
    assert to_attestation(weighty)["salience"]["category"] == "foundational"


def test_a_received_attestation_is_kept_verbatim_with_where_it_came_from(over: Over) -> None:
    talk = Talk(*over)
    document = attestation()
    document["provenance"] |= {"witnesses": [{"agent": "carol", "timestamp": "2025-06-01T12:00:00Z"}], "chain": ["a0"]}
    document = signatures.sign_attestation({**document, "x-extra": {"kept": 1.5}}, PRIVATE)
    kept = talk.run(talk.mrp().keep(document, from_agent="djclawd", agent="alice"))
    assert kept["created"] is True
    memory = talk.run(talk.subject.get(kept["memory_id"], "alice"))
    assert memory.provenance["attestation"] == document
    assert memory.provenance["source"] == "received"
    assert memory.provenance["from"] == "djclawd"
    assert memory.provenance["witnesses"] == document["provenance"]["witnesses"]
    assert memory.provenance["chain"][0] == "a0"
    assert memory.provenance["chain"][1]["from"] == "djclawd"
    assert memory.aliases == [document["id"]]
    assert memory.id != document["id"]
    assert to_wire(memory)["metadata"]["author"] == "Babel"
    result = talk.ask("what is identity?")["results"][0]
    assert result["attestation"] == document
    assert result["memory_id"] == kept["memory_id"]
    assert signatures.verify_attestation(result["attestation"], PUBLIC)
    assert "received from djclawd" in result["match_context"]
    assert talk.run(talk.mrp().keep(document, from_agent="djclawd", agent="alice")) == {
        "memory_id": kept["memory_id"], "created": False,
    }  # fmt: skip
    other = signatures.sign_attestation({**document, "claim": {"type": "fact", "content": "else"}}, PRIVATE)
    with pytest.raises(ValidationError, match="came under the id"):
        talk.run(talk.mrp().keep(other, from_agent="djclawd", agent="alice"))


def test_what_was_changed_since_is_attested_by_whoever_changed_it(over: Over) -> None:
    talk = Talk(*over)
    document = attestation()
    document["provenance"] |= {"witnesses": [{"agent": "carol"}], "chain": ["a0"]}
    document = signatures.sign_attestation(document, PRIVATE)
    id = talk.run(talk.mrp().keep(document, from_agent="Babel", agent="agent"))["memory_id"]
    talk.run(talk.subject.update(id, content="Pruning is not identity"))
    memory = talk.run(talk.subject.get(id))
    assert verbatim(memory) is None
    result = talk.ask("what is identity?")["results"][0]["attestation"]
    assert (result["agent"], result["id"], result["provenance"]["source"]) == ("agent", id, "received")
    assert result["claim"]["content"] == "Pruning is not identity"
    (link,) = result["provenance"]["chain"]
    assert link["attestation"] == document["id"]
    assert result["provenance"]["witnesses"] == [], "they saw something else"


def test_what_is_received_replaces_nothing_of_anyone_elses(over: Over) -> None:
    talk = Talk(*over)
    ours = talk.remember("The account of the club is 111")

    def keep(private: str, content: str, *superseded: str, agent: str = "Babel") -> str:
        made = attestation(content, agent=agent)
        made["salience"]["supersedes"] = list(superseded)
        made = signatures.sign_attestation(made, private)
        kept = talk.run(talk.mrp().keep(made, from_agent="Babel", agent="alice"))["memory_id"]
        assert verbatim(talk.run(talk.subject.get(kept, "alice"))) == made, "it goes out as it came"
        return made["id"]

    def superseded(content: str) -> list[str]:
        (found,) = [m for m in talk.run(talk.subject.list("alice")) if m.content == content]
        return found.supersedes

    first = keep(PRIVATE, "The account is 222")
    keep(PRIVATE, "The account is 333", ours, first, "not-here-yet")
    assert superseded("The account is 333") == [first, "not-here-yet"]
    keep(OTHER, "The account is 444", ours, first)
    assert superseded("The account is 444") == [], "another hand under the same name"
    forged = attestation("The account is 666")
    forged["salience"]["supersedes"] = [first]
    forged["signatures"] = {"public_key": PUBLIC}
    talk.run(talk.mrp().keep(forged, from_agent="mallory", agent="alice"))
    assert superseded("The account is 666") == [], "naming a key is not signing with it"
    keep(OTHER, "The account is 555", ours, agent="alice")
    assert superseded("The account is 555") == [], "our own agent's name is no proof, either"


@pytest.mark.parametrize("spoil", [
    lambda d: d["claim"].update(content="something else"),
    lambda d: d["salience"].update(confidence=1.0),
    lambda d: d.update(agent="Mallory"),
    lambda d: d["provenance"].update(source="inference"),
    lambda d: d["signatures"].update(agent_signature=d["signatures"]["agent_signature"][::-1]),
    lambda d: d["signatures"].update(full_signature=d["signatures"]["agent_signature"]),
    lambda d: d["signatures"].update(hash="sha256:" + "0" * 64),
    lambda d: d["signatures"].update(public_key="nonsense"),
    lambda d: d["signatures"].update(public_key=key()[1]),
    lambda d: d["claim"].update(type="rumour"),
    lambda d: d.pop("salience"),
    lambda d: d.update(created_at="yesterday"),
])  # fmt: skip
def test_what_is_forged_or_malformed_is_refused_and_nothing_is_stored(over: Over, spoil: Callable[[Any], Any]) -> None:
    talk = Talk(*over)
    document = signatures.sign_attestation(attestation(), PRIVATE)
    spoil(document)
    with pytest.raises(ValidationError):
        talk.run(talk.mrp().keep(document, from_agent="Babel", agent="alice"))
    assert talk.run(talk.engine.upkeep.status(Principal()))["agents"] == {}


def test_an_author_whose_key_is_bound_must_have_signed(over: Over) -> None:
    talk = Talk(*over)
    talk.trust("Babel", 2, PUBLIC)
    with pytest.raises(ValidationError, match="is not signed"):
        talk.run(talk.mrp().keep(attestation(), from_agent="Babel"))
    other = signatures.sign_attestation(attestation(), key()[0])
    with pytest.raises(ValidationError, match="another key signed it"):
        talk.run(talk.mrp().keep(other, from_agent="Babel"))
    assert talk.run(talk.mrp().keep(signatures.sign_attestation(attestation(), PRIVATE), from_agent="Babel"))["created"]


def test_what_redaction_would_change_is_refused(over: Over) -> None:
    talk = Talk(*over)
    secret = "-".join(["sk", "ant", "api03", "Q7fT2mZp9xLr4vWk8nBd3sHj6yGc1aEu"])
    document = signatures.sign_attestation(attestation(f"the key is {secret}"), PRIVATE)
    with pytest.raises(SecretLeakage, match="would no longer verify"):
        talk.run(talk.mrp().keep(document, from_agent="Babel"))
    assert talk.run(talk.engine.upkeep.status(Principal()))["agents"] == {}


def test_where_a_received_memory_came_from_is_shown_beside_it(over: Over) -> None:
    talk = Talk(*over)
    document = attestation()
    document["provenance"] |= {"witnesses": [{"agent": "carol", "timestamp": "2025-06-01T12:00:00Z"}], "chain": ["a0"]}
    document = signatures.sign_attestation(document, PRIVATE)
    kept = talk.run(talk.mrp().keep(document, from_agent="djclawd", agent="alice", share_with=["bob"]))["memory_id"]
    shown = to_wire(talk.run(talk.subject.get(kept, "alice")))
    check("memorywire/types/memory", shown)
    assert shown["privacy_intent"] == {"share_with": ["bob"]}
    assert shown["provenance"] == {
        "source": "received", "from": "djclawd", "witnesses": document["provenance"]["witnesses"],
        "chain": ["a0", {"attestation": document["id"], "agent": "Babel", "from": "djclawd"}],
    }  # fmt: skip
    ours = to_wire(talk.run(talk.subject.get(talk.remember("our own"), "alice")))
    assert ours.keys().isdisjoint({"provenance", "privacy_intent"}), "nothing is shown that was not said"
