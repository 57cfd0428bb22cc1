"""What is signed in MRP, and by which bytes. Pure: a client without a server of its own can use all of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from commonplace.wire import keys
from commonplace.wire.canonical import sha256_hex
from commonplace.wire.errors import Unauthenticated, ValidationError

Document = dict[str, Any]

#: What a key has signed of an attestation: all of it, or its claim and salience alone.
Covered = Literal["whole", "claim"]

SIGNED_FIELDS = ["results", "meta", "timestamp"]
_HEX = re.compile(r"(?:sha256:)?([0-9a-f]{64})\Z", re.IGNORECASE)


# attestations


def attestation_bytes(attestation: Mapping[str, Any]) -> bytes:
    """What an attestation's hash covers: all of it but its signatures."""
    return keys.bytes_of(attestation, "signatures")


def attestation_hash(attestation: Mapping[str, Any]) -> str:
    return f"sha256:{sha256_hex(attestation_bytes(attestation))}"


def same_hash(attestation: Mapping[str, Any], given: str) -> bool:
    """Whether `given`, with or without `sha256:` before it, is this attestation's hash."""
    found = _HEX.match(given)
    return found is not None and attestation_hash(attestation) == f"sha256:{found[1].lower()}"


def claim_bytes(attestation: Mapping[str, Any]) -> bytes:
    """What an agent signs of an attestation: what it claims and why that was kept."""
    return keys.bytes_of({"claim": attestation["claim"], "salience": attestation["salience"]})


def sign_attestation(attestation: Document, private: str) -> Document:
    """The attestation with its hash and two signatures by that key: the document's own over claim and salience, and
    `full_signature` over all of it, without which its id, author, time and provenance are anybody's word."""
    signatures = {
        "agent_signature": keys.sign(private, claim_bytes(attestation)),
        "full_signature": keys.sign(private, attestation_bytes(attestation)),
        "hash": attestation_hash(attestation),
        "algorithm": keys.ED25519,
        "public_key": keys.public_of(private),
    }
    return {**attestation, "signatures": signatures}


def covered(attestation: Mapping[str, Any], public: str, algorithm: str | None = None) -> Covered | None:
    """What of it that key has signed; None where it has not, or where the attestation has been changed since."""
    signatures = attestation.get("signatures") or {}
    value, whole = signatures.get("agent_signature"), signatures.get("full_signature")
    if not isinstance(value, str) or not value:
        return None
    stated = signatures.get("hash")
    if stated is not None and not (isinstance(stated, str) and same_hash(attestation, stated)):
        return None
    how = algorithm or signatures.get("algorithm") or keys.algorithm_of(public)
    if not keys.verify(public, claim_bytes(attestation), value, how):
        return None
    if whole is None:
        return "claim"
    return "whole" if keys.verify(public, attestation_bytes(attestation), whole, how) else None


def verify_attestation(attestation: Mapping[str, Any], public: str, algorithm: str | None = None) -> bool:
    """Whether that key signed it, at least its claim and salience, and nothing says that it was changed since."""
    return covered(attestation, public, algorithm) is not None


# responses


def response_bytes(response: Mapping[str, Any]) -> bytes:
    """What a response's signature covers; its timestamp is the one in the header."""
    if "meta" not in response:
        raise ValidationError("a signed response carries meta", field="meta")
    timestamp = response["header"]["timestamp"]
    return keys.bytes_of({"results": response["results"], "meta": response["meta"], "timestamp": timestamp})


def sign_response(response: Document, private: str) -> Document:
    """The response with the signer's key and signature."""
    signature = {
        "algorithm": keys.ED25519,
        "value": keys.sign(private, response_bytes(response)),
        "signed_fields": list(SIGNED_FIELDS),
    }
    responder = {**response["responder"], "public_key": keys.public_of(private)}
    return {**response, "responder": responder, "signature": signature}


def verify_response(response: Mapping[str, Any], public: str | None = None) -> bool:
    """Whether the response is as that key's holder signed it.

    Without `public` the key in the response itself is used, which shows only that nothing was changed on the way by
    someone without that key: give the key you know to learn who it came from.
    """
    signature = response.get("signature")
    if not isinstance(signature, Mapping):
        return False
    if sorted(map(str, signature.get("signed_fields") or SIGNED_FIELDS)) != sorted(SIGNED_FIELDS):
        raise ValidationError(
            f"signed_fields must be {', '.join(SIGNED_FIELDS)}; nothing else is known to be signed",
            field="signature.signed_fields",
        )
    key = public or (response.get("responder") or {}).get("public_key")
    if not key:
        raise ValidationError("the response names no public_key; give the one you know", field="responder.public_key")
    return keys.verify(key, response_bytes(response), signature["value"], signature.get("algorithm", keys.ED25519))


# whatever else carries a `signature`: requests, verifications


def unsigned_bytes(document: Mapping[str, Any]) -> bytes:
    """A request without its own signature."""
    return keys.bytes_of(document, "signature")


def sign_request(request: Document, private: str) -> Document:
    """The request with the requester's key in it, and a signature over all the rest: proof that it holds the key."""
    requester = {**request["requester"], "public_key": keys.public_of(private)}
    whole = {**request, "requester": requester}
    whole.pop("signature", None)
    value = keys.sign(private, unsigned_bytes(whole))
    return {**whole, "signature": {"algorithm": keys.ED25519, "value": value}}


def verify_request(request: Mapping[str, Any]) -> str | None:
    """The key whose possession the request proves, None when it carries no signature; a wrong one is refused."""
    signature = request.get("signature")
    if signature is None:
        return None
    key = (request.get("requester") or {}).get("public_key")
    if key is None:
        raise ValidationError("a signed request names its key in requester.public_key", field="requester.public_key")
    checked: str = keys.check_public(key)
    algorithm = signature.get("algorithm") or keys.algorithm_of(checked)
    if not keys.verify(checked, unsigned_bytes(request), signature["value"], algorithm):
        raise Unauthenticated("the signature is not this request's: sign it again, or leave it out")
    return checked


# vouches


def sign_vouch(vouch: Document, private: str) -> Document:
    voucher = {**vouch["voucher"], "public_key": keys.public_of(private)}
    whole = {**vouch, "voucher": voucher}
    value = keys.sign(private, keys.bytes_of(whole, "signatures"))
    return {**whole, "signatures": {"voucher_signature": value, "algorithm": keys.ED25519}}
