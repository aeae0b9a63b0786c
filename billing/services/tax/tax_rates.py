"""Tax rates: published with a start day, correctable until a final invoice uses them.

A rate ends where the next one begins.
"""

from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.tax import FULL_BP, TAXED_TREATMENTS
from billing.models import Invoice, InvoiceTax, OfferingTaxCategory, TaxCategory, TaxRate
from billing.services.periods import billing_periods
from broker.models import Offering
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import system_scope

YEARS = range(2000, 2100)


class TaxRateInUse(ProblemError):
    code, status, title = "tax-fixed", 409, "The tax rate can no longer be changed"


class MissingTaxRate(Exception):
    """Tax is owed but no rate is known, so the invoice stays a draft."""


@transaction.atomic
def publish_tax_rate(
    *, jurisdiction: str, category: str, rate_bp: int, since: date, actor: Actor, now: datetime
) -> TaxRate:
    """Publish a country's rate from a day on, until the next known one.

    Publishing the same day again corrects a rate that no final invoice uses; drafts follow at their next
    refresh. An invoice is taxed by the rate on the last day of its month. A day is refused once a final
    invoice was taxed by the rate of that day.
    """
    _check(jurisdiction, category, rate_bp, since)
    billing_periods.take_billing_lock()  # no month closes meanwhile
    rates = TaxRate.objects.filter(jurisdiction=jurisdiction, category=category)
    running = rates.select_for_update().filter(valid__contains=since).first()
    following = rates.filter(valid__startswith__gt=since).order_by("valid").first()
    before = running.rate_bp if running else None
    if running and running.valid.lower == since and not running.used:
        running.rate_bp, running.created_by, running.created_at = rate_bp, actor.label, now
        running.save(update_fields=["rate_bp", "created_by", "created_at"])
        rate = running
    else:
        if running:
            _close(running, since)
        rate = TaxRate.objects.create(
            jurisdiction=jurisdiction,
            category=category,
            rate_bp=rate_bp,
            valid=DateRange(since, following.valid.lower if following else None),
            created_by=actor.label,
            created_at=now,
        )
    audit.record(
        "tax.publish",
        rate,
        f"{category} rate of {COUNTRY_NAMES[jurisdiction]}",
        actor=actor,
        now=now,
        before=before,
        after=rate_bp,
        since=since.isoformat(),
    )
    return rate


def _close(running: TaxRate, since: date) -> None:
    """End a rate where the next begins, or raise TaxRateInUse."""
    if running.valid.lower == since or _is_used(running, since):
        raise TaxRateInUse(
            f"{COUNTRY_NAMES[running.jurisdiction]} has a {running.category} rate on {since.isoformat()}, which"
            " final invoices use.",
            fix="Choose a later day. Use credit notes for wrong tax.",
        )
    running.valid = DateRange(running.valid.lower, since)
    running.save(update_fields=["valid"])


def find_tax_rate(*, jurisdiction: str, category: str, rate_bp: int, since: date) -> TaxRate | None:
    """Return an identical existing rate, or None; makes repeated requests idempotent."""
    return TaxRate.objects.filter(
        jurisdiction=jurisdiction, category=category, rate_bp=rate_bp, valid__startswith=since
    ).first()


@transaction.atomic
def set_tax_category(offering: Offering, category: str, *, actor: Actor, now: datetime) -> None:
    """Set the tax category of an offering; drafts follow, final invoices never change."""
    if category not in TaxCategory.values:
        raise InvalidValue("tax_category", "The category was not found.", fix=f"Send one of {_listed()}.")
    before = get_tax_category(offering)
    if before == category:
        return
    if category == TaxCategory.STANDARD:
        OfferingTaxCategory.objects.filter(offering=offering).delete()
    else:
        OfferingTaxCategory.objects.update_or_create(offering=offering, defaults={"category": category})
    audit.record("tax.categorize", offering, actor=actor, now=now, before=before, after=category)


def get_tax_category(offering: Offering) -> str:
    category = OfferingTaxCategory.objects.filter(offering=offering).values_list("category", flat=True).first()
    return category or TaxCategory.STANDARD


def check_tax_known(invoice: Invoice) -> None:
    """Raise MissingTaxRate if tax is owed on an invoice and the rate is unknown.

    Runs in the tenant's row-level security scope.
    """
    if invoice.treatment not in TAXED_TREATMENTS:
        return
    gaps = InvoiceTax.objects.filter(invoice=invoice, rate_bp=None).exclude(net=0)
    if missing := sorted(gaps.values_list("category", flat=True)):
        raise MissingTaxRate(
            f"There is no {' and no '.join(missing)} tax rate on the last day of {invoice.period.label} for"
            f" invoice {invoice.pk}. Publish it; the next run finalizes the invoice."
        )


def _is_used(rate: TaxRate, since: date) -> bool:
    """Return whether a final invoice uses the rate.

    Only invoices of months that end on the given day or later count.
    """
    first = (since - timedelta(days=since.day - 1)).isoformat()[:7]
    with system_scope():
        return InvoiceTax.objects.filter(
            rate=rate, invoice__number__isnull=False, invoice__period__label__gte=first
        ).exists()


def _check(jurisdiction: str, category: str, rate_bp: int, since: date) -> None:
    if jurisdiction not in COUNTRY_NAMES:
        raise InvalidValue("jurisdiction", "The country was not found.", fix="Send two letters such as DE.")
    if category not in TaxCategory.values:
        raise InvalidValue("category", "The category was not found.", fix=f"Send one of {_listed()}.")
    if not 0 <= rate_bp <= FULL_BP:
        raise InvalidValue("rate", "The rate must be 0 to 100 percent.", fix="Send 19 for 19 %.")
    if since.year not in YEARS:
        raise InvalidValue(
            "since", f"The first day must be from {YEARS.start} to {YEARS.stop - 1}.", fix="Choose another day."
        )


def _listed() -> str:
    return ", ".join(TaxCategory.values)
