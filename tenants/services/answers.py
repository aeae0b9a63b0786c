"""Idempotency: the answer to a keyed request is kept in the transaction of its effect."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import Jsonb

from ports import database
from tenants.models import StoredAnswer
from tenants.services import walls
from tenants.services.refusals import Refused

KEPT = timedelta(days=7)


class KeyReused(Refused):
    code, status, title = "idempotency-key-reuse", 422, "This Idempotency-Key was used for another request"


class InFlight(Refused):
    code, status, title = "idempotency-in-flight", 409, "The same request is being worked on"


class KeyMissing(Refused):
    code, status, title = "idempotency-key-missing", 400, "An Idempotency-Key is needed here"


@dataclass(frozen=True)
class Asked:
    """What makes two requests the same one."""

    tenant_id: str
    bearer: str
    method: str
    path: str
    key: str
    digest: str


def digest_of(body: Any, query: str = "") -> str:
    """Return the SHA-256 of a body in canonical form, with the query string it came under."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(f"{query}\n{canonical}".encode()).hexdigest()


# One round trip takes the lock and reads. The lock may be got just after another request committed, later
# than this statement's snapshot: then nothing is found here, and the unique constraint refuses in `keep`.
FIND = """
SELECT lock.got, a.body_digest, a.status, a.headers, a.body
  FROM (SELECT pg_try_advisory_xact_lock(%s) AS got) lock
  LEFT JOIN tenants_storedanswer a
    ON a.tenant_id = %s AND a.bearer = %s AND a.method = %s AND a.path = %s AND a.key = %s
"""

KEEP = """
INSERT INTO tenants_storedanswer (tenant_id, bearer, method, path, key, body_digest, status, headers, body, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


def find(asked: Asked) -> StoredAnswer | None:
    """Return the answer given before, or None when the request is new; it is then ours to work on."""
    return look_up(asked)()


def look_up(asked: Asked) -> Callable[[], StoredAnswer | None]:
    """Ask for the answer given before; what is returned waits for it."""
    where = [asked.tenant_id, asked.bearer, asked.method, asked.path, asked.key]
    number = int.from_bytes(hashlib.sha256("\n".join(where).encode()).digest()[:8], "big", signed=True)
    cursor = database.prepared()
    cursor.execute(FIND, [number, *where])

    def read() -> StoredAnswer | None:
        with cursor:
            got, digest, status, headers, body = cursor.fetchone()
        if digest is None:
            if not got:
                raise in_flight()
            return None
        if digest != asked.digest:
            raise KeyReused(
                "This key already stands for a request with another body.",
                fix="Send a new key; use the old one only to repeat the very same request.",
            )
        return StoredAnswer(status=status, headers=json.loads(headers), body=body)

    return read


def keep(asked: Asked, *, status: int, headers: dict[str, str], body: str, now: datetime) -> None:
    """Store the answer with the effect; a second effect under the same key is undone."""
    row = (asked.tenant_id, asked.bearer, asked.method, asked.path, asked.key, asked.digest)
    try:
        with transaction.atomic(savepoint=False), database.prepared() as cursor:
            cursor.execute(KEEP, (*row, status, Jsonb(headers), body, now))
    except IntegrityError:
        raise in_flight() from None


def forget_old(*, now: datetime) -> int:
    """Drop answers older than a week, tenant by tenant; returns how many went."""
    old = StoredAnswer.objects.filter(at__lt=now - KEPT)
    with walls.as_sweep():
        tenants = list(old.order_by("tenant_id").values_list("tenant_id", flat=True).distinct())
    gone = 0
    for tenant_id in tenants:
        with walls.as_tenant(tenant_id):
            gone += old.all().delete()[0]
    return gone


def is_second(error: Exception) -> bool:
    """Tell whether this is PostgreSQL refusing a second effect under one key."""
    said = getattr(error.__cause__, "diag", None)
    return said is not None and said.constraint_name == "answer_once_per_key"


def in_flight() -> InFlight:
    return InFlight(
        "Another request with this key has not been answered yet; nothing was done twice.",
        fix="Wait a second, then send it again with the same key to get its answer.",
        retry_after=1,
    )
