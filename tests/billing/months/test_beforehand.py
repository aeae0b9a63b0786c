"""Who pays beforehand and has a discount: what was used beyond its money is ours as far as its invoice lacks it."""

import pytest
from django.db.models import Sum

from billing.models import Grant, GrantDraw, Invoice
from billing.services import proofs
from billing.services.grants import ending, purse
from billing.services.ledger import books
from tenants.services.walls import as_staff, as_tenant
from tests.billing.budgets.purses import meter
from tests.billing.histories import HOUR
from tests.billing.months.terms import given
from tests.billing.wallets.conftest import kestrel as kestrel
from tests.billing.wallets.pockets import available, closed, credit, prepaid
from tests.world import Home, Life, alive, fresh, offering

pytestmark = pytest.mark.django_db


def overrun(life: Life, owner: Home, *, money: int = 300, **discount: int) -> Invoice:
    """Let a lease run for more than five hours at a euro, unseen, on so much credit; close its month."""
    prepaid(owner)
    credit(owner, money)
    given(owner.tenant, first_month="2026-01", **discount)
    lease = life.lease(owner, offering(), max_duration_s=9 * HOUR)
    life.run(5 * HOUR)
    for _ in range(10):
        life.run(60)
        meter(life)
    assert fresh(lease).end_reason == "unpaid"
    life.clock.at = life.clock.at.replace(month=12, day=1, hour=1)
    meter(life)
    invoice = closed(owner, life)
    assert invoice
    assert invoice.to_pay == 0
    return invoice


def borne(owner: Home) -> tuple[int, int]:
    """Return what we were ready to bear, and what of it was drawn."""
    with as_tenant(owner.tenant.pk):
        ours = Grant.objects.filter(idem__startswith="overrun ").aggregate(all=Sum("minor"))["all"] or 0
        draws = GrantDraw.objects.filter(grant__idem__startswith="overrun ")
        return ours, draws.aggregate(all=Sum("minor"))["all"] or 0


def test_money_that_was_there_pays_what_a_discount_left(kestrel: Home) -> None:
    with alive() as life:
        invoice = overrun(life, kestrel, percent_bp=5000)
        assert 250 <= invoice.total <= 260
        ours, drawn = borne(kestrel)
        assert (ours >= 200, drawn) == (True, 0)
        assert available(kestrel, life.now) == 300 - invoice.total


def test_what_a_smaller_discount_leaves_of_it_is_ours(kestrel: Home) -> None:
    with alive() as life:
        invoice = overrun(life, kestrel, percent_bp=1000)
        assert 450 <= invoice.total <= 460
        assert borne(kestrel)[1] == invoice.total - 300
        assert available(kestrel, life.now) == 0


def test_what_is_not_needed_of_it_ends_with_the_month_and_pays_for_nothing_else(kestrel: Home) -> None:
    with alive() as life:
        overrun(life, kestrel, percent_bp=1000)
        credit(kestrel, 1000, now=life.now)
        ours, drawn = borne(kestrel)
        life.lease(kestrel, offering(), max_duration_s=HOUR)
        for _ in range(70):
            life.run(60)
            meter(life)
        life.clock.at = life.clock.at.replace(year=2027, month=1, day=1, hour=1)
        meter(life)
        december = closed(kestrel, life, "2026-12")
        assert december
        assert december.to_pay == 0
        assert borne(kestrel) == (ours, drawn)
        ending.lapse_due(now=life.now)
        with as_tenant(kestrel.tenant.pk):
            rest = Grant.objects.filter(idem__startswith="overrun ").values_list("pk", flat=True)
            assert purse.left(kestrel.tenant.pk, rest) == {}
        assert available(kestrel, life.now) == 1000 - december.total
        with as_staff():
            assert books.reckoned()[1] == ()
            assert [proof.name for proof in proofs.check(now=life.now) if not proof.holds] == []
