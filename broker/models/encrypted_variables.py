"""Column of variables whose values are encrypted at rest."""

from typing import Any

from django.conf import settings
from django.db import models

from ports import crypto

PREFIX = "encrypted:"  # before a value that is encrypted; without it, it was stored before


class EncryptedVariables(models.JSONField):
    """Variables by name; their values are encrypted in the database, where a key is configured.

    A value whose key is gone stays as it is stored, so that lists can be shown without it: see `is_unreadable`.
    """

    def get_prep_value(self, value: Any) -> Any:
        if not isinstance(value, dict) or not settings.CREDENTIAL_ENCRYPTION_KEYS:
            return super().get_prep_value(value)
        return {name: PREFIX + crypto.encrypt(text.encode()).decode() for name, text in value.items()}

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        read = super().from_db_value(value, expression, connection)
        return {name: _decrypt(text) for name, text in read.items()} if isinstance(read, dict) else read

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs  # what it is in the database


def is_unreadable(values: dict[str, str]) -> bool:
    """Return whether one of these values could not be decrypted."""
    return any(text.startswith(PREFIX) for text in values.values())


def _decrypt(stored: str) -> str:
    if not stored.startswith(PREFIX):
        return stored
    try:
        return crypto.decrypt(stored.removeprefix(PREFIX).encode()).decode()
    except crypto.CredentialKeyError:
        return stored
