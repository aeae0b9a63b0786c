"""Withdraw a scheduled price before it begins.

The price that it would have replaced stays in force.
"""

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import PriceVersion
from billing.services.periods import billing_periods
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope


class PriceBegun(ProblemError):
    code, status, title = "price-begun", 409, "The price has begun and can no longer be withdrawn"


@transaction.atomic
def withdraw_price(version: PriceVersion, *, actor: Actor, now: datetime) -> None:
    """Remove a price that has not begun. Raises PriceBegun for any other."""
    with tenant_scope(version.tenant_id or ""):
        if version.tenant_id:
            billing_periods.take_tenant_billing_locks([version.tenant_id])
        else:
            billing_periods.take_billing_lock()
        found = (
            PriceVersion.objects.select_for_update(of=("self",))
            .select_related("offering")
            .filter(pk=version.pk)
            .first()
        )
        if found is None:
            return  # somebody else withdrew it
        begins = found.valid.lower
        if begins <= now:
            raise PriceBegun(
                f"The price of {found.offering.label} has been in force since {begins.isoformat()}.",
                fix="Publish the next price, or end a custom price.",
            )
        before = _price_before(found)
        ends = [found.valid.upper]
        if before is not None and before.pk == found.replaced_id:
            ends.append(found.replaced_until)
        until = min((at for at in ends if at), default=None)
        found.delete()
        if before is not None:
            before.valid = DateTimeTZRange(before.valid.lower, until)
            before.save(update_fields=["valid"])
        audit.record(
            "price.withdraw",
            version.offering,
            found.offering.label,
            version.tenant_id or "",
            actor=actor,
            now=now,
            currency=found.currency,
            price=found.nano_per_hour,
            since=begins.isoformat(),
            **({"in_force": before.nano_per_hour} if before else {}),
        )


def _price_before(version: PriceVersion) -> PriceVersion | None:
    """Return the price of the same card that ends where this one begins."""
    rows = PriceVersion.objects.filter(
        rate_card=version.rate_card_id, offering=version.offering_id, currency=version.currency
    )
    return rows.select_for_update(of=("self",)).filter(valid__endswith=version.valid.lower).first()
