"""Proposals of corrections: computed and shown, but not booked before others approve."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.conf import settings
from django.db import transaction

from billing.domain.corrections import fingerprint_changes
from billing.domain.money import exponent_of
from billing.models import Correction, PriceVersion, RatedCharge, TenantCorrection
from billing.models.corrections import CorrectionKind, CorrectionStatus
from billing.services.catalogue import price_list
from billing.services.invoicing import drafts
from billing.services.invoicing.corrections.correction_plans import CorrectionPlan, plan_correction
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from billing.services.rating.lease_rating import PriceGap
from broker.models import Lease
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import staff_scope, tenant_scope

MAX_SPAN_DAYS = 400  # days


class NotCorrectable(ProblemError):
    code, status, title = "not-correctable", 409, "The correction is not possible now"


@transaction.atomic
def propose_lease_correction(
    lease: Lease, *, charge: bool, since: datetime, until: datetime, why: str, actor: Actor, now: datetime
) -> Correction:
    """Propose to charge or credit seconds of a lease; raise InvalidValue if nothing changes.

    A running lease is charged up to the end of these seconds first.
    """
    _check_span(since, until, now)
    with tenant_scope(lease.tenant_id):
        tenant = Tenant.objects.get(pk=lease.tenant_id)
        _charge_until(lease.pk, tenant, until, now)
    wanted = Correction(kind=CorrectionKind.LEASE, lease_id=lease.pk, charge=charge, currency=tenant.currency)
    return _propose(wanted, [lease.tenant_id], since, until, why, actor, now)


def _charge_until(lease_id: str, tenant: Tenant, until: datetime, now: datetime) -> None:
    """Split the open interval of a lease, and charge what has ended."""
    lease = Lease.objects.select_related("offering").get(pk=lease_id)
    if not lease.add_metering_tick(at=until):
        return  # it does not run, or nobody has observed it since
    try:
        lease_rating.rate_tenant_leases(tenant, now=now)
    except PriceGap as gap:
        raise InvalidValue("until", str(gap), fix="Publish the missing price first.") from gap
    drafts.refresh_drafts(tenant, now=now)


def propose_price_correction(
    version: PriceVersion,
    *,
    nano_per_hour: int,
    since: datetime,
    until: datetime,
    why: str,
    actor: Actor,
    now: datetime,
) -> Correction:
    """Propose another price for a price version in a window, for every charged tenant."""
    price_list.check_price(version.currency, nano_per_hour)
    wanted = Correction(
        kind=CorrectionKind.PRICE, price_version=version, nano_per_hour=nano_per_hour, currency=version.currency
    )
    _check_span(since, until, now)
    with staff_scope():
        used = RatedCharge.objects.filter(price_version_id=version.pk, e__gt=since, s__lt=until)
        tenants = sorted(set(used.values_list("tenant_id", flat=True)))
    return _propose(wanted, tenants, since, until, why, actor, now)


@transaction.atomic
def _propose(
    wanted: Correction, tenants: list[str], since: datetime, until: datetime, why: str, actor: Actor, now: datetime
) -> Correction:
    wanted.since, wanted.until = _check_span(since, until, now)
    wanted.reason = eviction.clean_reason(why)
    billing_periods.take_tenant_billing_locks(tenants)
    found = list(_plans(wanted, tenants, now))
    if not found:
        unchanged = "All of this period is already charged" if wanted.charge else "Nothing in this period is charged"
        raise InvalidValue("since", f"{unchanged}, so nothing would change.", fix="Check the charges of the lease.")
    wanted.minor = sum(abs(change.minor) for _, each in found for change in each.changes)
    wanted.limit_minor = settings.CORRECTION_APPROVAL_THRESHOLD * 10 ** exponent_of(wanted.currency)
    wanted.seal = fingerprint_changes(change for _, each in found for change in each.changes)
    wanted.author_id, wanted.author, wanted.proposed_at = actor.id, actor.label or actor.kind, now
    wanted.save(force_insert=True)
    for tenant, each in found:
        with tenant_scope(tenant.pk):
            TenantCorrection.objects.create(
                tenant=tenant,
                correction=wanted,
                diff=[change.as_json() for change in each.changes],
                seal=fingerprint_changes(each.changes),
                minor=each.minor,
            )
    record_decision("correction.propose", wanted, actor=actor, now=now)
    return wanted


def _plans(wanted: Correction, tenants: list[str], now: datetime) -> Iterator[tuple[Tenant, CorrectionPlan]]:
    for tenant_id in tenants:
        with tenant_scope(tenant_id):
            tenant = Tenant.objects.get(pk=tenant_id)
            found = plan_correction(wanted, tenant, now=now)
        if found.parts:
            yield tenant, found


@transaction.atomic
def withdraw_correction(correction: Correction, *, actor: Actor, now: datetime) -> Correction:
    """Withdraw or reject a proposal; raise NotCorrectable if it is approved or closed."""
    held = lock_proposal(correction)
    held.status, held.closed_at = CorrectionStatus.WITHDRAWN, now
    held.save(update_fields=["status", "closed_at"])
    record_decision("correction.withdraw", held, actor=actor, now=now)
    return held


def lock_proposal(correction: Correction) -> Correction:
    """Lock and return a proposal, or raise NotCorrectable."""
    held = Correction.objects.select_for_update(of=("self",)).select_related("price_version").get(pk=correction.pk)
    if held.status != CorrectionStatus.PROPOSED:
        raise NotCorrectable(f"The correction is {held.status}.", fix="Reload the page.")
    return held


def record_decision(action: str, correction: Correction, *, actor: Actor, now: datetime) -> None:
    """Write a decision about a correction to the audit log."""
    audit.record(
        action,
        correction,
        correction.lease_id or f"price version {correction.price_version_id}",
        actor=actor,
        now=now,
        amount=correction.minor,
        currency=correction.currency,
        reason=correction.reason,
    )


def _check_span(since: datetime, until: datetime, now: datetime) -> tuple[datetime, datetime]:
    """Return the window in UTC; raise InvalidValue if empty, too long or not over."""
    if since.microsecond or until.microsecond:
        raise InvalidValue("since", "Usage is charged in whole seconds.", fix="Remove the fractions of a second.")
    if since >= until:
        raise InvalidValue("until", "The end is before the start.", fix="Choose a later end.")
    if (until - since).days > MAX_SPAN_DAYS:
        raise InvalidValue(
            "until", f"A correction can cover at most {MAX_SPAN_DAYS} days.", fix="Split the correction."
        )
    if until > now:
        raise InvalidValue("until", "Future usage cannot be corrected.", fix="Choose a time in the past.")
    return since.astimezone(UTC), until.astimezone(UTC)
