"""Commitments on the pages and over the API, and how much of them is used while the month goes on."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import BillingPeriod, Commitment
from billing.services import commitments, coverage
from broker.models import Offering
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, at, ran, runs, sold
from tests.billing.months.terms import CLOSES, NOW, START, closed, drafted
from tests.billing.months.test_pages import put
from tests.billing.pages import words
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db
DAY = 24 * HOUR


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


def agreed(kestrel: Home, offering: Offering, *, units: int = 2, **more: Any) -> Commitment:
    """Commit from the second of November on, at half of the list's price."""
    about = {"units": units, "nano_per_hour": EURO // 2, "since": START, "until": None} | more
    return commitments.agree(kestrel.tenant, offering, **about, actor=OPERATOR, now=START)


def test_the_page_tells_what_is_used_so_far_and_what_is_owed_unused(kestrel: Home, payer: Client) -> None:
    assert "0 commitments" in words(payer.get("/invoices/commitments/"))
    offering = sold(EURO)
    agreed(kestrel, offering)
    ran(kestrel.project, offering, START, 10 * HOUR, quantity=3)
    runs(kestrel.project, offering, NOW - timedelta(hours=4))
    told = words(payer.get("/invoices/commitments/"))
    committed = 2 * (19 * 24 + 9)  # until the 21st at nine
    assert f"{committed}.0 h" in told
    assert "Used of it 24.0 h 3 % of it" in told
    assert "Used beyond it 10.0 h" in told
    assert f"Owed unused €{(committed - 24) / 2:.2f} {committed - 24}.0 h, before VAT" in told


def test_one_that_is_over_or_still_to_come_has_no_chart(kestrel: Home, payer: Client) -> None:
    over, ahead = sold(EURO), sold(EURO)
    agreed(kestrel, over, until=START + timedelta(days=1))
    agreed(kestrel, ahead, since=CLOSES)
    page = payer.get("/invoices/commitments/")
    assert "None holds now." in (told := words(page))
    assert page.context["drawn"] == []
    assert ("over" in told, "later" in told) == (True, True)


def test_the_same_over_the_api(kestrel: Home) -> None:
    api, offering = Api(kestrel.token(Role.BILLING)), sold(EURO)
    made = agreed(kestrel, offering)
    ran(kestrel.project, offering, START, 10 * HOUR, quantity=3)
    (row,) = api.get("/api/v1/commitments").json()["items"]
    assert (row["units"], row["price"], row["until"]) == (
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


def test_it_says_nothing_of_months_it_does_not_hold_in(kestrel: Home) -> None:
    made = agreed(kestrel, sold(EURO), until=START + timedelta(days=1))
    with as_tenant(kestrel.tenant.pk):
        month = BillingPeriod.objects.get(label="2026-11")
        assert coverage.within(made, month, until=START) is None
        assert coverage.of(made, now=at("2029-01-01 00:00:00")) is None
        found = coverage.within(made, month, until=CLOSES)
    assert found is not None
    assert (found.committed, len(found.days)) == (2 * DAY, 1)


def test_operators_agree_on_one_and_end_it(kestrel: Home, operator: Client) -> None:
    offering = sold(EURO)
    sold(EURO, price_class="spot")
    form = {"tenant": kestrel.tenant.pk, "offering": offering.pk, "units": "8", "price": "1.99"}
    assert "0 tenants pay" in words(operator.get("/ops/commitments/"))
    done = words(operator.post("/ops/commitments/", form, follow=True))
    assert f"Kestrel pays for 8 × {offering.label} from 21 Nov 2026 09:00 UTC on." in done
    assert "€1.99 /h" in done
    for wrong, says in (
        ({}, "One commitment to"),
        ({"offering": "off_x"}, "There is no such offering."),
        ({"tenant": "ten_x"}, "There is no such tenant."),
        ({"units": "many"}, "That is no whole number of units."),
        ({"price": "dear"}, "A price is a number"),
        ({"since": "soon"}, "A moment looks like"),
    ):
        refused = operator.post("/ops/commitments/", form | wrong)
        assert refused.status_code in (409, 422, 400)
        assert says in words(refused, refused.status_code)
    with as_staff():
        made = Commitment.objects.get()
    path = f"/ops/commitments/{made.pk}/end/"
    assert "what was not used until now is owed" in words(operator.get(path))
    with clock.standing_at(NOW + timedelta(hours=1)):
        assert "ends." in words(operator.post(path, {"reason": ""}, follow=True))
    with as_staff():
        assert Commitment.objects.get().valid.upper == NOW + timedelta(hours=1)
        assert AuditEvent.objects.filter(action="commitment.end", subject_id=made.pk).count() == 1


def test_operators_do_the_same_over_the_api(kestrel: Home, operator: Client) -> None:
    offering = sold(EURO)
    wanted = {"tenant": kestrel.tenant.pk, "offering": offering.pk, "units": 2, "price": "1.99"}
    made = put(operator, "commitments", wanted)
    assert (made["tenant"]["id"], made["units"], made["price"]["amount"]) == (
        kestrel.tenant.pk,
        2,
        "1.990000000",
    )
    assert put(operator, "commitments", wanted, 409)["code"] == "commitment-overlaps"
    assert put(operator, "commitments", wanted | {"offering": "off_x"}, 404)
    (row,) = operator.get("/api/v1/ops/commitments?sort=-id").json()["items"]
    assert row["id"] == made["id"]
    ended = put(operator, f"commitments/{made['id']}/end", {"at": "2026-12-01T00:00:00Z"})
    assert ended["until"] == "2026-12-01T00:00:00Z"


def test_an_invoice_shows_what_was_covered_and_what_nobody_used(kestrel: Home, payer: Client) -> None:
    offering = sold(EURO)
    ran(kestrel.project, offering, START, 10 * HOUR)
    agreed(kestrel, offering, units=1, until=START + timedelta(days=1))
    for invoice in (drafted(kestrel.tenant), closed(kestrel.tenant)):
        path = f"/invoices/{invoice.pk}/"
        told = words(payer.get(path))
        assert "€5.00 less by commitment" in told
        assert "Committed and not used" in told
        drawer = words(payer.get(f"{path}?line=1"))
        assert "− 5.000000 commitment: 36,000 s at 0.500000000 €/h" in drawer
        assert "recomputed, equal" in drawer
        added = words(payer.get(f"{path}?line=2"))
        assert f"{offering.label}, 1 in every second" in added
        assert "86,400 s" in added
        assert "50,400 s at 0.500000000 €/h" in added
        assert "recomputed, equal" in added
        assert payer.get(f"{path}check/").context["report"].equal
        assert payer.get(f"/invoices/{invoice.pk}/pdf/").status_code == 200
