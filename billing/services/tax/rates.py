"""What countries take: a rate is added, and closed where the next begins; until a final invoice was taxed by it, it can
be corrected, and never after.
"""

from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateRange

from billing.domain.countries import NAMES
from billing.domain.tax import TAXED, WHOLE
from billing.models import Invoice, InvoiceTax, TaxCategory, TaxedAs, TaxRate
from billing.services import turns
from broker.models import Offering
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_sweep

YEARS = range(2000, 2100)


class TaxFixed(Refused):
    code, status, title = "tax-fixed", 409, "This rate of tax can no longer be changed"


class TaxGap(Exception):
    """Tax is owed and nobody has said how much: the invoice stays a draft until somebody does."""


@transaction.atomic
def publish(
    *, jurisdiction: str, category: str, rate_bp: int, since: date, actor: Actor, now: datetime
) -> TaxRate:
    """Let a country's rate hold from the beginning of a day on, until the next one that is known already.

    The same day once more corrects a rate that no final invoice was taxed by yet; drafts follow when they are looked at
    next. An invoice is taxed by the last day of its month. A day is refused once a final invoice was taxed by what held
    then.
    """
    _check(jurisdiction, category, rate_bp, since)
    turns.take()  # no month is closed meanwhile
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
        actor=actor,
        now=now,
        subject_id=rate.pk,
        subject_label=f"{category} rate of {NAMES[jurisdiction]}",
        before=before,
        after=rate_bp,
        since=since.isoformat(),
    )
    return rate


def _close(running: TaxRate, since: date) -> None:
    """Let a rate end where the next begins, or raise TaxFixed."""
    if running.valid.lower == since or _used(running, since):
        raise TaxFixed(
            f"{NAMES[running.jurisdiction]} has a {running.category} rate on {since.isoformat()} already, and final"
            " invoices say so.",
            fix="Choose a later day; what was taxed wrongly is given back by credit notes.",
        )
    running.valid = DateRange(running.valid.lower, since)
    running.save(update_fields=["valid"])


def standing(*, jurisdiction: str, category: str, rate_bp: int, since: date) -> TaxRate | None:
    """Return the rate that says just this, or None: who repeats what was done is told that it is."""
    return TaxRate.objects.filter(
        jurisdiction=jurisdiction, category=category, rate_bp=rate_bp, valid__startswith=since
    ).first()


@transaction.atomic
def categorize(offering: Offering, category: str, *, actor: Actor, now: datetime) -> None:
    """Say of which category an offering is; drafts follow with what is charged next, final invoices never."""
    if category not in TaxCategory.values:
        raise Invalid("tax_category", "There is no such category.", fix=f"Send one of {_listed()}.")
    before = category_of(offering)
    if before == category:
        return
    if category == TaxCategory.STANDARD:
        TaxedAs.objects.filter(offering=offering).delete()
    else:
        TaxedAs.objects.update_or_create(offering=offering, defaults={"category": category})
    audit.record(
        "tax.categorize",
        actor=actor,
        now=now,
        subject_id=offering.pk,
        subject_label=offering.label,
        before=before,
        after=category,
    )


def category_of(offering: Offering) -> str:
    told = TaxedAs.objects.filter(offering=offering).values_list("category", flat=True).first()
    return told or TaxCategory.STANDARD


def check_known(invoice: Invoice) -> None:
    """Raise TaxGap where tax is owed on an invoice and its country's rate is not known. Runs behind its wall."""
    if invoice.treatment not in TAXED:
        return
    gaps = InvoiceTax.objects.filter(invoice=invoice, rate_bp=None).exclude(net=0)
    if missing := sorted(gaps.values_list("category", flat=True)):
        raise TaxGap(
            f"No {' and no '.join(missing)} rate of tax is known for the last day of {invoice.period.label} where"
            f" invoice {invoice.pk} is taxed; publish it, and the next run makes the invoice final."
        )


def _used(rate: TaxRate, since: date) -> bool:
    """Tell whether a final invoice was taxed by it for a month that ends on that day or later."""
    first = (since - timedelta(days=since.day - 1)).isoformat()[:7]
    with as_sweep():
        return InvoiceTax.objects.filter(
            rate=rate, invoice__number__isnull=False, invoice__period__label__gte=first
        ).exists()


def _check(jurisdiction: str, category: str, rate_bp: int, since: date) -> None:
    if jurisdiction not in NAMES:
        raise Invalid("jurisdiction", "There is no such country.", fix="Send two letters such as DE.")
    if category not in TaxCategory.values:
        raise Invalid("category", "There is no such category.", fix=f"Send one of {_listed()}.")
    if not 0 <= rate_bp <= WHOLE:
        raise Invalid("rate", "A rate is from 0 to 100 per cent.", fix="Send 19 for 19 %.")
    if since.year not in YEARS:
        raise Invalid("since", f"A rate begins from {YEARS.start} to {YEARS.stop - 1}.", fix="Choose a day.")


def _listed() -> str:
    return ", ".join(TaxCategory.values)
