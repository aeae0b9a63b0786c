"""Discounts that operators agree on with a tenant: for whole months, from the present one on at the earliest."""

import re
from datetime import datetime

from django.db import transaction

from billing.domain.discounting import month_ahead
from billing.domain.money import Money, fixed_point
from billing.models import Campaign, Discount
from billing.services import drafts, periods
from billing.services.discounts.terms import Terms
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Missing
from tenants.services.walls import as_tenant

MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])", re.ASCII)
LONGEST = 1200  # months


@transaction.atomic
def give(
    tenant: Tenant,
    terms: Terms,
    *,
    first_month: str = "",
    months: int | None = None,
    actor: Actor,
    now: datetime,
    campaign: Campaign | None = None,
) -> Discount:
    """Let a tenant pay less from a month on, the present one where none is named, for so many months or for good.

    Who repeats what was given is told that it is.
    Raises Invalid for a month that is over, for terms that cannot be meant, and for an amount of another currency.
    """
    fields = terms.fields()
    if fields["minor"] is not None and fields["currency"] != tenant.currency:
        raise Invalid(
            "currency",
            f"{tenant.name} is billed in {tenant.currency}.",
            fix=f"Give an amount of {tenant.currency}.",
        )
    if months is not None and not 0 < months <= LONGEST:
        raise Invalid(
            "months",
            f"It lasts one month at least and {LONGEST:,} at most.",
            fix="Give a number of months, or none for without end.",
        )
    with as_tenant(tenant.pk):
        present = periods.current(tenant, now=now).label
        first = _month("first_month", first_month or present)
        if first < present:
            raise Invalid(
                "first_month",
                f"It begins with the present month, {present}, or a later one: earlier ones may have an invoice.",
                fix="What was charged then is given back by a credit note.",
            )
        fields |= {"first_month": first, "last_month": month_ahead(first, months - 1) if months else None}
        if standing := Discount.objects.filter(tenant=tenant, campaign=campaign, **fields).first():
            return standing
        given = Discount.objects.create(
            tenant=tenant, campaign=campaign, given_by=actor.label, given_at=now, **fields
        )
        _record("discount.give", given, actor, now)
        drafts.refresh(tenant, now=now)
    return given


def find(pk: str) -> Discount:
    """Return a discount, or raise Missing. Must run as staff."""
    if found := Discount.objects.filter(pk=pk).select_related("tenant", "campaign").first():
        return found
    raise Missing("There is no such discount.", fix="Look for it in the list of discounts.")


@transaction.atomic
def end(discount: Discount, *, last_month: str = "", actor: Actor, now: datetime) -> Discount:
    """Let a discount end with a month, the present one where none is named; where it ends earlier, nothing changes."""
    with as_tenant(discount.tenant_id):
        tenant = Tenant.objects.get(pk=discount.tenant_id)
        discount = Discount.objects.select_for_update().get(pk=discount.pk)
        present = periods.current(tenant, now=now).label
        last = _month("last_month", last_month or present)
        if last < present:
            raise Invalid(
                "last_month",
                f"It ends with the present month, {present}, or a later one.",
                fix="Choose a later month, or none.",
            )
        if discount.last_month is None or discount.last_month > last:
            discount.last_month = last
            discount.save(update_fields=["last_month"])
            _record("discount.end", discount, actor, now)
            drafts.refresh(tenant, now=now)
    return discount


def _month(field: str, text: str) -> str:
    if not MONTH.fullmatch(text):
        raise Invalid(field, f"{text[:10]!a} is no month.", fix="Type one such as 2026-11, up to 2099-12.")
    return text


def size(of: Discount | Campaign | Terms) -> str:
    """Say how much it takes off: `12.5 %`, `€50.00`."""
    if of.percent_bp is None:
        return str(Money(of.minor or 0, of.currency))
    return f"{fixed_point(of.percent_bp, 2).rstrip('0').rstrip('.')} %"


def _record(what: str, discount: Discount, actor: Actor, now: datetime) -> None:
    audit.record(
        what,
        actor=actor,
        now=now,
        tenant_id=discount.tenant_id,
        subject_id=discount.pk,
        subject_label=f"{discount.name}, {size(discount)}",
        first_month=discount.first_month,
        last_month=discount.last_month,
        **({"campaign": discount.campaign.code} if discount.campaign else {}),
    )
