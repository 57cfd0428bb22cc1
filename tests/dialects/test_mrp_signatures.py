"""What is signed in MRP: made, verified, and every changed byte caught."""

from __future__ import annotations

import base64
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings, strategies as st
from mrp_talk import attestation, key, vouch

from commonplace.dialects.mrp import signatures
from commonplace.wire import keys
from commonplace.wire.errors import Unauthenticated, ValidationError

PRIVATE, PUBLIC = key()


def response(**more: Any) -> dict[str, Any]:
    result = {
        "memory_id": "01977420-dc00-71a8-aa3c-9e6a9a2e68ef", "attestation": attestation(), "relevance_score": 0.87,
        "match_context": "it answers the question",
    }  # fmt: skip
    made: dict[str, Any] = {
        "type": "memory_response", "version": "0.1",
        "header": {"request_id": "r", "response_id": "s", "timestamp": "2026-02-10T12:00:00.000Z"},
        "responder": {"agent_id": "alice"}, "status": {"code": "success", "message": "found 1 memory"},
        "results": [result],
        "meta": {"total_matches": 1, "returned": 1, "processing_time_ms": 1.5, "trust_level_used": 2},
    }  # fmt: skip
    return {**made, **more}


def test_the_hash_is_of_the_canonical_form_without_signatures() -> None:
    made = attestation()
    shuffled = dict(reversed(list(made.items())))
    signed = signatures.sign_attestation(made, PRIVATE)
    hash = signatures.attestation_hash(made)
    assert hash.startswith("sha256:")
    assert len(hash) == 71
    assert signatures.attestation_hash(shuffled) == hash == signed["signatures"]["hash"]
    for spelled in (hash, hash.removeprefix("sha256:"), hash.upper().replace("SHA256", "sha256")):
        assert signatures.same_hash(signed, spelled)
    for wrong in ("", "sha256:", hash[:-1], hash + "0", "sha1:" + hash[7:]):
        assert not signatures.same_hash(signed, wrong)


def test_numbers_are_spelled_as_rfc_8785_says() -> None:
    assert signatures.attestation_bytes({"b": 1.0, "a": 1e21, "signatures": 1}) == b'{"a":1e+21,"b":1}'
    with pytest.raises(ValidationError, match="canonical form"):
        signatures.attestation_bytes({"a": 2**60})


def test_a_signed_response_verifies_and_says_what_is_signed() -> None:
    signed = signatures.sign_response(response(), PRIVATE)
    assert signed["signature"]["algorithm"] == "ed25519"
    assert signed["signature"]["signed_fields"] == ["results", "meta", "timestamp"]
    assert signed["responder"]["public_key"] == PUBLIC
    travelled = json.loads(json.dumps(signed))
    assert signatures.verify_response(travelled)
    assert signatures.verify_response(travelled, PUBLIC)
    assert not signatures.verify_response(travelled, key()[1])
    assert not signatures.verify_response(response())
    less = {**travelled, "signature": {**travelled["signature"], "signed_fields": ["meta"]}}
    with pytest.raises(ValidationError, match="signed_fields"):
        signatures.verify_response(less)
    unsigned = {name: value for name, value in response().items() if name != "meta"}
    with pytest.raises(ValidationError, match="meta"):
        signatures.sign_response(unsigned, PRIVATE)


def changed(document: Any, at: int) -> Any:
    """The document with the `at`-th of its leaves (or keys) changed a little."""
    seen = 0

    def walk(node: Any) -> Any:
        nonlocal seen
        if isinstance(node, dict):
            done = {}
            for name, value in node.items():
                seen += 1
                done[name + "x" if seen - 1 == at else name] = walk(value)
            return done
        if isinstance(node, list):
            seen += 1
            return [*map(walk, node), "one more"] if seen - 1 == at else [walk(item) for item in node]
        seen += 1
        if seen - 1 != at:
            return node
        return {str: lambda: node + " ", bool: lambda: not node, type(None): lambda: 0}.get(
            type(node), lambda: node + 1
        )()

    return walk(copy.deepcopy(document))


