"""Sessions in the database: encrypted, and stored by the hash of their key.

Who reads the table, or a backup of it, can use neither the sessions nor what is in them: seeds of second factors that
are being set up, and the secrets of opened invitations and password resets.
"""

import hashlib
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.db import transaction

from ports import crypto

PREFIX = "encrypted:"  # before data that are encrypted; without it, they were stored before
HASH_LENGTH = 40  # of hexadecimal digits: the length of the column


def stored_key(session_key: str) -> str:
    """Return the key under which a session is stored."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:HASH_LENGTH]


class SessionStore(DatabaseSessionStore):
    """A session whose key only the browser has."""

    def encode(self, session_dict: dict[str, Any]) -> str:
        """Return a session as it is stored; unencrypted only where no key is configured."""
        return _encrypt(super().encode(session_dict))

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Return a stored session; an empty one if its encryption key is gone."""
        text = session_data.decode() if isinstance(session_data, bytes) else session_data
        try:
            return super().decode(_decrypt(text))
        except crypto.CredentialKeyError:
            return {}

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        key = self._session_key
        self._session_key = stored_key(key or "")
        found: AbstractBaseSession | None = super()._get_session_from_db()  # type: ignore[misc]  # not in its types
        self._session_key = key if found else None
        return found

    def exists(self, session_key: str) -> bool:
        return bool(self.model.objects.filter(session_key=stored_key(session_key)).exists())

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        session = super().create_model_instance(data)
        session.session_key = stored_key(session.session_key)
        return session

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            self.model.objects.filter(session_key=stored_key(key)).delete()


@transaction.atomic
def reencrypt_sessions() -> int:
    """Encrypt all sessions with the newest key, and return how many.

    Sessions whose key is gone end.
    """
    sessions = list(Session.objects.select_for_update().order_by("pk"))
    for session in sessions:
        try:
            data = _encrypt(_decrypt(session.session_data))
        except crypto.CredentialKeyError:
            session.delete()
        else:
            Session.objects.filter(pk=session.pk).update(session_data=data)
    return len(sessions)


def _encrypt(data: str) -> str:
    return PREFIX + crypto.encrypt(data.encode()).decode() if settings.CREDENTIAL_ENCRYPTION_KEYS else data


def _decrypt(stored: str) -> str:
    return crypto.decrypt(stored.removeprefix(PREFIX).encode()).decode() if stored.startswith(PREFIX) else stored
