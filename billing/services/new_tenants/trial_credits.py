"""Trial credit of new tenants: a grant, once per person, where the setting offers some."""

from datetime import datetime, timedelta

from django.conf import settings

from billing.domain.money import Money, parse_amount
from billing.models import Grant, TrialCredit
from billing.services.funds.grants.new_grants import GrantTerms, give_grant
from tenants.models import Tenant
from tenants.services.actors import BILLING

REASON = "Trial credit"


def offered_trial_credit(currency: str) -> Money | None:
    """Return the trial credit of new tenants in a currency; None without any."""
    amount = settings.TRIAL_CREDIT.get(currency, "")
    minor = parse_amount(amount, currency) if amount else 0
    return Money(minor, currency) if minor else None


def give_trial_credit(tenant: Tenant, *, mailbox: str, now: datetime) -> Grant | None:
    """Grant a new tenant its trial credit, unless the person had some already."""
    offered = offered_trial_credit(tenant.currency)
    if offered is None or not mailbox:
        return None
    # Of two at once, the second waits here for the first.
    _, is_first = TrialCredit.objects.get_or_create(mailbox=mailbox, defaults={"given_at": now})
    if not is_first:
        return None
    ends = now + timedelta(days=settings.TRIAL_CREDIT_DAYS)
    terms = GrantTerms(minor=offered.minor, reason=REASON, expires_at=ends)
    return give_grant(tenant, terms, idem="trial-credit", actor=BILLING, now=now)
