"""What operators agree on with a tenant for a time, commitments and minimums: one at a time, and never edited."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import IntegrityError, transaction

from billing.services import drafts, periods
from billing.services.funds.budgets import alone
from billing.services.prices import whole_second
from billing.services.wallets import money
from tenants.models import Tenant
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_tenant


def span(
    what: str, since: datetime, until: datetime | None, *, now: datetime
) -> tuple[datetime, datetime | None]:
    """Round both up to whole seconds, or raise Invalid: it begins now or later, for what was used had a price."""
    since, until = whole_second(since), whole_second(until) if until else None
    if since < now:
        raise Invalid("since", f"A {what} begins now or later.", fix="Choose a later moment.")
    if until and until <= since:
        raise Invalid("until", "It ends after it begins.", fix="Choose a later end, or none.")
    return since, until


@contextmanager
def agreeing(tenant: Tenant, *, prepaid: Refused, overlaps: Refused, now: datetime) -> Iterator[None]:
    """Write what is agreed on behind the tenant's wall while nobody changes how it pays, and bring its drafts up.

    Raises `prepaid` for who pays beforehand, and `overlaps` where PostgreSQL finds another in that time.
    """
    with as_tenant(tenant.pk):
        alone(tenant.pk)
        if money.is_prepaid(tenant.pk):
            raise prepaid
        periods.ensure(tenant, since=now, until=now)
        try:
            with transaction.atomic():
                yield
        except IntegrityError as taken:
            raise overlaps from taken
        drafts.refresh(tenant, now=now)
