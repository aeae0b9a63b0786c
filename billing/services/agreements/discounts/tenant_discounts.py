"""Discounts agreed with a tenant, for whole months, from the current one at the earliest."""

import re
from datetime import datetime

from django.db import transaction

from billing.domain.discounts import add_months
from billing.domain.money import Money, format_fixed_point
from billing.models import Campaign, Discount
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from billing.services.invoicing import drafts
from billing.services.periods import billing_periods
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import tenant_scope

MONTH_FORMAT = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])", re.ASCII)
MAX_MONTHS = 1200  # months


@transaction.atomic
def give_discount(
    tenant: Tenant,
    terms: DiscountTerms,
    *,
    first_month: str = "",
    months: int | None = None,
    actor: Actor,
    now: datetime,
    campaign: Campaign | None = None,
) -> Discount:
    """Give a tenant a discount from a month on, by default the current one.

    It lasts `months` months, or without limit. Repeating an identical request returns the existing
    discount.

    Raises InvalidValue for a past month, for impossible terms, and for an amount in another currency.
    """
    fields = terms.fields()
    if fields["minor"] is not None and fields["currency"] != tenant.currency:
        raise InvalidValue(
            "currency", f"{tenant.name} is billed in {tenant.currency}.", fix=f"Enter an amount in {tenant.currency}."
        )
    if months is not None and not 0 < months <= MAX_MONTHS:
        raise InvalidValue(
            "months",
            f"The duration must be 1 to {MAX_MONTHS:,} months.",
            fix="Enter a number of months, or leave it empty for no end date.",
        )
    with tenant_scope(tenant.pk):
        present = billing_periods.current_period(tenant, now=now).label
        first = _month("first_month", first_month or present)
        if first < present:
            raise InvalidValue(
                "first_month",
                f"The first month must be {present} or later. Earlier months may have an invoice.",
                fix="Use a credit note for earlier charges.",
            )
        fields |= {"first_month": first, "last_month": add_months(first, months - 1) if months else None}
        if existing := Discount.objects.filter(tenant=tenant, campaign=campaign, **fields).first():
            return existing
        given = Discount.objects.create(tenant=tenant, campaign=campaign, given_by=actor.label, given_at=now, **fields)
        _record("discount.assign", given, actor, now)
        drafts.refresh_drafts(tenant, now=now)
    return given


def get_discount(pk: str) -> Discount:
    """Return a discount, or raise ObjectNotFound. Must run as staff."""
    if found := Discount.objects.filter(pk=pk).select_related("tenant", "campaign").first():
        return found
    raise ObjectNotFound("The discount was not found.", fix="Select it from the list of discounts.")


@transaction.atomic
def end_discount(discount: Discount, *, last_month: str = "", actor: Actor, now: datetime) -> Discount:
    """End a discount with a month, by default the current one; an earlier end stays."""
    with tenant_scope(discount.tenant_id):
        tenant = Tenant.objects.get(pk=discount.tenant_id)
        discount = Discount.objects.select_for_update().get(pk=discount.pk)
        present = billing_periods.current_period(tenant, now=now).label
        last = _month("last_month", last_month or present)
        if last < present:
            raise InvalidValue(
                "last_month",
                f"The last month must be {present} or later.",
                fix="Choose a later month, or none.",
            )
        if discount.last_month is None or discount.last_month > last:
            discount.last_month = last
            discount.save(update_fields=["last_month"])
            _record("discount.end", discount, actor, now)
            drafts.refresh_drafts(tenant, now=now)
    return discount


def _month(field: str, text: str) -> str:
    if not MONTH_FORMAT.fullmatch(text):
        raise InvalidValue(field, f"{text[:10]!a} is not a month.", fix="Enter a month such as 2026-11, up to 2099-12.")
    return text


def format_discount(of: Discount | Campaign | DiscountTerms) -> str:
    """Write the size of a discount: `12.5 %`, `€50.00`."""
    if of.percent_bp is None:
        return str(Money(of.minor or 0, of.currency))
    return f"{format_fixed_point(of.percent_bp, 2).rstrip('0').rstrip('.')} %"


def _record(what: str, discount: Discount, actor: Actor, now: datetime) -> None:
    audit.record(
        what,
        discount,
        f"{discount.name}, {format_discount(discount)}",
        actor=actor,
        now=now,
        first_month=discount.first_month,
        last_month=discount.last_month,
        **({"campaign": discount.campaign.code} if discount.campaign else {}),
    )
