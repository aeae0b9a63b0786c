"""How a kubeconfig signs in, and until when: read from itself, for nobody warns when a certificate runs out."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from cryptography import x509

from broker.provisioners.kubernetes.doctor.snapshot import Credential


class Claims(msgspec.Struct):
    """What a token says of itself, as far as its end goes."""

    exp: int | None = None


def credential_of(kubeconfig: Mapping[str, Any]) -> Credential:
    """Read the way in from a parsed kubeconfig."""
    user = kubeconfig["users"][0]["user"]
    if "token" in user:
        return Credential("token", _end_of_token(str(user["token"])))
    if "client-certificate-data" in user:
        return Credential("certificate", _end_of_certificate(str(user["client-certificate-data"])))
    return Credential("file" if "tokenFile" in user else "program")


def _end_of_token(token: str) -> datetime | None:
    """Return when a JSON web token ends; other tokens do not say."""
    middle = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)), type=Claims)
        return datetime.fromtimestamp(claims.exp, UTC) if claims.exp else None
    except (ValueError, OverflowError, OSError):  # no claims, or an end that no calendar has
        return None


def _end_of_certificate(data: str) -> datetime | None:
    try:
        return x509.load_pem_x509_certificate(base64.b64decode(data)).not_valid_after_utc
    except ValueError:
        return None
