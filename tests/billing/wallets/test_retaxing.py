"""Who pays beforehand and owes more tax from now on has it set aside, or is told what is missing."""

from typing import Any
from unittest import mock

import pytest

from billing.models import BillingDetails, Grant, Invoice, Wallet
from billing.services import closing
from billing.services.wallets import money
from tenants.models import Tenant
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import meter
from tests.billing.tax.papers import ATELIER, LUMEN, PERSON, SWISS, taxed, told
from tests.billing.wallets.pockets import available, credit, prepaid, set_terms, taken
from tests.world import Home, Life, alive, offering

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture(autouse=True)
def _rates(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    taxed("DE", 19)
    taxed("FR", 20)


def three_hours(life: Life, kestrel: Home, cents: int) -> None:
    """Let a business of another member state use three hours at a euro each on the last evening of a month."""
    told(kestrel.tenant, ATELIER)
    life.clock.at = life.clock.at.replace(day=30, hour=20, minute=0)
    prepaid(kestrel)
    credit(kestrel, cents)
    lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
    for _ in range(18):
        life.run(HOUR // 6)
        meter(life)
    life.release(lease)
    meter(life)


def said(kestrel: Home) -> str:
    with as_tenant(kestrel.tenant.pk):
        return BillingDetails.objects.get().vat_id


def test_a_vat_number_is_not_taken_away_where_the_wallet_lacks_the_tax(kestrel: Home) -> None:
    with alive() as life:
        three_hours(life, kestrel, 310)
        before = taken(kestrel)
        with pytest.raises(Invalid, match="are not in the wallet") as refused:
            told(kestrel.tenant, PERSON)
        assert refused.value.field == "vat_id"
        assert (said(kestrel), taken(kestrel)) == (ATELIER.vat_id, before)
        life.run(HOUR + 600)
        assert closing.close_due(now=life.now).months == 1
        with as_tenant(kestrel.tenant.pk):
            invoice = Invoice.objects.get()
            assert (invoice.treatment, invoice.tax, invoice.to_pay) == ("reverse_charge", 0, 0)
            assert Grant.objects.count() == 1


def test_with_money_for_it_the_tax_is_set_aside_and_nobody_else_bears_it(kestrel: Home) -> None:
    with alive() as life:
        three_hours(life, kestrel, 400)
        before = taken(kestrel)
        told(kestrel.tenant, PERSON)
        assert taken(kestrel) == -(-before * 120 // 100)
        assert available(kestrel, life.now) == 400 - taken(kestrel)
        life.run(HOUR + 600)
        assert closing.close_due(now=life.now).months == 1
        with as_tenant(kestrel.tenant.pk):
            invoice = Invoice.objects.get()
            assert (invoice.treatment, invoice.to_pay) == ("destination", 0)
            assert invoice.tax * 5 == invoice.total - invoice.tax
            assert Grant.objects.count() == 1  # nothing was ours to pay


def test_who_owes_less_or_the_same_or_pays_by_invoice_is_not_asked(kestrel: Home) -> None:
    with alive() as life:
        three_hours(life, kestrel, 310)
        before = taken(kestrel)
        told(kestrel.tenant, SWISS)  # another reason for none
        assert taken(kestrel) == before
        set_terms(kestrel, payment="invoice", now=life.now)
        told(kestrel.tenant, PERSON)
        assert said(kestrel) == ""


def test_who_waits_for_the_wallet_while_more_tax_comes_to_be_owed_sets_that_aside_as_well(
    kestrel: Home,
) -> None:
    real = money.locked

    def waits(tenant: Tenant) -> Wallet:
        with mock.patch.object(money, "locked", real):
            told(kestrel.tenant, PERSON)
        return real(tenant)

    with alive() as life:
        told(kestrel.tenant, ATELIER)
        prepaid(kestrel)
        credit(kestrel, 400)
        with mock.patch.object(money, "locked", waits):
            life.ask(kestrel, offering(), max_duration_s=HOUR)
        assert taken(kestrel) == 100 + 20 + 2
