"""The server's own certificate: checked before anything listens, and known to processes on the same data directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

from commonplace.config import Config
from commonplace.wire.errors import ValidationError

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def check_certificate(config: Config) -> None:
    """Whether a server can be started with it; without one it speaks plain HTTP, and there is nothing to check."""
    if not config.tls_cert:
        if config.tls_key:
            raise ValidationError("a key without its certificate: give --tls-cert too", field="tls_cert")
        return
    import ssl  # megabytes that a server without a certificate does not need

    def no_password() -> str:
        raise ValidationError(
            f"the key in {config.tls_key or config.tls_cert} is locked by a password, and a server has nobody to ask; "
            "give it without one, readable by its owner alone",
            field="tls_key",
        )

    for field, path in (("tls_cert", config.tls_cert), ("tls_key", config.tls_key)):
        try:
            if path:
                Path(path).read_bytes()
        except OSError as error:
            raise ValidationError(f"{field}: cannot read {path}: {error.strerror or error}", field=field) from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            config.tls_cert, config.tls_key or None, password=no_password
        )
    except ssl.SSLError as error:
        key = config.tls_key or config.tls_cert
        if error.reason == "KEY_VALUES_MISMATCH":
            sentence = f"the key in {key} is not that of the certificate in {config.tls_cert}"
        else:
            sentence = f"{config.tls_cert} and {key} must hold a certificate and its key in PEM"
        raise ValidationError(sentence, field="tls_cert") from None


def certificate_hash(config: Config) -> str:
    """SHA-256 of the server's own certificate, the first in its file; "" without one."""
    if not config.tls_cert:
        return ""
    import ssl

    text = Path(config.tls_cert).read_text("ascii", "replace")
    own = text[text.index(_BEGIN) : text.index(_END) + len(_END)]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(own)).hexdigest()
