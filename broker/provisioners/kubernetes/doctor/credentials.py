"""Credential type and expiry date of a kubeconfig.

They are read from the kubeconfig itself, for nobody warns when a certificate expires.
"""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from cryptography import x509

from broker.provisioners.kubernetes.doctor.snapshot import ClusterCredentialInfo


class TokenClaims(msgspec.Struct):
    """The expiry claim of a JSON web token."""

    exp: int | None = None


def read_credential(kubeconfig: Mapping[str, Any]) -> ClusterCredentialInfo:
    """Return the credential of a parsed kubeconfig."""
    user = kubeconfig["users"][0]["user"]
    if "token" in user:
        return ClusterCredentialInfo("token", _token_expiry(str(user["token"])))
    if "client-certificate-data" in user:
        return ClusterCredentialInfo("certificate", _certificate_expiry(str(user["client-certificate-data"])))
    return ClusterCredentialInfo("file" if "tokenFile" in user else "program")


def _token_expiry(token: str) -> datetime | None:
    """Return when a JSON web token expires; None for other tokens."""
    middle = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)), type=TokenClaims)
        return datetime.fromtimestamp(claims.exp, UTC) if claims.exp else None
    except (ValueError, OverflowError, OSError):  # no claims, or an end that no calendar has
        return None


def _certificate_expiry(data: str) -> datetime | None:
    try:
        return x509.load_pem_x509_certificate(base64.b64decode(data)).not_valid_after_utc
    except ValueError:
        return None
