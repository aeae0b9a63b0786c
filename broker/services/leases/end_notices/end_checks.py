"""Regular check of leases near their end: extend them, or write notices."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError
from django.db.models import QuerySet

from broker.domain.lifecycle.automatic_extension import lead_before_end
from broker.domain.lifecycle.lease_notice_kinds import LeaseNoticeKind
from broker.models import Lease, StaleLease
from broker.services.leases.end_notices import notice_records
from broker.services.leases.lifecycle import extension
from broker.services.leases.lifecycle.extension import LeaseEndMoved
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from tenants.models import Tenant
from tenants.services import authentication
from tenants.services.actors import SYSTEM
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
ROW_ERRORS = (DatabaseError, StaleLease, ValueError)
BATCH = 500


def check_lease_ends(*, now: datetime) -> None:
    """Extend the leases that are to be extended, then write the notices that are due."""
    _extend_due(now)
    leads = sorted(settings.LEASE_END_NOTICES_S)
    for next_lead_s, lead_s in zip([0, *leads], leads, strict=False):
        for lease in _read(notice_records.leases_to_notify(lead_s, next_lead_s, now=now)):
            with _one_at_a_time(lease):
                _write_notice(lease, LeaseNoticeKind.ENDS_SOON, lead_s, now)
    reported = set[str]()  # arrays
    for lease in _read(notice_records.leases_that_ended(now=now)):
        if lease.array_id not in reported:
            with _one_at_a_time(lease):
                _write_notice(lease, LeaseNoticeKind.ENDED, 0, now)
        reported |= {lease.array_id} if lease.array_id else set()


@contextmanager
def _one_at_a_time(lease: Lease) -> Iterator[None]:
    """Log an unexpected fault of one lease, so that others are not stopped."""
    try:
        yield
    except ROW_ERRORS as error:
        log.error("end of lease not checked", lease_id=lease.pk, exc_info=error)


def _read(rows: QuerySet[Lease]) -> list[Lease]:
    with system_scope():
        return list(rows[:BATCH])


def _write_notice(lease: Lease, kind: LeaseNoticeKind, lead_s: int, now: datetime) -> None:
    ends_at = lease.ended_at if kind is LeaseNoticeKind.ENDED else lease.ends_at
    assert ends_at is not None  # the query asks for it
    with tenant_scope(lease.tenant_id):
        notice_records.record_notice(lease, kind, ends_at=ends_at, lead_s=lead_s, now=now)


def _extend_due(now: datetime) -> None:
    for lease in _read(notice_records.leases_to_extend(now=now)):
        if lease.ends_at is not None and lease.ends_at - now <= lead_before_end(lease.max_duration_s):
            with _one_at_a_time(lease), tenant_scope(lease.tenant_id):
                _extend_or_explain(lease, lease.ends_at, now)


def _extend_or_explain(lease: Lease, ends_at: datetime, now: datetime) -> None:
    """Extend a lease through every gate; record a refusal as a notice."""
    step_s = lease.automatic_extension.next_step_s(lease.max_duration_s)
    try:
        _refuse_suspended(lease)
        actor = replace(SYSTEM, token=lease.extend_with_token)
        longer = extension.extend_lease(lease, more_s=step_s, actor=actor, now=now, expected_end=ends_at)
    except (LeaseEndMoved, LeaseAlreadyOver):
        return  # somebody was faster
    except ProblemError as refusal:
        log.info("automatic extension refused", lease_id=lease.pk, why=refusal.detail)
        kind, text = LeaseNoticeKind.EXTENSION_REFUSED, f"{refusal.detail} {refusal.fix.text}"
        notice_records.record_notice(lease, kind, ends_at=ends_at, now=now, text=text)
        return
    if longer.ends_at:
        notice_records.record_notice(longer, LeaseNoticeKind.EXTENDED, ends_at=longer.ends_at, now=now)


def _refuse_suspended(lease: Lease) -> None:
    """Raise TenantSuspended where nobody of the tenant could extend a lease either."""
    authentication.require_not_suspended(Tenant.objects.get(pk=lease.tenant_id))
