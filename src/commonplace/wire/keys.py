"""Keys as people pass them around: base64 of their raw bytes. Made, used and checked; never kept here."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commonplace.wire.canonical import canonical
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

ED25519 = "ed25519"
RSA_SHA256 = "rsa-sha256"
_RAW = 32  # bytes of an Ed25519 key, private or public
_FEWEST_RSA_BITS = 2048
_FIELD = 2**255 - 19
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})  # the y of the points of order 1, 2, 4 and 8
_MAX_BASE64_CHARS = 8192  # characters of anything in base64 that is looked at


def new_private() -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return encode(Ed25519PrivateKey.generate().private_bytes_raw())


def public_of(private: str) -> str:
    return encode(_signer(private).public_key().public_bytes_raw())


def sign(private: str, message: bytes) -> str:
    """An Ed25519 signature, in base64."""
    signature: bytes = _signer(private).sign(message)
    return encode(signature)


def verify(public: str, message: bytes, signature: str, algorithm: str = ED25519) -> bool:
    """Whether that key's holder signed these bytes. A key or signature that cannot be one is refused by name."""
    from cryptography.exceptions import InvalidSignature

    value = decode(signature, "signature")
    try:
        if algorithm == ED25519:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

            Ed25519PublicKey.from_public_bytes(_ed25519(public)).verify(value, message)
        elif algorithm == RSA_SHA256:
            from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
            from cryptography.hazmat.primitives.hashes import SHA256

            _rsa(public).verify(value, message, PKCS1v15(), SHA256())
        else:
            raise ValidationError(
                f"algorithm must be one of {ED25519}, {RSA_SHA256}, not {algorithm!r:.80}", field="algorithm"
            )
    except InvalidSignature:
        return False
    return True


def check_public(public: str) -> str:
    """The key as it is, or a refusal that says what a key is."""
    if algorithm_of(public) == RSA_SHA256:
        _rsa(public)
    else:
        _ed25519(public)
    return public


def algorithm_of(public: str) -> str:
    """What a key signs with: an RSA key is far longer than the 32 bytes of the other kind."""
    return RSA_SHA256 if len(public) > 2 * _RAW else ED25519


def bytes_of(document: Mapping[str, Any], *left_out: str) -> bytes:
    """What is signed or hashed of a document: its canonical form (RFC 8785), without the fields left out."""
    try:
        return canonical({name: value for name, value in document.items() if name not in left_out})
    except (ValueError, TypeError, OverflowError) as error:  # rfc8785's own errors are ValueErrors
        raise ValidationError(f"this has no canonical form (RFC 8785): {error}") from None


def fingerprint(public: str) -> str:
    """Short enough to read to each other: `SHA256:` and the first 16 hex digits, in fours."""
    digits = hashlib.sha256(decode(public, "public_key")).hexdigest()[:16]
    return "SHA256:" + ":".join(digits[i : i + 4] for i in range(0, 16, 4))


def encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def decode(text: str, field: str, size: int | None = None) -> bytes:
    """Standard base64 only: one key has one spelling."""
    wanted = f"base64 of {size} bytes" if size else "base64"
    try:
        if not isinstance(text, str) or not text or len(text) > _MAX_BASE64_CHARS:
            raise ValueError
        raw = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ValidationError(f"{field} must be {wanted}", field=field) from None
    if size is not None and len(raw) != size:
        raise ValidationError(f"{field} must be {wanted}, not of {len(raw)}", field=field)
    if encode(raw) != text:
        raise ValidationError(f"{field} must be {wanted}, spelled the standard way", field=field)
    return raw


def _signer(private: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(decode(private, "private key", _RAW))


def _ed25519(public: str) -> bytes:
    """A point that some private key leads to. Of small order there are eight, and anyone can make a signature that one
    of them verifies, for any message; and what is spelled beyond the field is a second spelling of another key."""
    raw = decode(public, "public_key", _RAW)
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)  # the last bit is the sign of x
    if y >= _FIELD or y in _SMALL_ORDER:
        raise ValidationError("public_key must be the key of somebody: this one verifies anything", field="public_key")
    return raw


def _rsa(public: str) -> RSAPublicKey:
    """SubjectPublicKeyInfo in DER, of at least 2048 bits."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(decode(public, "public_key"))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey) or key.key_size < _FEWEST_RSA_BITS:
        raise ValidationError(
            f"public_key must be base64 of an RSA key (SubjectPublicKeyInfo, DER) of at least {_FEWEST_RSA_BITS} bits",
            field="public_key",
        )
    return key
