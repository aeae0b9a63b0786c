"""Encryption of a secret's value, bound to the secret and version it belongs to."""

import json

from ports import crypto


class SecretUnreadable(Exception):
    """A stored value cannot be decrypted, or belongs to another secret; the text says why."""


def seal_value(value: str, *, secret_id: str, version: int) -> bytes:
    """Encrypt a value together with the id and version of its secret."""
    return crypto.encrypt(json.dumps({"secret": secret_id, "version": version, "value": value}).encode())


def open_value(sealed: bytes, *, secret_id: str, version: int) -> str:
    """Decrypt a value; raise SecretUnreadable without a key or for another secret's value."""
    try:
        content = json.loads(crypto.decrypt(sealed))
    except crypto.CredentialKeyError:
        raise SecretUnreadable("none of the encryption keys of this installation can decrypt it") from None
    if (content["secret"], content["version"]) != (secret_id, version):
        raise SecretUnreadable("its stored value belongs to another secret")
    return str(content["value"])
