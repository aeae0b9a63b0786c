"""Rules shared by commitments and minimums, which are never edited."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet

from billing.models import Commitment, Minimum
from billing.services.catalogue.price_list import whole_second
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.funds.wallets import wallet_balances
from billing.services.invoicing import drafts
from billing.services.periods import billing_periods
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope

Agreement = TypeVar("Agreement", Commitment, Minimum)


def round_up_span(
    what: str, since: datetime, until: datetime | None, *, now: datetime
) -> tuple[datetime, datetime | None]:
    """Round both moments up to whole seconds, or raise InvalidValue.

    An agreement begins now or later: earlier usage already had a price.
    """
    since, until = whole_second(since), whole_second(until) if until else None
    if since < now:
        raise InvalidValue("since", f"A {what} must start now or later.", fix="Choose a later time.")
    if until and until <= since:
        raise InvalidValue("until", "The end must be after the start.", fix="Choose a later end, or none.")
    return since, until


@contextmanager
def agreement_transaction(
    tenant: Tenant, *, prepaid: ProblemError, overlaps: ProblemError | None = None, now: datetime
) -> Iterator[None]:
    """Write an agreement in the tenant's RLS scope, then refresh its drafts.

    The tenant's payment terms cannot change meanwhile. Raises `prepaid` if the tenant pays in advance,
    and `overlaps` if PostgreSQL refuses another agreement in that time.
    """
    with tenant_scope(tenant.pk):
        lock_tenant_funds(tenant.pk)
        if wallet_balances.is_prepaid(tenant.pk):
            raise prepaid
        billing_periods.ensure_periods(tenant, since=now, until=now)
        try:
            with transaction.atomic():
                yield
        except IntegrityError as taken:
            if overlaps is None:
                raise
            raise overlaps from taken
        drafts.refresh_drafts(tenant, now=now)


def end_agreement(
    rows: QuerySet[Agreement],
    agreed: Agreement,
    *,
    at: datetime,
    refusal: str,
    record: Callable[[Agreement], None],
    now: datetime,
) -> Agreement:
    """End an agreement at a future moment within its period, or raise InvalidValue with `refusal`."""
    with tenant_scope(agreed.tenant_id):
        agreed = rows.select_for_update(of=("self",)).get(pk=agreed.pk)
        since, until = agreed.valid.lower, agreed.valid.upper
        if at < now or at <= since or (until and at > until):
            raise InvalidValue("at", refusal, fix="Choose a time in this range.")
        agreed.valid = DateTimeTZRange(since, at)
        agreed.save(update_fields=["valid"])
        record(agreed)
        drafts.refresh_drafts(agreed.tenant, now=now)
    return agreed


def record_agreement(
    what: str, agreed: Commitment | Minimum, label: str, *, actor: Actor, now: datetime, **detail: str
) -> None:
    """Write an agreement and its period into the tenant's audit log."""
    since, until = agreed.valid.lower.isoformat(), agreed.valid.upper
    audit.record(
        what, agreed, label, actor=actor, now=now, **detail, since=since, until=until.isoformat() if until else None
    )
