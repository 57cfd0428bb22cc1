"""MEMORY_VERIFY → VERIFY_RESULT: five checks, what they come to, and what they must not give away."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from mrp_talk import Document, Talk, attestation, key, vouch

from commonplace.dialects.mrp import signatures
from commonplace.dialects.mrp.messages import AHEAD_MS, CHECKS, SKEW_MS, TTL_SECONDS
from commonplace.dialects.mrp.verification import WEIGHTS, aggregate
from commonplace.engine.peers.vouches import DECAY
from commonplace.testing.subject import DAY_MS, Subject
from commonplace.wire.errors import Unauthenticated, Unavailable, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import iso

Over = tuple[Subject, Callable[[Any], Any]]
LOCAL = Principal()
UNKNOWN = "01977420-dc00-71a8-aa3c-9e6a9a2e68ef"


def result(talk: Talk, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = talk.ask("pruning", **more)["results"][0]
    return found


def statuses(answer: dict[str, Any]) -> dict[str, str]:
    return {name: check["status"] for name, check in answer["results"].items()}


def test_a_memory_of_our_own_passes_what_it_can(over: Over) -> None:
    talk = Talk(*over)
    first = talk.remember("a first note")
    talk.remember("pruning", metadata={"references": [first]})
    talk.trust("djclawd", 3, voucher=True)
    talk.vouched(vouch("djclawd", "alice"))
    answer = talk.send(talk.verification(result(talk)))
    assert statuses(answer) == dict.fromkeys(CHECKS, "pass")
    assert answer["results"]["evidence"]["accessible_count"] == answer["results"]["evidence"]["total_count"] == 1
    assert answer["results"]["vouches"]["trusted_vouchers"] == ["djclawd"]
    assert answer["results"]["freshness"]["age_days"] == 0
    assert answer["aggregate"] == {"trust_score": 0.96, "recommendation": "accept"}
    assert answer["header"]["verify_id"]


def test_what_was_not_asked_for_is_skipped(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning")
    found = result(talk)
    for asked in itertools.chain(itertools.combinations(CHECKS, 1), itertools.combinations(CHECKS, 2)):
        answer = talk.send(talk.verification(found, *asked))
        skipped = {name for name, status in statuses(answer).items() if status == "skip"}
        assert skipped >= set(CHECKS) - set(asked)
    nothing = talk.send({**talk.verification(found), "checks": []})
    assert set(statuses(nothing).values()) == {"skip"}
    assert nothing["aggregate"] == {"trust_score": 0.0, "recommendation": "accept_with_caution"}


def test_an_unknown_memory_fails_and_is_rejected(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning")
    target = {"memory_id": UNKNOWN, "attestation_hash": "0" * 64}
    answer = talk.send({**talk.verification(result(talk)), "target": target})
    assert set(statuses(answer).values()) == {"fail"}
    assert answer["aggregate"] == {"trust_score": 0.0, "recommendation": "reject"}
    only = talk.send({**talk.verification(result(talk), "freshness"), "target": target})
    assert only["results"]["freshness"]["status"] == "fail"
    assert only["aggregate"]["recommendation"] == "reject"


def test_a_hash_that_differs_fails_the_signature_and_is_rejected(over: Over) -> None:
    talk = Talk(*over)
    id = talk.remember("pruning", "agent")
    found = result(talk)
    wrong = talk.verification(found)
    wrong["target"]["attestation_hash"] = "sha256:" + "0" * 64
    for asked in (wrong, {**wrong, "checks": ["freshness"]}):
        answer = talk.send(asked)
        assert answer["results"]["signature"]["status"] == "fail"
        assert answer["aggregate"]["recommendation"] == "reject"
    bare = talk.verification(found)
    bare["target"]["attestation_hash"] = bare["target"]["attestation_hash"].removeprefix("sha256:")
    assert talk.send(bare)["results"]["signature"]["status"] == "pass"
    talk.run(talk.subject.update(id, content="pruning, corrected"))
    assert talk.send(talk.verification(found))["aggregate"]["recommendation"] == "reject", "it was changed since"


@pytest.mark.parametrize(("bound", "signer", "status"), [
    (None, None, "skip"), (None, "own", "skip"), ("own", "own", "pass"),
])  # fmt: skip
def test_signatures_of_others_pass_by_a_key_that_is_bound(
    over: Over, bound: str | None, signer: str | None, status: str
) -> None:  # fmt: skip
    talk = Talk(*over)
    private, public = key()
    document = attestation("pruning by Babel")
    if signer:
        document = signatures.sign_attestation(document, private)
    if bound:
        talk.trust("Babel", 2, public)
    talk.run(talk.mrp().keep(document, from_agent="Babel", agent="alice"))
    answer = talk.send(talk.verification(result(talk), "signature"))
    assert answer["results"]["signature"]["status"] == status
    assert (answer["aggregate"]["recommendation"] == "accept") == (status == "pass")
    talk.trust("Babel", 2, key()[1])
    rebound = talk.send(talk.verification(result(talk), "signature"))
    expected = ("fail", "reject") if signer else ("skip", "accept_with_caution")
    assert (rebound["results"]["signature"]["status"], rebound["aggregate"]["recommendation"]) == expected


def test_what_an_old_key_of_ours_signed_still_verifies(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning")
    found = result(talk)
    old = talk.engine.peers.identity.keypair().public
    talk.engine.peers.identity.rotate()
    assert signatures.verify_attestation(found["attestation"], old)
    assert talk.send(talk.verification(found, "signature"))["results"]["signature"]["status"] == "pass"


def _forged(document: Document, **changes: Any) -> Document:
    """As someone on the way changes what the document's own signature does not cover."""
    kept = {name: value for name, value in document["signatures"].items() if name != "full_signature"}
    changed = {**document, **changes}
    return {**changed, "signatures": {**kept, "hash": signatures.attestation_hash(changed)}}


