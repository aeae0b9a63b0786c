"""Sessions in the database, stored by the hash of their key.

Who reads the table, or a backup of it, cannot use the sessions in it.
"""

import hashlib
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.base_session import AbstractBaseSession

HASH_LENGTH = 40  # of hexadecimal digits: the length of the column


def stored_key(session_key: str) -> str:
    """Return the key under which a session is stored."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:HASH_LENGTH]


class SessionStore(DatabaseSessionStore):
    """A session whose key only the browser has."""

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
