"""Idempotency records: the response to a keyed request, stored with its effect."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import Jsonb
from django.utils.crypto import salted_hmac

from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import IdempotencyRecord, OperatorIdempotencyRecord
from tenants.services import rls
from tenants.services.errors import ProblemError
from tenants.services.rls import enter_operator

RETENTION = timedelta(days=7)
ONCE_PER_KEY = ("answer_once_per_key", "operator_answer_once_per_key")


class IdempotencyKeyReused(ProblemError):
    code, status, title = "idempotency-key-reuse", 422, "This Idempotency-Key was used for another request"


class RequestInFlight(ProblemError):
    code, status, title = "idempotency-in-flight", 409, "The same request is in progress"


class IdempotencyKeyMissing(ProblemError):
    code, status, title = "idempotency-key-missing", 400, "An Idempotency-Key is required"


@dataclass(frozen=True)
class KeyedRequest:
    """Identity of a keyed request: two requests with equal fields are the same one.

    That of an operator has no tenant.
    """

    tenant_id: str
    bearer: str
    method: str
    path: str
    key: str
    digest: str


def request_digest(body: Any, query: str = "") -> str:
    """Return the SHA-256 of a canonical JSON body and its query string."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(f"{query}\n{canonical}".encode()).hexdigest()


def blind_fields(body: Any, names: Collection[str]) -> Any:
    """Return a body with a keyed hash in place of some fields.

    A plain digest would let whoever reads the database try out short values.
    """
    if not names or not isinstance(body, Mapping):
        return body
    return {
        name: salted_hmac("gpubroker.idempotency", json.dumps(value, sort_keys=True), algorithm="sha256").hexdigest()
        if name in names
        else value
        for name, value in body.items()
    }


def find_record(request: KeyedRequest) -> IdempotencyRecord | None:
    """Return the stored response, or None for a new request.

    A new request's key is then locked for this transaction.
    """
    return start_lookup(request)()


def start_lookup(request: KeyedRequest) -> Callable[[], IdempotencyRecord | None]:
    """Query the stored response; the returned function waits for it."""
    where = [request.tenant_id, request.bearer, request.method, request.path, request.key]
    number = int.from_bytes(hashlib.sha256("\n".join(where).encode()).digest()[:8], "big", signed=True)
    cursor = sql_statements.prepared_cursor()
    if request.tenant_id:
        cursor.execute(load_sql("tenants/idempotency/find_record"), [number, *where])
    else:
        enter_operator(request.bearer)
        cursor.execute(load_sql("tenants/idempotency/find_operator_record"), [number, *where[1:]])

    def read() -> IdempotencyRecord | None:
        with cursor:
            got, digest, status, headers, body = cursor.fetchone()
        if digest is None:
            if not got:
                raise request_in_flight()
            return None
        if digest != request.digest:
            raise IdempotencyKeyReused(
                "The key was already used for a request with another body.",
                fix="Send a new key. Use the old key only to repeat the same request.",
            )
        return IdempotencyRecord(status=status, headers=json.loads(headers), body=body)

    return read


def store_record(request: KeyedRequest, *, status: int, headers: dict[str, str], body: str, now: datetime) -> None:
    """Store the response in the transaction of its effect.

    A second effect under the same key is rolled back.
    """
    row = (request.tenant_id, request.bearer, request.method, request.path, request.key, request.digest)
    try:
        with transaction.atomic(savepoint=False), sql_statements.prepared_cursor() as cursor:
            response = (status, Jsonb(headers), body, now)
            if request.tenant_id:
                cursor.execute(load_sql("tenants/idempotency/store_record"), (*row, *response))
            else:
                cursor.execute(load_sql("tenants/idempotency/store_operator_record"), (*row[1:], *response))
    except IntegrityError:
        raise request_in_flight() from None


def delete_expired(*, now: datetime) -> int:
    """Delete idempotency records older than a week, tenant by tenant; return how many."""
    old = IdempotencyRecord.objects.filter(at__lt=now - RETENTION)
    with rls.system_scope():
        tenants = list(old.order_by("tenant_id").values_list("tenant_id", flat=True).distinct())
    gone = 0
    for tenant_id in tenants:
        with rls.tenant_scope(tenant_id):
            gone += old.all().delete()[0]
    return gone + _delete_expired_of_operators(now=now)


def _delete_expired_of_operators(*, now: datetime) -> int:
    old, gone = OperatorIdempotencyRecord.objects.filter(at__lt=now - RETENTION), 0
    with rls.system_scope():
        bearers = list(old.order_by("bearer").values_list("bearer", flat=True).distinct())
    for bearer in bearers:
        with transaction.atomic():
            enter_operator(bearer)
            gone += old.all().delete()[0]
    return gone


def is_duplicate_effect(error: Exception) -> bool:
    """Return whether PostgreSQL refused a second effect under one key."""
    diagnostics = getattr(error.__cause__, "diag", None)
    return diagnostics is not None and diagnostics.constraint_name in ONCE_PER_KEY


def request_in_flight() -> RequestInFlight:
    return RequestInFlight(
        "Another request with this key is in progress. Nothing was done twice.",
        fix="Wait a second, then send it again with the same key to get its response.",
        retry_after=1,
    )
