"""What an invoice says from the moment on at which it is final, however many become final at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from billing.models import BillingPeriod
from billing.services.disputes import window
from billing.services.tax import standings
from ports import payments
from tenants.services.actors import Actor

BILLING = Actor("system", "", "billing")


@dataclass(frozen=True, slots=True)
class Final:
    """What is the same on all invoices that become final in one transaction."""

    at: datetime
    due_at: datetime
    supplier: dict[str, Any] | None
    collected: bool


def final(now: datetime) -> Final:
    by = standings.supplier()
    due_at = now + timedelta(days=settings.PAYMENT_TERM_DAYS)
    return Final(now, due_at, by.as_dict() if by else None, payments.gateway() is not None)


def disputable_until(month: BillingPeriod, now: datetime) -> datetime | None:
    """Return before when lines of its invoice can be disputed; None where nobody may."""
    return window.stated(now, month.time_zone)
