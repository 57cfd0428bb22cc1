"""MEMORY_REQUEST → MEMORY_RESPONSE over both stores: what the document says, and what we decided where it is silent."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import uuid
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from mrp_talk import Talk, attestation, key, vouch

from commonplace.dialects.mrp import requests, signatures
from commonplace.dialects.mrp.messages import AHEAD_MS, SKEW_MS
from commonplace.dialects.mrp.requests import MAX_CHARS, summary
from commonplace.engine import Forget
from commonplace.engine.peers import request_dedup
from commonplace.testing.subject import DAY_MS, START, Subject
from commonplace.wire.errors import Forbidden, RateLimited, Unauthenticated, Unavailable, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import iso
from commonplace.wire.validate import check, portable_schema, schema, schema_names

Over = tuple[Subject, Callable[[Any], Any]]
PRUNING = "Pruning as identity: what you forget defines you"
SALIENCE = "Salience decides what a pruning pass retains"
DOOR = "The door code of the office is 4711"
ADA = Principal("ada-token", "local", "reader", ("ada",))


# schemas


@pytest.mark.parametrize("name", [name for name in schema_names() if name.startswith("mrp/")])
def test_schemas_are_valid_described_and_open_where_versions_may_add(name: str) -> None:
    document = schema(name)
    jsonschema_rs.meta.validate(document)
    assert document["$id"].startswith("https://anamnesis.dev/schemas/")
    assert portable_schema(name)["type"] == "object"
    answers = name in ("mrp/vouch.response", "mrp/vouches.response")

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "properties" in node:
                assert ("additionalProperties" in node) == answers
                for field, rules in node["properties"].items():
                    assert rules["description"].endswith("."), (name, field)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(document)


def test_the_documents_own_examples_are_requests(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING, tags=["memory-systems"])
    request = talk.request(
        "What do you know about pruning strategies?",
        structured={"domain": "memory-systems", "keywords": ["pruning"], "time_range": {"after": "2020-01-01"},
                    "filters": {"min_trust_level": 0, "require_evidence": False, "require_vouches": False}},
        preferences={"format": "attestation", "max_results": 3, "include_meta": True, "sign_response": False},
    )  # fmt: skip
    request["requester"] |= {"public_key": key()[1], "trust_context": {"vouchers": ["x"], "capabilities": ["y"]}}
    request["header"]["ttl_seconds"] = 300
    check("mrp/request", request)
    answer = talk.send({**request, "from_the_future": {"batch": True}})
    assert answer["status"]["code"] == "success"
    assert answer["header"]["request_id"] == request["header"]["request_id"]
    assert uuid.UUID(answer["header"]["response_id"]).version == 4
    assert answer["$schema"] == "https://anamnesis.dev/schemas/mrp/response-v01.json"


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda r: r.pop("header"), "header is required"),
    (lambda r: r.pop("query"), "query is required"),
    (lambda r: r["requester"].pop("agent_id"), "requester.agent_id is required"),
    (lambda r: r["header"].update(request_id="1"), "request_id must be a UUID"),
    (lambda r: r["header"].update(timestamp="noon"), "timestamp must be an ISO-8601 time"),
    (lambda r: r["header"].update(ttl_seconds=0), "ttl_seconds must be a number from 1"),
    (lambda r: r["header"].update(ttl_seconds="300"), "ttl_seconds must be a number"),
    (lambda r: r.update(version="1.0"), "version must be"),
    (lambda r: r.update(type="memory_wish"), "type must be one of memory_request, memory_verify, not 'memory_wish'"),
    (lambda r: r.pop("type"), "type must be one of memory_request, memory_verify, and is missing"),
    (lambda r: r.update(query={}), "query needs natural"),
    (lambda r: r.update(query={"structured": {}}), "query needs natural"),
    (lambda r: r.update(query={"structured": {"keywords": [" "]}}), "query needs natural"),
    (lambda r: r.update(query={"natural": "  "}), "must not be blank"),
    (lambda r: r.update(query={"natural": ""}), "natural must be"),
    (lambda r: r.update(query={"natural": "x", "structured": {"time_range": {"after": "soon"}}}), "ISO-8601"),
    (lambda r: r.update(query={"natural": "x", "structured": {"filters": {"min_trust_level": 4}}}), "from 0 to 3"),
    (lambda r: r.update(response_preferences={"format": "poem"}), "one of attestation, summary, raw"),
    (lambda r: r.update(response_preferences={"max_results": 0}), "from 1 to 1000"),
])  # fmt: skip
def test_a_request_that_is_wrong_is_refused_with_details(over: Over, spoil: Any, said: str) -> None:
    talk = Talk(*over)
    request = talk.request()
    spoil(request)
    with pytest.raises(ValidationError, match=said) as refusal:
        talk.run(talk.mrp().handle(request))
    assert refusal.value.details["field"]
    assert talk.run(talk.engine._core.primary.records("local", request_dedup.SEEN)) == []


def test_a_later_version_is_understood_as_far_as_it_goes(over: Over) -> None:
    talk = Talk(*over)
    answer = talk.ask(version="0.7", stream=True)
    assert (answer["version"], answer["status"]["code"]) == ("0.1", "no_match")


# time


def test_a_request_is_answered_only_while_its_ttl_lasts(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    late = talk.request()
    talk.subject.clock.advance(300_000 + SKEW_MS - 1)
    assert talk.send(late)["status"]["code"] == "success"
    talk.subject.clock.advance(1)
    with pytest.raises(ValidationError, match="the request has expired"):
        talk.send(late)
    short = talk.request()
    short["header"]["ttl_seconds"] = 1
    talk.subject.clock.advance(10_000)
    with pytest.raises(ValidationError, match="the request has expired"):
        talk.send(short)


def test_a_request_from_the_future_is_refused(over: Over) -> None:
    talk = Talk(*over)
    now = talk.subject.clock()
    for ahead, fine in ((AHEAD_MS, True), (AHEAD_MS + 1, False)):
        request = talk.request()
        request["header"]["timestamp"] = iso(now + ahead)
        if fine:
            assert talk.send(request)["status"]["code"] == "no_match"
        else:
            with pytest.raises(ValidationError, match="in the future"):
                talk.send(request)
    zoned = talk.request()
    zoned["header"]["timestamp"] = "2025-06-15T20:06:40+05:00"
    assert talk.send(zoned)["status"]["code"] == "no_match"
    bare = talk.request()
    bare["header"]["timestamp"] = "2025-06-15T15:06:40"
    assert talk.send(bare)["status"]["code"] == "no_match"


# finding


def test_a_question_in_words_is_answered_with_attestations(over: Over) -> None:
    talk = Talk(*over)
    id = talk.remember(PRUNING)
    answer = talk.ask("what defines identity?", preferences={"max_results": 1})
    (result,) = answer["results"]
    assert result["memory_id"] == id
    assert result["attestation"]["claim"]["content"] == PRUNING
    assert 0 <= result["relevance_score"] <= 1
    assert "relevance" in result["match_context"]
    assert "text" not in result
    assert answer["responder"]["agent_id"] == "commonplace"
    meta = answer["meta"]
    assert (meta["total_matches"], meta["returned"], meta["trust_level_used"]) == (1, 1, 3)
    assert meta["processing_time_ms"] >= 0


def test_what_is_found_follows_from_the_words_of_the_question(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("The ferry to the island leaves at nine")
    talk.remember("Bread needs salt and patience")
    assert talk.found("when does the ferry leave for the island?")[0] == "The ferry to the island leaves at nine"
    assert talk.found("what does bread need besides salt?")[0] == "Bread needs salt and patience"


def test_cut_by_max_results_is_still_success_and_all_are_counted(over: Over) -> None:
    talk = Talk(*over)
    for n in range(15):
        talk.remember(f"pruning note number {n}")
    answer = talk.ask("pruning note")
    assert len(answer["results"]) == 10, "the default"
    assert (answer["status"]["code"], answer["meta"]["total_matches"], answer["meta"]["returned"]) == (
        "success",
        15,
        10,
    )
    few = talk.ask(None, structured={"keywords": ["pruning"]}, preferences={"max_results": 4})
    assert (few["status"]["code"], few["meta"]["total_matches"], few["meta"]["returned"]) == ("success", 15, 4)


def test_keywords_filter_and_more_of_them_come_first(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(SALIENCE)
    talk.remember(PRUNING)
    talk.remember(DOOR)
    talk.remember("Gardens in spring", tags=["salience"])
    found = talk.found(None, structured={"keywords": ["pruned", "Salience", "unheard-of"]})
    assert found[0] == SALIENCE, "it holds two"
    assert set(found[1:]) == {PRUNING, "Gardens in spring"}, "forms of a word and tags count"
    answer = talk.ask("which gardens?", structured={"keywords": ["salience", "pruning"]})
    contents = [r["attestation"]["claim"]["content"] for r in answer["results"]]
    assert contents[0] == SALIENCE
    assert DOOR not in contents
    assert "it holds salience, pruning" in answer["results"][0]["match_context"]
    only = talk.ask(None, structured={"keywords": ["salience", "pruning"]})["results"]
    assert [r["relevance_score"] for r in only] == [1.0, 0.5, 0.5]
    assert talk.ask(None, structured={"keywords": ["zeppelin"]})["status"]["code"] == "no_match"


def test_a_domain_is_a_project_or_a_tag(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING, project="atlas")
    talk.remember(SALIENCE, tags=["atlas", "x"])
    talk.remember(DOOR, tags=["atlas-two"], project="other")
    for natural in ("what is kept?", None):
        assert set(talk.found(natural, structured={"domain": "atlas"})) == {PRUNING, SALIENCE}
    why = {r["match_context"] for r in talk.ask(None, structured={"domain": "atlas"})["results"]}
    assert why == {"it belongs to the project atlas", "it is tagged atlas"}


def test_a_time_range_holds_both_of_its_ends(over: Over) -> None:
    talk = Talk(*over)
    for day, content in enumerate(("first", "second", "third")):
        talk.subject.clock.now = START + day * DAY_MS
        talk.remember(f"the {content} note")
    span = {"after": iso(START + DAY_MS), "before": iso(START + DAY_MS)}
    assert talk.found("note", structured={"time_range": span}) == ["the second note"]
    assert talk.found(None, structured={"time_range": {"after": iso(START + DAY_MS)}}) == [
        "the third note", "the second note",
    ]  # fmt: skip
    assert talk.found(None, structured={"time_range": {"before": "2025-06-15"}}) == ["the first note"], "all of the day"
    assert talk.found(None, structured={"time_range": {"before": "2025-06-14"}}) == []


def test_summary_and_raw_add_a_text_beside_the_attestation(over: Over) -> None:
    talk = Talk(*over)
    long = "Pruning is first. " + "Then much more follows it. " * 40
    talk.remember(long)
    for form, text in (("raw", long), ("summary", summary(long))):
        (result,) = talk.ask("pruning", preferences={"format": form})["results"]
        assert result["text"] == text
        assert result["attestation"]["claim"]["content"] == long
    assert summary(long).endswith(".")
    assert len(summary(long)) <= 300
    assert summary("word" * 200).endswith("…")


def test_meta_and_signature_are_as_preferred(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    plain = talk.ask(preferences={"include_meta": False})
    assert "meta" not in plain
    assert "signature" not in plain
    signed = talk.ask(preferences={"include_meta": False, "sign_response": True})
    assert signed["meta"]["returned"] == 1, "what is signed must be there"
    assert signatures.verify_response(json.loads(json.dumps(signed)))
    public = talk.engine.peers.identity.keypair().public
    assert signed["responder"]["public_key"] == public
    assert signatures.verify_attestation(signed["results"][0]["attestation"], public)
    empty = talk.ask("zeppelins", structured={"domain": "none"}, preferences={"sign_response": True})
    assert empty["status"]["code"] == "no_match"
    assert signatures.verify_response(empty, public)


def test_expired_archived_pending_and_forgotten_memories_are_not_answered(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning that ends", "agent", expires_at=START + 1000)
    gone = talk.remember("pruning that goes", "agent")
    talk.run(talk.subject.forget(gone))
    talk.remember("pruning that rests", "agent", confidence=0.1)
    talk.run(talk.subject.expire("archive", confidence_below=0.5))
    assert talk.found("pruning") == ["pruning that ends"]
    talk.subject.clock.advance(1000)
    assert talk.found("pruning") == []


# who answers


def test_the_responder_is_the_agent_asked_else_the_configured_one_else_the_server(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning by ada", "ada")
    talk.remember("pruning by bea", "bea")
    everyone = talk.ask("pruning")
    assert everyone["responder"]["agent_id"] == "commonplace"
    assert len(everyone["results"]) == 2
    ada = talk.ask("pruning", via=talk.mrp(agent="ada"))
    assert (ada["responder"]["agent_id"], len(ada["results"])) == ("ada", 1)
    assert talk.ask("pruning", via=talk.mrp(agent="nobody"))["status"]["code"] == "no_match"
    talk.settings(name="library")
    assert talk.ask("pruning")["responder"]["agent_id"] == "library"
    talk.settings(agent="bea")
    assert talk.found("pruning") == ["pruning by bea"]
    assert talk.ask("pruning")["responder"]["agent_id"] == "bea"
    assert talk.found("pruning", via=talk.mrp(agent="ada")) == ["pruning by ada"]


# who asks


def test_whoever_is_authenticated_for_the_agent_sees_what_the_token_may_read(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning by ada", "ada")
    talk.remember("pruning by bea", "bea")
    own = talk.ask("pruning", via=talk.mrp(ADA))
    assert [r["attestation"]["agent"] for r in own["results"]] == ["ada"]
    assert own["meta"]["trust_level_used"] == 3
    other = talk.ask("pruning", via=talk.mrp(ADA, "bea"))
    assert (other["status"]["code"], other["meta"]["trust_level_used"]) == ("no_match", 0)
    named = talk.ask("pruning", via=talk.mrp(ADA, "bea"), requester="ada")
    assert named["meta"]["trust_level_used"] == 1, "its token says that it is ada"
    talk.remember("pruning for ada", "bea", shared=["ada"])
    assert talk.found("pruning", via=talk.mrp(ADA, "bea"), requester="ada") == ["pruning for ada"]
    foreign = Principal("x", "globex", "admin")
    assert talk.ask("pruning", via=talk.mrp(foreign))["status"]["code"] == "no_match"


def test_peers_see_only_what_is_shared_with_them_or_with_everyone(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning in private")
    talk.remember("pruning shared with nobody", shared=[])
    talk.remember("pruning for bob", shared=["bob", "dave"])
    talk.remember("pruning for all", shared=["*"])
    talk.remember("pruning by bea for all", "bea", shared=["*"])
    private, public = key()
    for level in range(4):
        if level > 1:
            talk.trust("bob", level, public)
        request = talk.request("pruning")
        request = talk.sign(request, private) if level else request
        answer = talk.send(request, via=talk.mrp(peer=True, agent="alice"))
        assert answer["meta"]["trust_level_used"] == level
        seen = {"pruning for bob", "pruning for all"} if level else {"pruning for all"}
        assert {r["attestation"]["claim"]["content"] for r in answer["results"]} == seen
        assert answer["meta"]["total_matches"] == len(seen), "what may not be seen is not counted"
    carol = talk.found("pruning", via=talk.mrp(peer=True), requester="carol")
    assert set(carol) == {"pruning for all", "pruning by bea for all"}
    star = talk.found("pruning", via=talk.mrp(peer=True), requester="*")
    assert set(star) == {"pruning for all", "pruning by bea for all"}


def test_who_has_a_key_bound_is_believed_with_that_key_only(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning for bob", shared=["bob"])
    talk.remember("pruning for all", shared=["*"])
    private, public = key()
    talk.trust("bob", 2, public)
    peer = talk.mrp(peer=True)
    unsigned = talk.ask("pruning", via=peer)
    wrong_key = talk.send(talk.sign(talk.request("pruning"), key()[0]), via=peer)
    for answer in (unsigned, wrong_key):
        assert answer["meta"]["trust_level_used"] == 0
        assert [r["attestation"]["claim"]["content"] for r in answer["results"]] == ["pruning for all"]
    right = talk.send(talk.sign(talk.request("pruning"), private), via=peer)
    assert (right["meta"]["trust_level_used"], len(right["results"])) == (2, 2)
    for_anyone = talk.send(signatures.sign_request(talk.request("pruning"), private), via=peer)
    assert (for_anyone["meta"]["trust_level_used"], len(for_anyone["results"])) == (1, 1), "anyone may have sent it on"


@pytest.mark.slow
@pytest.mark.parametrize("audience", [
    "http://127.0.0.1:8421", "http://127.0.0.1:8420", "https://alice.example", "commonplace", "alice", key()[1], "",
], ids=["port", "no socket", "origin", "everyone's name", "agent", "key", "empty"])  # fmt: skip
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("operation", ["request", "verification"])
def test_what_is_meant_for_someone_else_is_refused(over: Over, audience: str, signed: bool, operation: str) -> None:
    talk = Talk(*over)
    talk.remember("pruning for all", shared=["*"])
    asked = talk.request("pruning")
    if operation == "verification":
        asked = {**talk.verification(talk.ask("pruning")["results"][0]), "requester": {"agent_id": "bob"}}
    asked["audience"] = audience
    if signed:
        asked = signatures.sign_request(asked, key()[0])
    for via in (talk.mrp(), talk.mrp(peer=True), talk.mrp(agent="alice")):
        with pytest.raises(Forbidden if audience else ValidationError):
            talk.send(asked, via=via)


def test_the_name_and_the_addresses_that_are_set_are_audiences(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning for bob", shared=["bob"])
    talk.settings(name="alice's", origins=("https://alice.example",))
    for audience in ("alice's", "https://alice.example", "HTTPS://Alice.Example:443/mrp"):
        asked = signatures.sign_request({**talk.request("pruning"), "audience": audience}, key()[0])
        assert len(talk.send(asked, via=talk.mrp(peer=True))["results"]) == 1


def test_a_key_in_a_request_proves_nothing_and_its_possession_only_an_identity(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    bare = talk.request()
    bare["requester"]["public_key"] = public
    assert talk.send(bare, via=talk.mrp(peer=True))["meta"]["trust_level_used"] == 0
    signed = signatures.sign_request(talk.request(), private)
    assert talk.send(signed, via=talk.mrp(peer=True))["meta"]["trust_level_used"] == 1
    claims = talk.request()
    claims["requester"]["trust_context"] = {"vouchers": ["djclawd"], "capabilities": ["everything"]}
    talk.trust("djclawd", 3, voucher=True)
    signed = signatures.sign_request(claims, private)
    assert talk.send(signed, via=talk.mrp(peer=True))["meta"]["trust_level_used"] == 1, "naming a voucher is no vouch"


def test_a_forged_signature_is_refused_and_nothing_is_stored(over: Over) -> None:
    talk = Talk(*over)
    signed = signatures.sign_request(talk.request(), key()[0])
    forged = copy.deepcopy(signed)
    forged["query"]["natural"] = "what is the door code?"
    with pytest.raises(Unauthenticated):
        talk.send(forged, via=talk.mrp(peer=True))
    for wrong in ("nonsense", "AAAA"):
        broken = copy.deepcopy(signed)
        broken["requester"]["public_key"] = wrong
        with pytest.raises(ValidationError, match="public_key must be base64"):
            talk.send(broken, via=talk.mrp(peer=True))
    broken = copy.deepcopy(signed)
    broken["signature"]["value"] = "!"
    with pytest.raises(ValidationError, match="signature must be base64"):
        talk.send(broken, via=talk.mrp(peer=True))
    assert talk.run(talk.engine._core.primary.records("local", request_dedup.SEEN)) == []


def test_where_identity_is_required_strangers_are_turned_away(over: Over) -> None:
    talk = Talk(*over)
    talk.settings(require_identity=True)
    with pytest.raises(Unauthenticated, match="proves an identity"):
        talk.ask(via=talk.mrp(peer=True))
    assert talk.ask()["status"]["code"] == "no_match", "a token is an identity"
    signed = signatures.sign_request(talk.request(), key()[0])
    assert talk.send(signed, via=talk.mrp(peer=True))["status"]["code"] == "no_match"


# filters


def keep_received(talk: Talk, content: str, agent: str = "Babel", private: str | None = None, **provenance: Any) -> str:
    document = attestation(content, agent=agent)
    document["provenance"] |= provenance
    if private is not None:
        document = signatures.sign_attestation(document, private)
    id: str = talk.run(talk.mrp().keep(document, from_agent=agent, agent="alice"))["memory_id"]
    return id


def test_require_evidence_wants_references_witnesses_or_a_chain(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning without")
    talk.remember("pruning with a reference", metadata={"references": ["a.md"]})
    talk.remember("pruning with a source", source="https://example.org/a")
    private, _ = key()
    keep_received(talk, "pruning with a witness", private=private, witnesses=[{"agent": "carol"}])
    keep_received(talk, "pruning with a chain", private=private, chain=["a0"])
    answer = talk.ask("pruning", structured={"filters": {"require_evidence": True}})
    assert {r["attestation"]["claim"]["content"] for r in answer["results"]} == {
        "pruning with a reference", "pruning with a source", "pruning with a witness", "pruning with a chain",
    }  # fmt: skip
    assert answer["status"] == {
        "code": "partial", "message": "found 4 memories, but 1 more did not pass the filters",
    }  # fmt: skip
    assert answer["meta"]["total_matches"] == 4


def test_min_trust_level_is_of_the_author_as_the_responder_sees_it(over: Over) -> None:
    talk = Talk(*over)
    (bound, public), (loose, _) = key(), key()
    talk.trust("Babel", 2, public)
    talk.remember("pruning of our own")
    keep_received(talk, "pruning by Babel", private=bound)
    keep_received(talk, "pruning by carol", "carol", private=loose)
    keep_received(talk, "pruning by dave", "dave")
    levels = {0: 4, 1: 3, 2: 2, 3: 1}
    for level, count in levels.items():
        answer = talk.ask("pruning", structured={"filters": {"min_trust_level": level}})
        assert len(answer["results"]) == count, level
        assert answer["status"]["code"] == ("success" if level == 0 else "partial")
    assert talk.found("pruning", structured={"filters": {"min_trust_level": 3}}) == ["pruning of our own"]


def test_require_vouches_wants_a_valid_vouch_for_the_author(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    keep_received(talk, "pruning by Babel", private=private)
    keep_received(talk, "pruning by someone who says Babel", private=key()[0])
    talk.remember("pruning of our own")
    ask = {"structured": {"filters": {"require_vouches": True}}}
    nothing = talk.ask("pruning", **ask)
    assert (nothing["status"]["code"], nothing["results"]) == ("no_match", [])
    talk.trust("djclawd", 3, voucher=True)
    assert not talk.vouched(vouch("djclawd", "Babel"))
    assert talk.found("pruning", **ask) == [], "a name alone is anybody's"
    assert talk.vouched(vouch("djclawd", "Babel", public))
    assert talk.found("pruning", **ask) == ["pruning by Babel"]


@pytest.mark.parametrize("signed", ["not at all", "in its claim only"])
def test_forged_witnesses_are_no_evidence(over: Over, signed: str) -> None:
    talk = Talk(*over)
    (hers, public), (carols, carol) = key(), key()
    document = attestation("pruning", agent="Babel")
    if signed != "not at all":
        talk.trust("Babel", 3, public)
        document = signatures.sign_attestation(document, hers)
        document["signatures"].pop("full_signature")
    document["provenance"] = {
        "source": "received",
        "witnesses": [{"agent": "carol", "signature": "AAAA"}],
        "chain": ["x"],
    }
    if document.get("signatures"):
        document["signatures"]["hash"] = signatures.attestation_hash(document)
    talk.run(talk.mrp().keep(document, from_agent="mallory", agent="alice"))
    ask = {"structured": {"filters": {"require_evidence": True}}}
    assert talk.found("pruning", **ask) == []
    talk.trust("carol", 1, carol)
    assert talk.found("pruning", **ask) == [], "it is not her signature"
    witness = signatures.sign_attestation(document, carols)["signatures"]["agent_signature"]
    seen = {**document, "id": "seen", "claim": {**document["claim"]}}
    seen["provenance"] = {"source": "received", "witnesses": [{"agent": "carol", "signature": witness}], "chain": []}
    if document.get("signatures"):
        seen["signatures"] = {**document["signatures"], "hash": signatures.attestation_hash(seen)}
    talk.run(talk.mrp().keep(seen, from_agent="mallory", agent="alice"))
    assert talk.found("pruning", **ask) == ["pruning"], "a witness who signed for it herself counts"


@pytest.mark.parametrize(("policy", "declined"), [
    ("none", set()), ("strangers", {"stranger"}), ("all", {"stranger", "bob"}),
])  # fmt: skip
def test_the_operator_can_decline(over: Over, policy: str, declined: set[str]) -> None:
    talk = Talk(*over)
    talk.remember("pruning for all", shared=["*"])
    private, public = key()
    talk.trust("bob", 1, public)
    found = talk.ask("pruning")["results"][0]
    peer = talk.mrp(peer=True)

    def answers(who: str, private: str) -> tuple[str, str]:
        asked = talk.send(talk.sign(talk.request("pruning", who), private), via=peer)
        assert asked["status"]["code"] != "declined" or (asked["results"], asked["meta"]["total_matches"]) == ([], 0)
        verify = {**talk.verification(found), "requester": {"agent_id": who}}
        checked = talk.send(talk.sign(verify, private), via=peer)
        return asked["status"]["code"], checked["results"]["signature"]["detail"]

    talk.settings(decline=policy)
    for who, secret in (("bob", private), ("stranger", key()[0])):
        code, detail = answers(who, secret)
        assert (code == "declined") == (detail == "this verification is declined") == (who in declined)
    assert talk.ask("pruning")["status"]["code"] == "success", "whose memories they are"
    talk.trust("bob", 1, public, declined=True)
    assert answers("bob", private)[0] == "declined"
    assert answers("somebody else", private)[0] == "declined", "the same key under another name"


def test_what_was_answered_before_is_declined_once_the_operator_says_so(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning for all", shared=["*"])
    request, peer = talk.request("pruning"), talk.mrp(peer=True)
    assert talk.send(request, via=peer)["status"]["code"] == "success"
    talk.settings(decline="strangers")
    assert talk.send(request, via=peer)["status"]["code"] == "declined"


def test_a_vouch_for_a_key_says_nothing_of_who_signs_with_another(over: Over) -> None:
    talk = Talk(*over)
    (hers, public), (other, _) = key(), key()
    talk.trust("djclawd", 3, voucher=True)
    given = vouch("djclawd", "carol")
    given["subject"]["public_key"] = public
    assert talk.vouched(given)
    keep_received(talk, "pruning by carol", "carol", private=hers)
    keep_received(talk, "pruning by someone who says carol", "carol", private=other)
    keep_received(talk, "pruning unsigned", "carol")
    for filters in ({"min_trust_level": 2}, {"require_vouches": True}):
        assert talk.found("pruning", structured={"filters": filters}) == ["pruning by carol"]


# partial, declined, error


@pytest.mark.slow
def test_an_answer_that_would_be_too_large_is_partial_and_says_so(over: Over) -> None:
    talk = Talk(*over)
    each = MAX_CHARS // 8
    for n in range(10):
        talk.remember(f"pruning {n} " + "x" * (each - 20))
    answer = talk.ask(None, structured={"keywords": ["pruning"]})
    assert (answer["status"]["code"], answer["meta"]["returned"], answer["meta"]["total_matches"]) == ("partial", 8, 10)
    assert "too large" in answer["status"]["message"]


def test_an_agent_whose_budget_is_spent_makes_the_answer_partial(over: Over) -> None:
    talk = Talk(*over)
    from commonplace.engine import rate_limit

    talk.remember("pruning by ada", "ada")
    talk.remember("pruning by bea", "bea")
    talk.engine._recaller._budget = rate_limit.per_minute(1, clock=lambda: 0.0)
    assert len(talk.ask("pruning", via=talk.mrp(agent="ada"))["results"]) == 1
    answer = talk.ask("pruning")
    assert (answer["status"]["code"], len(answer["results"])) == ("partial", 1)
    assert "used up their recalls" in answer["status"]["message"]
    with pytest.raises(RateLimited):
        talk.ask("pruning")


def test_what_fails_is_a_status_and_strangers_learn_nothing_of_why(
    over: Over, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    talk = Talk(*over)

    async def broken(*_: Any, **__: Any) -> Any:
        raise Unavailable("the disk at /somewhere is full")

    monkeypatch.setattr(talk.engine.peers, "ask", broken)
    request = talk.request()
    own = talk.send(request)
    assert own["status"] == {"code": "error", "message": "the disk at /somewhere is full"}
    stranger = talk.ask(via=talk.mrp(peer=True))
    assert stranger["status"]["code"] == "error"
    assert "disk" not in stranger["status"]["message"]
    monkeypatch.undo()
    assert talk.send(request)["status"]["code"] == "no_match", "an error is not remembered"


# replay


def test_the_same_request_gets_the_same_response(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    request = talk.request(preferences={"sign_response": True})
    first = talk.send(request)
    talk.remember(SALIENCE)
    talk.subject.clock.advance(1000)
    assert talk.send(json.loads(json.dumps(request))) == first
    assert len(talk.ask()["results"]) == 2, "another request is answered anew"


def test_the_same_id_with_another_body_is_declined_and_says_nothing(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    request = talk.request()
    talk.send(request)
    for other in ({**request, "query": {"natural": "what else?"}}, {**request, "x": 1}):
        answer = talk.send(other)
        assert (answer["status"]["code"], answer["results"]) == ("declined", [])
        assert answer["meta"]["total_matches"] == 0
    elsewhere = talk.send(request, via=talk.mrp(agent="alice"))
    assert elsewhere["status"]["code"] == "declined", "another responder is another question"
    there = talk.send({**request, "query": {"natural": PRUNING}})
    never = talk.send({**request, "query": {"natural": "zeppelins"}})
    assert {**there, "header": 0, "meta": 0} == {**never, "header": 0, "meta": 0}
    later = {**request, "header": {**request["header"], "timestamp": iso(talk.subject.clock() + 1)}}
    assert talk.send(later)["status"]["code"] == "declined"


def test_nobody_hears_again_what_was_said_to_another(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    request = talk.request()
    assert len(talk.send(request)["results"]) == 1
    assert talk.send(request, via=talk.mrp(peer=True))["results"] == []
    assert talk.send(request, via=talk.mrp(ADA))["results"] == []
    assert talk.send(request, via=talk.mrp(Principal("x", "globex")))["results"] == []


@pytest.mark.parametrize("hard", [False, True])
def test_what_was_forgotten_or_erased_is_not_repeated(over: Over, hard: bool) -> None:
    talk = Talk(*over)
    id = talk.remember(PRUNING)
    request = talk.request()
    assert len(talk.send(request)["results"]) == 1
    talk.run(talk.engine.forget(Principal(), Forget("alice", [id], hard_delete=hard)))
    if hard:
        kept = talk.run(talk.engine._core.primary.records("local", request_dedup.ANSWER))
        assert PRUNING not in json.dumps([r.value for r in kept])
    assert talk.send(request)["results"] == []
    assert talk.send({**request, "x": 1})["status"]["code"] == "declined", "the id stays used"


def test_what_is_erased_while_it_is_answered_is_not_kept_for_repetition(
    over: Over, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    talk = Talk(*over)
    id = talk.remember(PRUNING)
    found = requests._outcome

    async def slowly(*args: Any) -> Any:
        outcome = await found(*args)
        await talk.engine.forget(Principal(), Forget("alice", [id], hard_delete=True))
        return outcome

    monkeypatch.setattr(requests, "_outcome", slowly)
    request = talk.request()
    talk.send(request)
    monkeypatch.undo()
    assert talk.run(talk.engine._core.primary.records("local", request_dedup.ANSWER)) == []
    assert talk.send(request)["results"] == []
    assert talk.send({**request, "x": 1})["status"]["code"] == "declined", "the id stays used"


def test_what_has_expired_since_is_not_repeated(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning for a minute", expires_at=talk.subject.clock() + 60_000)
    request = talk.request("pruning")
    assert len(talk.send(request)["results"]) == 1
    talk.subject.clock.advance(60_000)
    assert talk.send(request)["results"] == []


def test_what_was_changed_since_or_is_no_longer_shared_is_answered_anew(over: Over) -> None:
    talk = Talk(*over)
    id = talk.remember("pruning one", "agent", shared=["bob"])
    private, _ = key()
    request = talk.sign(talk.request("pruning"), private)
    peer = talk.mrp(peer=True)
    assert len(talk.send(request, via=peer)["results"]) == 1
    talk.run(talk.subject.update(id, privacy={}))
    assert talk.send(request, via=peer)["results"] == []
    talk.run(talk.subject.update(id, privacy={"share_with": ["bob"]}))
    request = talk.sign(talk.request("pruning"), private)
    assert len(talk.send(request, via=peer)["results"]) == 1
    talk.trust("bob", 2, key()[1])
    assert talk.send(request, via=peer)["results"] == [], "whoever asked did not prove to be bob"


def test_old_answers_are_dropped(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    talk.ask()
    talk.subject.clock.advance(400_000)
    talk.ask()
    primary = talk.engine._core.primary
    assert len(talk.run(primary.records("local", request_dedup.SEEN))) == 1
    assert len(talk.run(primary.records("local", request_dedup.ANSWER))) == 1


# limits, traces


def test_each_requester_has_a_hundred_and_twenty_requests_a_minute(over: Over) -> None:
    talk = Talk(*over)

    def ask_often() -> None:
        for _ in range(120):
            talk.ask(None, structured={"domain": "x"})

    ask_often()
    with pytest.raises(RateLimited) as refusal:
        ask_often()  # more than once: on a slow machine some of the budget has come back meanwhile
    assert refusal.value.details["retry_after"] >= 1
    assert talk.ask(requester="carol")["status"]["code"] == "no_match", "another's budget is its own"
    assert talk.ask(via=talk.mrp(peer=True))["status"]["code"] == "no_match", "nobody spends a token's budget"


def test_questions_of_strangers_are_audited_and_never_logged(over: Over, caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(*over)
    id = talk.remember(PRUNING, shared=["*"])
    caplog.set_level(logging.DEBUG)
    question = "what about pruning quartzword?"
    talk.ask(question, via=talk.mrp(peer=True), requester="eve")
    entries = talk.run(talk.engine.ledger.entries(Principal(), operation="recall"))
    assert entries[-1].principal == "mrp:eve"
    said = json.dumps([str(part.payload) for entry in entries for part in entry.parts])
    assert id in said
    assert "quartzword" not in said
    assert "quartzword" not in caplog.text
    kept = talk.run(talk.engine._core.primary.records("local", request_dedup.SEEN))
    assert "quartzword" not in json.dumps([r.value for r in kept])


def test_a_memory_made_of_several_is_shared_only_with_whom_each_was(over: Over) -> None:
    talk = Talk(*over)
    first = talk.remember("pruning one", "agent", shared=["*"])
    second = talk.remember("pruning two", "agent", shared=["bob"])
    third = talk.remember("pruning three", "agent")
    talk.run(talk.subject.merge(first, second, strategy="merge_content"))

    def seen(requester: str) -> list[str]:
        request = talk.sign(talk.request("pruning", requester), key()[0])
        results = talk.send(request, via=talk.mrp(peer=True))["results"]
        return [result["attestation"]["claim"]["content"] for result in results]

    assert seen("bob") == ["pruning one\npruning two"]
    assert seen("carol") == []
    talk.run(talk.subject.merge(first, third, strategy="merge_content"))
    assert seen("bob") == []


def test_keeping_needs_the_right_to_write(over: Over) -> None:
    talk = Talk(*over)
    with pytest.raises(Forbidden):
        talk.run(talk.mrp(ADA).keep(attestation(), from_agent="Babel", agent="ada"))


def test_of_the_same_request_sent_several_times_at_once_there_is_one_answer(over: Over) -> None:
    talk = Talk(*over)
    talk.remember(PRUNING)
    request = talk.request(preferences={"sign_response": True})

    async def at_once() -> list[Any]:
        return await asyncio.gather(*(talk.mrp().request(request) for _ in range(8)))

    answers = talk.run(at_once())
    assert all(answer == answers[0] for answer in answers)


def test_much_that_a_stranger_asked_for_is_found_again_instead_of_kept(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning " + "x" * 20_000, shared=["*"])
    request = talk.request("pruning")
    assert len(talk.send(request, via=talk.mrp(peer=True))["results"]) == 1
    assert talk.run(talk.engine._core.primary.records("local", request_dedup.ANSWER)) == []
    assert len(talk.send(request, via=talk.mrp(peer=True))["results"]) == 1
    assert talk.send({**request, "x": 1}, via=talk.mrp(peer=True))["status"]["code"] == "declined"
