"""Records of notices about the end of a lease; a repeated one is written once."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value

from broker.domain.lifecycle.automatic_extension import LEAD, MIN_EXTENSION_S
from broker.domain.lifecycle.lease_notice_kinds import LeaseNoticeKind
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseNotice

MAX_TEXT = 500
REPORTED_FOR = timedelta(days=1)  # an end that workers could not report in this time is old news


def record_notice(
    lease: Lease, kind: LeaseNoticeKind, *, ends_at: datetime, now: datetime, lead_s: int = 0, text: str = ""
) -> None:
    """Record a notice about one end of a lease, unless it exists."""
    notice = LeaseNotice(
        tenant_id=lease.tenant_id,
        lease=lease,
        kind=kind.value,
        lead_s=lead_s,
        ends_at=ends_at,
        text=text[:MAX_TEXT],
        made_at=now,
    )
    LeaseNotice.objects.bulk_create([notice], ignore_conflicts=True)


def notices_of(lease: Lease) -> QuerySet[LeaseNotice]:
    """Return the notices of a lease, newest first."""
    return LeaseNotice.objects.filter(lease=lease).order_by("-made_at", "-pk")


def refused_extensions(leases: Iterable[Lease]) -> Mapping[str, str]:
    """Return why the present end of each lease was not extended, by lease."""
    ends = {lease.pk: lease.ends_at for lease in leases if lease.automatic_extension.is_on}
    if not ends:
        return {}
    refused = LeaseNotice.objects.filter(lease__in=ends, kind=LeaseNoticeKind.EXTENSION_REFUSED.value)
    return {notice.lease_id: notice.text for notice in refused if notice.ends_at == ends[notice.lease_id]}


def longest_lead() -> timedelta:
    """Return how long before an end its first notice is due."""
    return timedelta(seconds=max(settings.LEASE_END_NOTICES_S, default=0))


def leases_ending_soon(leases: QuerySet[Lease], *, now: datetime) -> QuerySet[Lease]:
    """Return the active leases that are due a notice, by their end."""
    due = Q(pk=None)
    for lead in (timedelta(seconds=lead_s) for lead_s in settings.LEASE_END_NOTICES_S):
        due |= Q(ends_at__lte=now + lead, active_at__lte=F("ends_at") - Value(lead))
    running = leases.filter(due, state=LeaseState.ACTIVE.value, ends_at__gt=now)
    return running.exclude(_extension_expected()).order_by("ends_at", "pk")


def leases_to_notify(lead_s: int, next_lead_s: int, *, now: datetime) -> QuerySet[Lease]:
    """Return the leases that are due a notice of this lead; requires system scope.

    None for a lease that was active for less than the lead, nor for one that will be extended.
    """
    lead = timedelta(seconds=lead_s)
    ends = {"ends_at__gt": now + timedelta(seconds=next_lead_s), "ends_at__lte": now + lead}
    running = Lease.objects.filter(
        state=LeaseState.ACTIVE.value, reclaim_at=None, active_at__lt=F("ends_at") - Value(lead), **ends
    )
    sent = LeaseNotice.objects.filter(
        tenant=OuterRef("tenant"),  # its index begins with the tenant
        lease=OuterRef("pk"),
        kind=LeaseNoticeKind.ENDS_SOON.value,
        lead_s=lead_s,
        ends_at=OuterRef("ends_at"),
    )
    return running.exclude(_extension_expected()).exclude(Exists(sent)).order_by("ends_at", "pk")


def leases_that_ended(*, now: datetime) -> QuerySet[Lease]:
    """Return the ended leases whose requester wanted to know; requires system scope.

    Of an array these are all its leases once the last one has ended, until one of them has the notice.
    """
    sent = LeaseNotice.objects.filter(tenant=OuterRef("tenant"), kind=LeaseNoticeKind.ENDED.value)
    sent_of_array = sent.filter(lease__array=OuterRef("array"))
    others = Lease.objects.filter(array=OuterRef("array"), ended_at=None)
    recent = Lease.objects.filter(ended_at__gt=now - REPORTED_FOR, ended_at__lte=now, notify_on_end=True)
    single = Q(array=None) & Q(~Exists(sent.filter(lease=OuterRef("pk"))))
    of_array = Q(array__isnull=False) & Q(~Exists(others)) & Q(~Exists(sent_of_array))
    return recent.filter(single | of_array).order_by("ended_at", "pk")


def leases_to_extend(*, now: datetime) -> QuerySet[Lease]:
    """Return the leases near their end that are extended automatically; requires system scope."""
    near = Lease.objects.filter(
        state=LeaseState.ACTIVE.value, reclaim_at=None, ends_at__gt=now, ends_at__lte=now + LEAD
    )
    return near.filter(_extension_expected()).order_by("ends_at", "pk")


def _extension_expected() -> Q:
    """Return the condition that an active lease will be extended automatically at its end."""
    refused = LeaseNotice.objects.filter(
        tenant=OuterRef("tenant"),
        lease=OuterRef("pk"),
        kind=LeaseNoticeKind.EXTENSION_REFUSED.value,
        ends_at=OuterRef("ends_at"),
    )
    return Q(extend_by_s__gt=0, extend_limit_s__gte=F("max_duration_s") + MIN_EXTENSION_S) & Q(~Exists(refused))
