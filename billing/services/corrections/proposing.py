"""An operator proposes a correction: it is worked out and shown, and nothing is booked before others approve it."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.conf import settings
from django.db import transaction

from billing.domain.correcting import seal
from billing.domain.money import exponent_of
from billing.models import Correction, CorrectionShare, PriceVersion, RatedCharge
from billing.models.corrections import CorrectionKind, CorrectionStatus
from billing.services import prices, turns
from billing.services.corrections.planning import Plan, plan
from broker.models import Lease
from broker.services.leases import evicting
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_staff, as_tenant

LONGEST_MONTHS = 400  # days


class NotCorrectable(Refused):
    code, status, title = "not-correctable", 409, "This correction cannot be made now"


def of_lease(
    lease: Lease, *, charge: bool, since: datetime, until: datetime, why: str, actor: Actor, now: datetime
) -> Correction:
    """Propose that seconds of a lease should, or should not, have been charged; Invalid where nothing would change."""
    with as_tenant(lease.tenant_id):
        currency = Tenant.objects.get(pk=lease.tenant_id).currency
    wanted = Correction(kind=CorrectionKind.LEASE, lease_id=lease.pk, charge=charge, currency=currency)
    return _propose(wanted, [lease.tenant_id], since, until, why, actor, now)


def of_price(
    version: PriceVersion,
    *,
    nano_per_hour: int,
    since: datetime,
    until: datetime,
    why: str,
    actor: Actor,
    now: datetime,
) -> Correction:
    """Propose what a price version should have cost in a stretch of time, for everybody who was charged at it."""
    prices.check(version.currency, nano_per_hour)
    wanted = Correction(
        kind=CorrectionKind.PRICE,
        price_version=version,
        nano_per_hour=nano_per_hour,
        currency=version.currency,
    )
    _check_span(since, until, now)
    with as_staff():
        used = RatedCharge.objects.filter(price_version_id=version.pk, e__gt=since, s__lt=until)
        tenants = sorted(set(used.values_list("tenant_id", flat=True)))
    return _propose(wanted, tenants, since, until, why, actor, now)


@transaction.atomic
def _propose(
    wanted: Correction,
    tenants: list[str],
    since: datetime,
    until: datetime,
    why: str,
    actor: Actor,
    now: datetime,
) -> Correction:
    wanted.since, wanted.until = _check_span(since, until, now)
    wanted.reason = evicting.reason(why)
    turns.take()
    found = list(_plans(wanted, tenants, now))
    if not found:
        told = "All of it is charged already" if wanted.charge else "Nothing of it is charged"
        raise Invalid("since", f"{told}, so nothing would change.", fix="Look at what was charged when.")
    wanted.minor = sum(abs(change.minor) for _, each in found for change in each.changes)
    wanted.limit_minor = settings.CORRECTION_LIMIT * 10 ** exponent_of(wanted.currency)
    wanted.seal = seal(change for _, each in found for change in each.changes)
    wanted.author_id, wanted.author, wanted.proposed_at = actor.id, actor.label or actor.kind, now
    wanted.save(force_insert=True)
    for tenant, each in found:
        with as_tenant(tenant.pk):
            CorrectionShare.objects.create(
                tenant=tenant,
                correction=wanted,
                diff=[change.told() for change in each.changes],
                seal=seal(each.changes),
                minor=each.minor,
            )
    record("correction.propose", wanted, actor=actor, now=now)
    return wanted


def _plans(wanted: Correction, tenants: list[str], now: datetime) -> Iterator[tuple[Tenant, Plan]]:
    for tenant_id in tenants:
        with as_tenant(tenant_id):
            tenant = Tenant.objects.get(pk=tenant_id)
            found = plan(wanted, tenant, now=now)
        if found.parts:
            yield tenant, found


@transaction.atomic
def withdraw(correction: Correction, *, actor: Actor, now: datetime) -> Correction:
    """Take a proposal back, or say no to it; raise NotCorrectable for one that is approved or over."""
    held = claim(correction)
    held.status, held.closed_at = CorrectionStatus.WITHDRAWN, now
    held.save(update_fields=["status", "closed_at"])
    record("correction.withdraw", held, actor=actor, now=now)
    return held


def claim(correction: Correction) -> Correction:
    """Return a proposal behind its lock, or raise NotCorrectable."""
    held = (
        Correction.objects.select_for_update(of=("self",))
        .select_related("price_version")
        .get(pk=correction.pk)
    )
    if held.status != CorrectionStatus.PROPOSED:
        raise NotCorrectable(f"It is {held.status}.", fix="Look at it once more.")
    return held


def record(action: str, correction: Correction, *, actor: Actor, now: datetime) -> None:
    """Write in the operators' trail what was decided about a correction."""
    audit.record(
        action,
        actor=actor,
        now=now,
        subject_id=correction.pk,
        subject_label=correction.lease_id or f"price version {correction.price_version_id}",
        amount=correction.minor,
        currency=correction.currency,
        reason=correction.reason,
    )


def _check_span(since: datetime, until: datetime, now: datetime) -> tuple[datetime, datetime]:
    """Return the stretch in UTC, or raise Invalid for one that is none, is too long or not over."""
    if since.microsecond or until.microsecond:
        raise Invalid("since", "Seconds are charged whole.", fix="Leave the fractions out.")
    if since >= until:
        raise Invalid("until", "It ends before it begins.", fix="Choose a later end.")
    if (until - since).days > LONGEST_MONTHS:
        raise Invalid("until", f"At most {LONGEST_MONTHS} days at once.", fix="Correct it in parts.")
    if until > now:
        raise Invalid(
            "until", "What is still to come cannot be corrected.", fix="Choose a moment that is over."
        )
    return since.astimezone(UTC), until.astimezone(UTC)
