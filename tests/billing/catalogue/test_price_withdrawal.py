"""Scheduled prices withdrawn before they begin."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, transaction

from billing.models import PriceVersion
from billing.services.catalogue import price_list, price_withdrawal, tenant_prices
from billing.services.catalogue.price_withdrawal import PriceBegun
from broker.models import Offering
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, OPERATOR, create_customer, create_priced_offering

pytestmark = pytest.mark.django_db
NOW, SOON, LATER = (datetime(year, 6, 1, tzinfo=UTC) for year in (2090, 2091, 2092))


def spans(offering: Offering) -> list[tuple[int, datetime | None]]:
    rows = PriceVersion.objects.filter(offering=offering).order_by("valid")
    return [(row.nano_per_hour // EURO, row.valid.upper) for row in rows]


def publish(offering: Offering, euros: int, since: datetime) -> PriceVersion:
    return price_list.publish_price(
        offering=offering, currency="EUR", nano_per_hour=euros * EURO, since=since, actor=OPERATOR, now=NOW
    )


def withdraw(version: PriceVersion, *, now: datetime = NOW) -> None:
    price_withdrawal.withdraw_price(version, actor=OPERATOR, now=now)


def test_withdrawn_list_price_leaves_the_current_one_in_force() -> None:
    offering = create_priced_offering(EURO)
    scheduled = publish(offering, 2, SOON)
    assert spans(offering) == [(1, SOON), (2, None)]
    withdraw(scheduled)
    withdraw(scheduled)  # somebody else was faster
    assert spans(offering) == [(1, None)]


def test_withdrawal_in_a_chain_keeps_the_next_price() -> None:
    offering = create_priced_offering(EURO)
    middle, _ = publish(offering, 2, SOON), publish(offering, 3, LATER)
    withdraw(PriceVersion.objects.get(pk=middle.pk))
    found = spans(offering)
    assert found[-1] == (3, None)
    assert found[0] == (1, LATER)


def test_withdrawn_custom_price_restores_the_one_it_replaced() -> None:
    tenant, _ = create_customer()
    offering = create_priced_offering(EURO)
    terms = {"tenant": tenant, "offering": offering, "actor": OPERATOR, "now": NOW}
    tenant_prices.set_tenant_price(nano_per_hour=5 * EURO, since=NOW, until=LATER, **terms)
    second = tenant_prices.set_tenant_price(nano_per_hour=4 * EURO, since=SOON, **terms)
    withdraw(second)
    with tenant_scope(tenant.pk):
        own = PriceVersion.objects.filter(tenant_id=tenant.pk)
        assert [(row.nano_per_hour // EURO, row.valid.upper) for row in own] == [(5, LATER)]


def test_price_in_force_is_not_withdrawn() -> None:
    version = PriceVersion.objects.get(offering=create_priced_offering(EURO))
    with pytest.raises(PriceBegun):
        withdraw(version)
    with pytest.raises(DatabaseError, match="only closed"), transaction.atomic():
        version.delete()
    PriceVersion.objects.filter(pk=version.pk).update(valid=(version.valid.lower, datetime.now(UTC) - timedelta(1)))
    with pytest.raises(DatabaseError, match="only closed"), transaction.atomic():
        PriceVersion.objects.filter(pk=version.pk).update(valid=(version.valid.lower, None))
