"""Encryption of the plain variables of leases and schedules at rest.

Their names stay readable, since pages list them. A value is bound to its owner and name, so that it cannot be moved.
"""

import json
from collections.abc import Mapping

from django.conf import settings

from ports import crypto

PREFIX = "encrypted:"  # before a value that is encrypted; without it, it was stored before
NO_KEY = "none of the encryption keys of this installation can decrypt it"


class VariableUnreadable(Exception):
    """A stored value cannot be decrypted, or belongs to another variable; the text says why."""


def encrypt_variables(values: Mapping[str, str], *, owner_id: str) -> dict[str, str]:
    """Return variables as they are stored; unencrypted only where no key is configured."""
    if not settings.CREDENTIAL_ENCRYPTION_KEYS:
        return dict(values)
    return {name: _encrypt(value, name=name, owner_id=owner_id) for name, value in values.items()}


def decrypt_variables(stored: Mapping[str, str], *, owner_id: str) -> dict[str, str]:
    """Return variables with their values, or raise VariableUnreadable."""
    return {name: _decrypt(value, name=name, owner_id=owner_id) for name, value in stored.items()}


def reencrypt_variables(stored: Mapping[str, str], *, owner_id: str) -> dict[str, str]:
    """Return stored variables encrypted with the newest key."""
    return encrypt_variables(decrypt_variables(stored, owner_id=owner_id), owner_id=owner_id)


def _encrypt(value: str, *, name: str, owner_id: str) -> str:
    content = json.dumps({"owner": owner_id, "name": name, "value": value})
    return PREFIX + crypto.encrypt(content.encode()).decode()


def _decrypt(stored: str, *, name: str, owner_id: str) -> str:
    if not stored.startswith(PREFIX):
        return stored
    try:
        content = json.loads(crypto.decrypt(stored.removeprefix(PREFIX).encode()))
    except crypto.CredentialKeyError:
        raise VariableUnreadable(f"the value of {name} cannot be read: {NO_KEY}") from None
    if (content["owner"], content["name"]) != (owner_id, name):
        raise VariableUnreadable(f"the value of {name} cannot be read: it belongs to another variable")
    return str(content["value"])
