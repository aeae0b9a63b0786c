"""Commitments and their usage on pages and API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import BillingPeriod, Commitment
from billing.services.agreements import commitment_coverage, commitments
from broker.models import Offering
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import CLOSES, NOW, START, close_and_get_invoice, create_draft
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    add_running_lease,
    create_priced_offering,
    utc,
)
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.discounts.test_discount_pages import change, create
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db
DAY = 24 * HOUR


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


def agreed(kestrel: TenantContext, offering: Offering, *, units: int = 2, **more: Any) -> Commitment:
    """Create a commitment from 2 November at half the list price."""
    about = {"units": units, "nano_per_hour": EURO // 2, "since": START, "until": None} | more
    return commitments.create_commitment(kestrel.tenant, offering, **about, actor=OPERATOR, now=START)


def test_the_page_shows_used_and_unused_hours_and_the_charge_for_unused_ones(
    kestrel: TenantContext, payer: Client
) -> None:
    assert "No active commitments" in page_words(payer.get("/commitments/"))
    offering = create_priced_offering(EURO)
    agreed(kestrel, offering)
    add_ended_lease(kestrel.project, offering, START, 10 * HOUR, quantity=3)
    add_running_lease(kestrel.project, offering, NOW - timedelta(hours=4))
    page = page_words(payer.get("/commitments/"))
    committed = 2 * (19 * 24 + 9)  # until the 21st at nine
    assert f"{committed}.0 h" in page
    assert "Used 24.0 h 3 % of commitment" in page
    assert "Used beyond commitment 10.0 h" in page
    assert f"Unused, charged €{(committed - 24) / 2:.2f} {committed - 24}.0 h, before VAT" in page


def test_ended_and_scheduled_commitments_have_no_chart(kestrel: TenantContext, payer: Client) -> None:
    over, ahead = create_priced_offering(EURO), create_priced_offering(EURO)
    agreed(kestrel, over, until=START + timedelta(days=1))
    agreed(kestrel, ahead, since=CLOSES)
    page = payer.get("/commitments/")
    assert "No active commitments." in (shown := page_words(page))
    assert page.context["panels"] == []
    assert ("ended" in shown, "scheduled" in shown) == (True, True)


def test_the_api_shows_commitments_with_their_usage_of_the_month(kestrel: TenantContext) -> None:
    api, offering = ApiClient(kestrel.token(Role.BILLING)), create_priced_offering(EURO)
    made = agreed(kestrel, offering)
    add_ended_lease(kestrel.project, offering, START, 10 * HOUR, quantity=3)
    (row,) = api.get("/api/v1/commitments").json()["items"]
    assert (row["units"], row["price_per_hour"], row["until"]) == (
        2,
        {"amount": "0.500000000", "currency": "EUR"},
        None,
    )
    assert row["offering"] == {"id": offering.pk, "label": offering.label}
    so_far = api.get(f"/api/v1/commitments/{made.pk}").json()["this_month"]
    assert (so_far["month"], so_far["covered_seconds"], so_far["beyond_seconds"]) == (
        "2026-11",
        20 * HOUR,
        10 * HOUR,
    )
    assert so_far["owed_unused"] == {"amount": "455.000000", "currency": "EUR"}
    first, *_, last = so_far["days"]
    assert (first["covered_seconds"], first["unused_seconds"]) == (20 * HOUR, 28 * HOUR)
    assert (last["until"], last["unused_seconds"]) == ("2026-11-21T09:00:00Z", 18 * HOUR)


def test_coverage_is_shown_only_for_months_of_the_commitment(kestrel: TenantContext) -> None:
    made = agreed(kestrel, create_priced_offering(EURO), until=START + timedelta(days=1))
    with tenant_scope(kestrel.tenant.pk):
        month = BillingPeriod.objects.get(label="2026-11")
        assert commitment_coverage.coverage_in_month(made, month, until=START) is None
        assert commitment_coverage.current_coverage(made, now=utc("2029-01-01 00:00:00")) is None
        found = commitment_coverage.coverage_in_month(made, month, until=CLOSES)
    assert found is not None
    assert (found.committed, len(found.days)) == (2 * DAY, 1)


def test_operators_create_and_end_a_commitment_on_the_page(kestrel: TenantContext, operator: Client) -> None:
    offering = create_priced_offering(EURO)
    create_priced_offering(EURO, price_class="spot")
    form = {"tenant": kestrel.tenant.pk, "offering": offering.pk, "units": "8", "price": "1.99"}
    assert "No tenant has a commitment." in page_words(operator.get("/ops/commitments/"))
    done = page_words(operator.post("/ops/commitments/", form, follow=True))
    assert f"Kestrel has a commitment of 8 × {offering.label} from 21 Nov 2026 09:00 UTC." in done
    assert "€1.99 /h" in done
    for wrong, says in (
        ({"offering": "off_x"}, "The offering was not found."),
        ({"tenant": "ten_x"}, "The tenant was not found."),
        ({"units": "many"}, "The number of units is not a whole number."),
        ({"price": "dear"}, "The price is not a number"),
        ({"since": "soon"}, "The time is not valid"),
    ):
        refused = operator.post("/ops/commitments/", form | wrong)
        assert refused.status_code in (409, 422, 400)
        assert says in page_words(refused, refused.status_code)
    with staff_scope():
        made = Commitment.objects.get()
    path = f"/ops/commitments/{made.pk}/end/"
    assert "unused units so far are billed" in page_words(operator.get(path))
    with clock.frozen_at(NOW + timedelta(hours=1)):
        assert "ended." in page_words(operator.post(path, {"reason": ""}, follow=True))
    with staff_scope():
        assert Commitment.objects.get().valid.upper == NOW + timedelta(hours=1)
        assert AuditEvent.objects.filter(action="commitment.end", subject_id=made.pk).count() == 1


def test_operators_create_and_end_a_commitment_over_the_api(kestrel: TenantContext, operator: Client) -> None:
    offering = create_priced_offering(EURO)
    wanted = {"tenant": kestrel.tenant.pk, "offering": offering.pk, "units": 2, "price_per_hour": "1.99"}
    made = create(operator, "commitments", wanted)
    assert (made["tenant"]["id"], made["units"], made["price_per_hour"]["amount"]) == (
        kestrel.tenant.pk,
        2,
        "1.990000000",
    )
    second = create(operator, "commitments", wanted | {"since": "2027-01-01T00:00:00Z"})
    assert second["id"] != made["id"]
    assert create(operator, "commitments", wanted | {"offering": "off_x"}, 404)
    listed = operator.get("/api/v1/ops/commitments?sort=-id").json()["items"]
    assert [row["id"] for row in listed] == [second["id"], made["id"]]
    ended = change(operator, f"commitments/{made['id']}", {"until": "2026-12-01T00:00:00Z"})
    assert ended["until"] == "2026-12-01T00:00:00Z"


@pytest.mark.deep
def test_an_invoice_shows_covered_and_unused_commitment(kestrel: TenantContext, payer: Client) -> None:
    offering = create_priced_offering(EURO)
    add_ended_lease(kestrel.project, offering, START, 10 * HOUR)
    agreed(kestrel, offering, units=1, until=START + timedelta(days=1))
    for invoice in (create_draft(kestrel.tenant), close_and_get_invoice(kestrel.tenant)):
        path = f"/invoices/{invoice.pk}/"
        page = page_words(payer.get(path))
        assert "−€5.00: commitment" in page
        assert "Unused commitment" in page
        drawer = page_words(payer.get(f"{path}?line=1"))
        assert "− 5.000000 commitment: 36,000 s at 0.500000000 €/h" in drawer
        assert "recalculated, matches" in drawer
        added = page_words(payer.get(f"{path}?line=2"))
        assert f"{offering.label}, 1 unit 24/7" in added
        assert "86,400 s" in added
        assert "50,400 s at 0.500000000 €/h" in added
        assert "recalculated, matches" in added
        assert payer.get(f"{path}verification/").context["report"].equal
        assert payer.get(f"/invoices/{invoice.pk}/pdf/").status_code == 200
