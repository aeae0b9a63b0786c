"""Sessions in the database, stored by the hash of their key.

Who reads the table, or a backup of it, cannot use the sessions in it.
"""

import hashlib
import logging
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.exceptions import SuspiciousOperation

from ports import clock

log = logging.getLogger(__name__)
HASH_LENGTH = 40  # of hexadecimal digits: the length of the column


def stored_key(session_key: str) -> str:
    """Return the key under which a session is stored."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:HASH_LENGTH]


class SessionStore(DatabaseSessionStore):
    """A session whose key only the browser has."""

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        found = self.model.objects.filter(session_key=stored_key(self.session_key or ""), expire_date__gt=clock.now())
        try:
            session: AbstractBaseSession | None = found.first()
        except SuspiciousOperation as error:
            log.warning("session not read: %s", error)
            session = None
        if session is None:
            self._session_key = None
        return session

    def exists(self, session_key: str) -> bool:
        return bool(self.model.objects.filter(session_key=stored_key(session_key)).exists())

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        session = super().create_model_instance(data)
        session.session_key = stored_key(session.session_key)
        return session

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            self.model.objects.filter(session_key=stored_key(key)).delete()