@pytest.mark.parametrize("change", [
    lambda r: r["header"].update(timestamp="2026-02-10T12:00:00.001Z"), lambda r: r["meta"].update(returned=2),
    lambda r: r["results"][0].update(relevance_score=0.1), lambda r: r["results"].clear(),
])  # fmt: skip
def test_each_field_that_is_signed_is_covered(change: Callable[[Any], Any]) -> None:
    signed = signatures.sign_response(response(), PRIVATE)
    assert signatures.verify_response(signed, PUBLIC)
    tampered = copy.deepcopy(signed)
    change(tampered)
    assert not signatures.verify_response(tampered, PUBLIC)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 80))
def test_any_change_to_a_signed_response_is_caught(at: int) -> None:
    signed = signatures.sign_response(response(), PRIVATE)
    covered = {"results": signed["results"], "meta": signed["meta"], "timestamp": signed["header"]["timestamp"]}
    other = changed(covered, at)
    if other == covered:
        return
    if set(other) != set(covered):  # one of the three is there no more
        return
    tampered = {**signed, "results": other["results"], "meta": other["meta"]}
    tampered["header"] = {**signed["header"], "timestamp": other["timestamp"]}
    assert not signatures.verify_response(tampered, PUBLIC)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 60))
def test_any_change_to_an_attestation_is_caught(at: int) -> None:
    signed = signatures.sign_attestation(attestation(), PRIVATE)
    bare = {name: value for name, value in signed.items() if name != "signatures"}
    other = changed(bare, at)
    if other == bare or set(other) != set(bare):
        return
    assert not signatures.verify_attestation({**other, "signatures": signed["signatures"]}, PUBLIC)
    assert not signatures.same_hash(other, signed["signatures"]["hash"])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 60))
def test_any_change_is_caught_by_the_signatures_alone(at: int) -> None:
    """Whoever changes an attestation can put its hash right again."""
    bare = attestation()
    signed = signatures.sign_attestation(bare, PRIVATE)["signatures"]
    other = changed(bare, at)
    if other == bare or set(other) != set(bare):
        return
    rehashed = {**other, "signatures": {**signed, "hash": signatures.attestation_hash(other)}}
    assert signatures.covered(rehashed, PUBLIC) is None
    claim_only = {name: value for name, value in rehashed["signatures"].items() if name != "full_signature"}
    same = (other["claim"], other["salience"]) == (bare["claim"], bare["salience"])
    assert signatures.covered({**other, "signatures": claim_only}, PUBLIC) == ("claim" if same else None)