def test_what_the_documents_own_signature_does_not_cover_is_not_called_verified(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    talk.trust("Babel", 2, public)
    note = talk.remember("a first note", shared=["*"])
    forged = _forged(
        signatures.sign_attestation(attestation("pruning by Babel"), private),
        created_at=iso(talk.subject.clock()),
        provenance={"source": "aggregated", "witnesses": [{"agent": "carol"}], "chain": [note]},
    )
    talk.run(talk.mrp().keep(forged, from_agent="Babel", agent="alice"))
    assert talk.found("pruning", structured={"filters": {"require_evidence": True}}) == []
    checked = talk.send(talk.verification(result(talk)))
    assert statuses(checked) == {
        "signature": "pass", "evidence": "skip", "vouches": "fail", "freshness": "skip", "consistency": "pass",
    }  # fmt: skip
    assert "only claim and salience are signed" in checked["results"]["signature"]["detail"]
    assert checked["results"]["evidence"]["accessible_count"] == 0
    assert checked["results"]["freshness"]["detail"] == "when it was made is not signed"
    whole = signatures.sign_attestation(
        {**forged, "id": "another", "claim": {**forged["claim"], "content": "x"}}, private
    )
    talk.run(talk.mrp().keep(whole, from_agent="Babel", agent="alice"))
    told = talk.ask(None, structured={"keywords": ["x"]})["results"][0]
    checked = talk.send(talk.verification(told))
    assert (statuses(checked)["evidence"], statuses(checked)["freshness"]) == ("pass", "pass"), "its author signed them"


def test_what_is_dated_in_the_future_is_not_fresh(over: Over) -> None:
    talk = Talk(*over)
    later = attestation("pruning", created_at=iso(talk.subject.clock() + AHEAD_MS + 1))
    talk.run(talk.mrp().keep(signatures.sign_attestation(later, key()[0]), from_agent="Babel", agent="alice"))
    checked = talk.send(talk.verification(result(talk), "freshness"))["results"]["freshness"]
    assert (checked["status"], checked["detail"]) == ("fail", "it is dated in the future")


def test_evidence_is_looked_up_here_and_never_fetched(over: Over) -> None:
    talk = Talk(*over)
    cases: list[tuple[list[str], str, int]] = [
        ([], "fail", 0), (["https://example.org/a", "docs/b.md"], "skip", 0), ([UNKNOWN], "fail", 0),
    ]  # fmt: skip
    for n, (references, status, accessible) in enumerate(cases):
        talk.remember(f"case{n}", metadata={"references": references})
        found = talk.ask(None, structured={"keywords": [f"case{n}"]})["results"][0]
        evidence = talk.send(talk.verification(found, "evidence"))["results"]["evidence"]
        got = (evidence["status"], evidence["accessible_count"], evidence["total_count"])
        assert got == (status, accessible, len(references))


def test_a_witness_counts_when_its_signature_is_by_a_key_that_is_bound(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    document = attestation("pruning by Babel")
    signature = signatures.sign_attestation(document, private)["signatures"]["agent_signature"]
    document["provenance"]["witnesses"] = [{"agent": "carol", "signature": signature}, {"agent": "dave"}]
    talk.run(talk.mrp().keep(document, from_agent="Babel", agent="alice"))
    found = result(talk)
    before = talk.send(talk.verification(found, "evidence"))["results"]["evidence"]
    assert (before["status"], before["accessible_count"], before["total_count"]) == ("skip", 0, 2)
    talk.trust("carol", 1, public)
    after = talk.send(talk.verification(found, "evidence"))["results"]["evidence"]
    assert (after["status"], after["accessible_count"]) == ("pass", 1)


def test_vouches_count_by_who_gave_them(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning")
    found = result(talk)
    talk.vouched(vouch("stranger", "alice"))
    none = talk.send(talk.verification(found, "vouches"))["results"]["vouches"]
    assert (none["status"], none["vouch_count"], none["trusted_vouchers"]) == ("fail", 0, [])
    talk.trust("djclawd", 3, voucher=True)
    assert talk.vouched(vouch("djclawd", "alice")), "an agent of ours has our key"
    answer = talk.send(talk.verification(found, "vouches"))
    assert answer["results"]["vouches"]["trusted_vouchers"] == ["djclawd"]
    assert answer["aggregate"]["trust_score"] == DECAY


def test_vouches_for_another_key_do_not_count_and_are_not_named(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    talk.trust("djclawd", 3, voucher=True)
    given = vouch("djclawd", "Babel")
    given["subject"]["public_key"] = key()[1]
    assert talk.vouched(given)
    talk.run(talk.mrp().keep(signatures.sign_attestation(attestation("pruning"), private), from_agent="x"))
    found = result(talk)
    told = talk.send(talk.verification(found, "vouches"))["results"]["vouches"]
    assert (told["status"], told["trusted_vouchers"]) == ("fail", [])
    given = vouch("djclawd", "Babel")
    given["subject"]["public_key"] = public
    assert talk.vouched(given)
    told = talk.send(talk.verification(found, "vouches"))["results"]["vouches"]
    assert (told["status"], told["trusted_vouchers"]) == ("pass", ["djclawd"])


def test_only_so_many_references_are_looked_up(over: Over) -> None:
    talk = Talk(*over)
    known = talk.remember("cutting")
    talk.remember("pruning", metadata={"references": [*(f"note-{n}" for n in range(150)), known]})
    told = talk.send(talk.verification(result(talk), "evidence"))["results"]["evidence"]
    assert (told["status"], told["accessible_count"], told["total_count"]) == ("fail", 0, 151)
    assert "51 lie elsewhere" in told["detail"]


def test_what_fails_in_a_verification_is_told_only_to_whom_it_belongs(
    over: Over, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    talk = Talk(*over)
    talk.remember("pruning", shared=["*"])
    found = result(talk)

    def broken() -> Any:
        raise Unavailable("cannot use the key in /somewhere")

    monkeypatch.setattr(talk.engine.peers.identity, "keypair", broken)
    with pytest.raises(Unavailable, match="somewhere"):
        talk.send(talk.verification(found))
    with pytest.raises(Unavailable, match="try again later") as said:
        talk.send(talk.verification(found), via=talk.mrp(peer=True))
    assert "somewhere" not in said.value.message


def test_freshness_follows_the_category(over: Over) -> None:
    talk = Talk(*over)
    days = {"foundational": None, "operational": 365, "experimental": 90, "ephemeral": 30}
    for category in days:
        talk.remember(f"pruning {category}", metadata={"category": category})
    for category, most in days.items():
        found = talk.ask(None, structured={"keywords": [category]})["results"][0]
        talk.subject.clock.advance((most or 4000) * DAY_MS)
        answer = talk.send(talk.verification(found, "freshness"))["results"]["freshness"]
        assert (answer["status"], answer["age_days"]) == ("pass", most or 4000)
        talk.subject.clock.advance(1000)
        answer = talk.send(talk.verification(found, "freshness"))["results"]["freshness"]
        assert answer["status"] == ("pass" if most is None else "fail")
        talk.subject.clock.now -= (most or 4000) * DAY_MS + 1000


def test_what_is_superseded_conflicts_with_what_replaced_it(over: Over) -> None:
    talk = Talk(*over)
    old = talk.remember("pruning is bad")
    found = result(talk)
    assert talk.send(talk.verification(found, "consistency"))["results"]["consistency"]["status"] == "pass"
    new = talk.remember("cutting is good", supersedes=[old])
    answer = talk.send(talk.verification(found, "consistency"))
    assert answer["results"]["consistency"]["conflicts"] == [new]
    assert answer["results"]["consistency"]["status"] == "fail"
    assert answer["aggregate"]["recommendation"] == "reject"
    talk.run(talk.subject.forget(new, agent="alice"))
    assert talk.send(talk.verification(found, "consistency"))["results"]["consistency"]["status"] == "pass"


def test_what_the_knowledge_graph_contradicts_conflicts(over: Over) -> None:
    talk = Talk(*over)
    triple = {"subject": "Alice", "predicate": "lives_in", "object": "Berlin"}
    talk.remember("pruning where Alice lives", metadata={"triple": triple})
    found = result(talk)

    def consistency() -> Document:
        checked: Document = talk.send(talk.verification(found, "consistency"))["results"]["consistency"]
        return checked

    assert consistency()["status"] == "pass", "nothing is stated"
    engine = talk.engine
    talk.run(engine.graph.assert_fact(LOCAL, "alice", subject="Alice", predicate="lives_in", object="berlin"))
    assert consistency()["status"] == "pass"
    moved = talk.remember("Alice moved to Paris")
    talk.run(
        engine.graph.assert_fact(
            LOCAL, "alice", subject="Alice", predicate="lives_in", object="Paris", provenance=moved
        )
    )
    answer = consistency()
    assert (answer["status"], answer["conflicts"]) == ("fail", [moved])
    talk.run(engine.graph.assert_fact(LOCAL, "bea", subject="Alice", predicate="lives_in", object="Rome"))
    assert consistency()["conflicts"] == [moved], "another agent's graph is its own"


def test_verifying_tells_nothing_of_what_one_may_not_see(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning in private")
    hidden = result(talk)
    shared = talk.remember("cutting for all", shared=["*"])
    talk.remember("cutting replaced in private", supersedes=[shared])
    bound = talk.remember("trimming for bob", shared=["bob"])
    peer = talk.mrp(peer=True)
    missing = talk.send({**talk.verification(hidden), "target": {"memory_id": UNKNOWN, "attestation_hash": "0" * 64}},
                        via=peer)  # fmt: skip
    for via in (peer, talk.mrp(Principal("x", "globex")), talk.mrp(Principal("y", "local", "reader", ("bea",)))):
        seen = talk.send(talk.verification(hidden), via=via)
        assert {**seen, "header": 0} == {**missing, "header": 0}, "as if there were none, though the hash is right"
    public = talk.ask(None, structured={"keywords": ["cutting"]}, via=peer)["results"][0]
    answer = talk.send(talk.verification(public, "consistency"), via=peer)
    assert answer["results"]["consistency"] == {
        "status": "pass", "conflicts": [], "detail": "nothing here contradicts it",
    }  # fmt: skip
    assert talk.send(talk.verification(public, "consistency"))["results"]["consistency"]["status"] == "fail"
    own = talk.ask(None, structured={"keywords": ["trimming"]})["results"][0]
    assert own["memory_id"] == bound
    assert talk.send(talk.verification(own), via=peer)["aggregate"]["recommendation"] == "reject"
    private, public_key = key()

    def as_bob() -> Document:
        return {**talk.verification(own), "requester": {"agent_id": "bob"}}

    assert talk.send(talk.sign(as_bob(), private), via=peer)["results"]["signature"]["status"] == "pass"
    talk.trust("bob", 1, public_key)
    assert talk.send(talk.sign(as_bob(), private), via=peer)["results"]["signature"]["status"] == "pass"
    for unproved in (as_bob(), signatures.sign_request(as_bob(), private), talk.sign(as_bob(), key()[0])):
        assert talk.send(unproved, via=peer)["aggregate"]["recommendation"] == "reject", "not proved to be bob, here"
    with pytest.raises(Unauthenticated):
        talk.send({**talk.sign(as_bob(), private), "checks": ["vouches"]}, via=peer)


def test_a_verification_holds_as_long_as_a_request_does(over: Over) -> None:
    talk = Talk(*over)
    talk.remember("pruning")
    asked = talk.verification(result(talk))
    early = {**asked, "header": {**asked["header"], "timestamp": iso(talk.subject.clock() + AHEAD_MS + 1)}}
    with pytest.raises(ValidationError, match="in the future"):
        talk.send(early)
    talk.subject.clock.advance(TTL_SECONDS * 1000 + SKEW_MS - 1)
    assert talk.send(asked)["aggregate"]["recommendation"] != "reject"
    talk.subject.clock.advance(1)
    with pytest.raises(ValidationError, match="the request has expired"):
        talk.send(asked)
    brief = talk.verification(result(talk))
    brief["header"]["ttl_seconds"] = 1
    talk.subject.clock.advance(1000 + SKEW_MS)
    with pytest.raises(ValidationError, match="the request has expired"):
        talk.send(brief)


def test_the_same_verification_gets_the_same_result_and_its_id_means_one(over: Over) -> None:
    talk = Talk(*over)
    id = talk.remember("pruning", "agent")
    found = result(talk)
    asked = talk.verification(found)
    first = talk.send(asked)
    talk.subject.clock.advance(1000)
    assert talk.send(asked) == first
    reused = talk.send({**asked, "checks": ["freshness"]})
    assert (reused["aggregate"]["trust_score"], reused["aggregate"]["recommendation"]) == (0.0, "reject")
    assert reused["results"]["signature"]["detail"] == "this verification is declined"
    elsewhere = talk.send(asked, via=talk.mrp(agent="agent"))
    assert elsewhere["results"]["signature"]["detail"] == "this verification is declined", "asked of another agent"
    request = talk.request()
    request["header"]["request_id"] = asked["header"]["verify_id"]
    assert talk.send(request)["status"]["code"] == "success", "the ids of requests are their own"
    talk.run(talk.subject.forget(id))
    assert talk.send(asked)["aggregate"]["recommendation"] == "reject", "what is gone is not vouched for again"


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda v: v.pop("target"), "target is required"),
    (lambda v: v["target"].pop("attestation_hash"), "attestation_hash is required"),
    (lambda v: v["header"].update(verify_id="x"), "verify_id must be a UUID"),
    (lambda v: v.update(checks=["mood"]), "one of signature, evidence, vouches, freshness, consistency"),
    (lambda v: v.update(version="2.0"), "version must be"),
])  # fmt: skip
def test_a_verification_that_is_wrong_is_refused(over: Over, spoil: Any, said: str) -> None:
    talk = Talk(*over)
    talk.remember("pruning")
    asked = talk.verification(result(talk))
    spoil(asked)
    with pytest.raises(ValidationError, match=said):
        talk.run(talk.mrp().handle(asked))


def test_the_aggregate_is_the_documented_formula() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    for made in itertools.product(("pass", "fail", "skip"), repeat=5):
        given = {name: {"status": status} for name, status in zip(CHECKS, made, strict=True)}
        score, recommendation = aggregate(given, 0.8)
        weight = sum(WEIGHTS[n] for n in CHECKS if given[n]["status"] != "skip")
        passed = sum(WEIGHTS[n] * (0.8 if n == "vouches" else 1) for n in CHECKS if given[n]["status"] == "pass")
        assert score == pytest.approx(passed / weight if weight else 0, abs=1e-4)
        assert 0 <= score <= 1
        if made[0] == "fail" or (weight and score < 0.4):
            assert recommendation == "reject"
        elif made[0] == "pass" and "fail" not in made and score >= 0.75:
            assert recommendation == "accept"
        else:
            assert recommendation == "accept_with_caution"
