"""Lease e-mails to the requester: before an end, after it, and about automatic extension."""

from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q

from billing.domain.money import Money
from billing.models import QueuedEmail
from billing.services.funds.costs import lease_maximums
from billing.services.notifications import email_queue
from billing.services.notifications.email_message import OutgoingEmail, format_local_time, portal_link
from billing.services.rating import spend
from broker.domain.lifecycle.lease_notice_kinds import LeaseNoticeKind
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseArray, LeaseNotice, Transition
from broker.services.leases.end_notices.extension_links import LINK_HOURS, sign_extension
from broker.services.leases.lease_recipients import find_recipients
from tenants.services.rls import system_scope, tenant_scope

LEASE_NOTICE = "lease-notice"
QUEUED_FOR = timedelta(days=1)  # an older notice is old news
BATCH, MAX_REASONS = 1000, 20
ENDS_SOON = """{name} ({slice}) stops at {end}. {stays}

{links}
See the lease:
{link}
"""
REFUSED = """{name} ({slice}) stops at {end} and was not extended automatically:
{why}

{stays}

{links}
See the lease:
{link}
"""
EXTENDED = """{name} ({slice}) was extended automatically and now stops at {end}.
{rest}

Change or turn off automatic extension, or release the lease:
{link}
"""
ENDED = """{name} ({slice}) ended at {end}: {reason}.
{charged}

See its history:
{link}
"""
ARRAY_ENDED = """All {size} leases of {name} ({slice}) have ended. They cost {cost}.

{reasons}

See them:
{link}
"""
LINKS = "Extend it. Each link opens a page that shows the cost and asks before it extends the lease:\n"


def queue_lease_emails(*, now: datetime) -> None:
    """Queue an e-mail for every recent notice that has none.

    Of an array only its end is e-mailed: its leases would fill a mailbox.
    """
    queued = QueuedEmail.objects.filter(kind=LEASE_NOTICE, subject_id=OuterRef("pk"), tenant=OuterRef("tenant"))
    emailed = Q(lease__array=None) | Q(kind=LeaseNoticeKind.ENDED.value)
    with system_scope():
        fresh = LeaseNotice.objects.filter(emailed, made_at__gt=now - QUEUED_FOR).exclude(Exists(queued))
        fresh = fresh.order_by("made_at")
        found = list(fresh.values_list("tenant_id", "pk")[:BATCH])
    for tenant_id, notice_id in found:
        with tenant_scope(tenant_id):
            email_queue.enqueue_email(LEASE_NOTICE, notice_id, tenant_id=tenant_id, now=now)


def write_lease_notice(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail of a notice; None if the end has moved since."""
    rows = LeaseNotice.objects.select_related(
        "lease__offering", "lease__project__tenant", "lease__volume", "lease__array"
    )
    notice = rows.get(pk=email.subject_id)
    kind = LeaseNoticeKind(notice.kind)
    if kind is LeaseNoticeKind.ENDED:
        return _write_array_ended(notice.lease, notice.lease.array) if notice.lease.array else _write_ended(notice)
    if notice.lease.state != LeaseState.ACTIVE or notice.lease.ends_at != notice.ends_at or notice.ends_at <= now:
        return None
    if kind is LeaseNoticeKind.EXTENDED:
        return _write_extended(notice)
    return _write_end(notice, now, refused=kind is LeaseNoticeKind.EXTENSION_REFUSED)


def _write_end(notice: LeaseNotice, now: datetime, *, refused: bool) -> OutgoingEmail:
    lease, values = notice.lease, _values(notice)
    subject = f"{lease.name} stops at {values['end']}"
    return OutgoingEmail(
        find_recipients(lease),
        f"{subject}: not extended automatically" if refused else subject,
        (REFUSED if refused else ENDS_SOON).format(
            why=notice.text, stays=_describe_data(lease), links=_extension_links(notice, now), **values
        ),
    )


def _write_extended(notice: LeaseNotice) -> OutgoingEmail:
    lease, values = notice.lease, _values(notice)
    step_s = lease.automatic_extension.next_step_s(lease.max_duration_s)
    rest = (
        f"Before then it is extended again by {_format_duration(step_s)}, up to"
        f" {_format_duration(lease.extend_limit_s)} in total."
        if step_s
        else f"It has reached its limit of {_format_duration(lease.extend_limit_s)} and is not extended again."
    )
    subject = f"{lease.name} was extended until {values['end']}"
    return OutgoingEmail(find_recipients(lease), subject, EXTENDED.format(rest=rest, **values))


def _write_ended(notice: LeaseNotice) -> OutgoingEmail:
    lease = notice.lease
    ending = Transition.objects.filter(lease_id=lease.pk, after=LeaseState.RELEASING.value).order_by("-seq")
    reason = ending.values_list("cause", flat=True).first() or lease.end_reason
    cost = spend.costs_of([lease.pk], now=notice.ends_at).get(lease.pk)
    charged = "Nothing was charged."
    if cost:
        total = Money(cost.minor, cost.currency)
        charged = f"It was active for {_format_duration(cost.seconds)} and cost {total}."
    return OutgoingEmail(
        find_recipients(lease),
        f"{lease.name} ended: {reason}",
        ENDED.format(reason=reason, charged=charged, **_values(notice)),
    )


def _write_array_ended(lease: Lease, array: LeaseArray) -> OutgoingEmail:
    leases = Lease.objects.filter(array=array)
    reasons = Transition.objects.filter(lease_id__in=leases.values("pk"), after=LeaseState.RELEASING.value)
    counted = reasons.values("cause").annotate(leases=Count("pk")).order_by("-leases", "cause")[:MAX_REASONS]
    costs = spend.costs_of(list(leases.values_list("pk", flat=True)), now=lease.ended_at or lease.state_since)
    currency = lease.project.tenant.currency
    return OutgoingEmail(
        find_recipients(lease),
        f"{array.name} ended: {array.size} leases",
        ARRAY_ENDED.format(
            name=array.name,
            size=array.size,
            slice=lease.offering.label,
            reasons="\n".join(f"{each['leases']} × {each['cause']}" for each in counted),
            cost=Money(sum(each.minor for each in costs.values()), currency),
            link=portal_link(f"lease-arrays/{array.pk}/"),
        ),
    )


def _values(notice: LeaseNotice) -> dict[str, str]:
    lease = notice.lease
    return {
        "name": lease.name,
        "slice": lease.offering.label,
        "end": format_local_time(notice.ends_at, lease.project.tenant.time_zone),
        "link": portal_link(f"leases/{lease.pk}/"),
    }


def _describe_data(lease: Lease) -> str:
    if lease.volume:
        return f"Volume {lease.volume.name} is kept; data outside the home directory is lost."
    return "All data on the lease is lost then."


def _extension_links(notice: LeaseNotice, now: datetime) -> str:
    lines = [LINKS]
    for hours in LINK_HOURS:
        signed = sign_extension(notice.lease_id, hours=hours, ends_at=notice.ends_at)
        currency = notice.lease.project.tenant.currency
        cost = lease_maximums.more_maximum(notice.lease, hours * 3600, currency=currency, now=now)
        lines.append(f"{hours} h{f', {cost} at most' if cost else ''}:")
        lines.append(f"{portal_link(f'leases/{notice.lease_id}/extend/')}?offer={signed}\n")
    return "\n".join(lines)


def _format_duration(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    if not hours and not minutes:
        return f"{seconds} s"
    return f"{hours} h {minutes} min" if hours and minutes else f"{hours} h" if hours else f"{minutes} min"