def test_what_a_signature_covers() -> None:
    bare = attestation()
    signed = signatures.sign_attestation(bare, PRIVATE)
    assert keys.verify(PUBLIC, signatures.claim_bytes(bare), signed["signatures"]["agent_signature"])
    assert signatures.claim_bytes(bare) == keys.bytes_of({"claim": bare["claim"], "salience": bare["salience"]})
    assert keys.verify(PUBLIC, signatures.attestation_bytes(bare), signed["signatures"]["full_signature"])
    assert signatures.covered(signed, PUBLIC) == "whole"
    assert signatures.covered(signed, key()[1]) is None
    assert signatures.covered(bare, PUBLIC) is None
    for missing, part in (("full_signature", "claim"), ("hash", "whole"), ("agent_signature", None)):
        kept = {name: value for name, value in signed["signatures"].items() if name != missing}
        assert signatures.covered({**bare, "signatures": kept}, PUBLIC) == part
    for other in (signed["signatures"]["agent_signature"], keys.sign(key()[0], signatures.attestation_bytes(bare))):
        swapped = {**signed["signatures"], "full_signature": other}
        assert signatures.covered({**bare, "signatures": swapped}, PUBLIC) is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_flipped_bit_of_what_is_signed_is_caught(data: st.DataObject) -> None:
    for message in (
        signatures.response_bytes(response()),
        signatures.claim_bytes(attestation()),
        keys.bytes_of(vouch("a", "b"), "signatures"),
    ):
        value = keys.sign(PRIVATE, message)
        assert keys.verify(PUBLIC, message, value)
        bit = data.draw(st.integers(0, len(message) * 8 - 1))
        flipped = bytearray(message)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not keys.verify(PUBLIC, bytes(flipped), value)
        raw = bytearray(base64.b64decode(value))
        bit = data.draw(st.integers(0, len(raw) * 8 - 1))
        raw[bit // 8] ^= 1 << bit % 8
        assert not keys.verify(PUBLIC, message, keys.encode(bytes(raw)))


def test_rsa_signatures_of_others_are_verified() -> None:
    private = rsa.generate_private_key(65537, 2048)
    public = keys.encode(private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    made = response(responder={"agent_id": "alice", "public_key": public})
    value = keys.encode(private.sign(signatures.response_bytes(made), padding.PKCS1v15(), SHA256()))
    made["signature"] = {"algorithm": "rsa-sha256", "value": value, "signed_fields": signatures.SIGNED_FIELDS}
    assert signatures.verify_response(made)
    made["meta"] = {**made["meta"], "returned": 2}
    assert not signatures.verify_response(made)
    small = rsa.generate_private_key(65537, 1024)
    weak = keys.encode(small.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ValidationError, match="2048 bits"):
        keys.check_public(weak)


#: The same 32 bytes for a lenient reader: bits are set that base64 leaves unused.
_LAST = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
RESPELLED = PUBLIC[:42] + _LAST[_LAST.index(PUBLIC[42]) + 1] + "="


@pytest.mark.parametrize(
    "wrong", ["", "AAAA", "not base64!", PUBLIC[:-1], PUBLIC + "=", PUBLIC + "\n", f" {PUBLIC}", "A" * 43 + "B",
              "=" * 44, keys.encode(b"x" * 31), keys.encode(b"x" * 33), keys.encode(b"x" * 400), "A" * 100_000,
              RESPELLED],
    ids=range(14),
)  # fmt: skip
def test_malformed_keys_are_refused_by_name(wrong: str) -> None:
    with pytest.raises(ValidationError, match=r"public_key must be base64"):
        keys.check_public(wrong)


_FIELD = 2**255 - 19
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022


@pytest.mark.parametrize("sign", [0, 1 << 255])
@pytest.mark.parametrize("y", [0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8, _FIELD, _FIELD + 1, 2**255 - 1])
def test_keys_that_verify_anything_are_refused(y: int, sign: int) -> None:
    weak = keys.encode((y | sign).to_bytes(32, "little"))
    with pytest.raises(ValidationError, match="the key of somebody"):
        keys.check_public(weak)
    # With R the neutral element and S nothing, such a key can verify a message nobody has signed.
    with pytest.raises(ValidationError, match="the key of somebody"):
        keys.verify(weak, b"anything", keys.encode((1).to_bytes(32, "little") + bytes(32)))


def test_a_signed_request_proves_possession_of_its_key_and_no_more() -> None:
    request = {"type": "memory_request", "requester": {"agent_id": "bob"}, "query": {"natural": "x"}}
    assert signatures.verify_request(request) is None
    signed = signatures.sign_request(request, PRIVATE)
    assert signatures.verify_request(json.loads(json.dumps(signed))) == PUBLIC
    with pytest.raises(Unauthenticated, match="sign it again"):
        signatures.verify_request({**signed, "query": {"natural": "y"}})
    with pytest.raises(Unauthenticated):
        signatures.verify_request({**signed, "requester": {"agent_id": "bob", "public_key": key()[1]}})
    with pytest.raises(ValidationError, match=r"requester\.public_key"):
        signatures.verify_request({**signed, "requester": {"agent_id": "bob"}})
    with pytest.raises(ValidationError, match="algorithm"):
        signatures.verify_request({**signed, "signature": {**signed["signature"], "algorithm": "md5"}})


def test_checking_signatures_needs_no_server() -> None:
    """A client imports what it needs and nothing heavier."""
    code = (
        "import sys; from commonplace.dialects.mrp import signatures; "
        "print(sorted({'numpy', 'apsw', 'starlette', 'pydantic', 'cryptography'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
