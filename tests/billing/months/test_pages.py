"""Discounts, codes and minimums on the pages and over the API."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.api.invoices import _rule
from billing.models import Campaign, Discount, Invoice, Minimum
from billing.services import minimums
from billing.services.discounts import campaigns, giving
from billing.services.discounts.campaigns import Round
from billing.services.discounts.terms import Terms
from billing.services.explain import Corrected, explain
from billing.services.exports import sheets
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, ran, sold
from tests.billing.months.terms import NOW, START, closed, drafted, given
from tests.billing.pages import words
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


def put(client: Client, path: str, body: dict[str, Any], status: int = 200) -> Any:
    answer = client.put(f"/api/v1/ops/{path}", body, content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_payer_redeems_a_code_on_the_page_and_reads_what_it_gives(kestrel: Home, payer: Client) -> None:
    campaigns.make(
        "AUTUMN-26", Terms("Autumn", minor=5000, currency="EUR"), Round(months=2), actor=OPERATOR, now=NOW
    )
    assert "0 discounts" in words(payer.get("/invoices/discounts/"))
    assert "Nobody gave out this code" in words(
        payer.post("/invoices/discounts/", {"code": "WINTER-26"}), 409
    )
    done = words(payer.post("/invoices/discounts/", {"code": "autumn-26"}, follow=True))
    assert "Autumn: €50.00 off from this month on." in done
    assert "2026-11 to 2026-12" in done
    assert "You have redeemed" not in done
    again = words(payer.post("/invoices/discounts/", {"code": "autumn-26"}), 409)
    assert "AUTUMN-26 was redeemed on 2026-11-21" in again
    with as_tenant(kestrel.tenant.pk):
        assert Discount.objects.count() == 1


def test_a_viewer_of_money_may_not_redeem(kestrel: Home) -> None:
    client = Client()
    client.force_login(kestrel.member(Role.ADMIN))
    assert "can redeem codes" in words(client.get("/invoices/discounts/"))
    assert client.post("/invoices/discounts/", {"code": "AUTUMN-26"}).status_code == 403


def test_the_same_over_the_api(kestrel: Home) -> None:
    api = Api(kestrel.token(Role.BILLING))
    campaigns.make("AUTUMN-26", Terms("Autumn", percent_bp=1250), Round(), actor=OPERATOR, now=NOW)
    made = api.ask("POST", "/api/v1/discounts", {"code": "AUTUMN-26"})
    assert made.status_code == 201, made.content
    told = made.json()
    assert (told["percent"], told["amount"], told["code"], told["last_month"]) == (
        "12.50",
        None,
        "AUTUMN-26",
        None,
    )
    again = api.ask("POST", "/api/v1/discounts", {"code": "AUTUMN-26"})
    assert (again.status_code, again.json()["code"]) == (409, "coupon-redeemed")
    unknown = api.ask("POST", "/api/v1/discounts", {"code": "NOBODY"})
    assert (unknown.status_code, unknown.json()["code"]) == (409, "coupon-unknown")
    with as_tenant(kestrel.tenant.pk):
        assert AuditEvent.objects.filter(action="discount.give", subject_id=told["id"]).count() == 1
    minimums.agree(kestrel.tenant, minor=100, since=NOW, until=None, actor=OPERATOR, now=NOW)
    (least,) = api.get("/api/v1/minimums").json()["items"]
    assert (least["amount"]["amount"], least["until"]) == ("1.000000", None)


def test_an_invoice_shows_what_was_taken_off_and_added(kestrel: Home, payer: Client) -> None:
    ran(kestrel.project, sold(EURO), START, 10 * HOUR)
    given(kestrel.tenant, percent_bp=1000)
    minimums.agree(kestrel.tenant, minor=50_000, since=NOW, until=None, actor=OPERATOR, now=NOW)
    for invoice in (drafted(kestrel.tenant), closed(kestrel.tenant)):
        path = f"/invoices/{invoice.pk}/"
        told = words(payer.get(path))
        assert "€1.00 less by Partner" in told
        assert "Minimum spend" in told
        drawer = words(payer.get(f"{path}?line=1"))
        assert "− 1.000000 Partner" in drawer
        assert "recomputed, equal" in drawer
        added = words(payer.get(f"{path}?line=2"))
        assert "What the month adds" in added
        assert "recomputed, equal" in added
        assert payer.get(f"{path}?format=csv").status_code == 200
        assert payer.get(f"{path}check/").context["report"].equal
        assert payer.get(f"/invoices/{invoice.pk}/pdf/").status_code == 200
        api = Api(kestrel.token(Role.BILLING))
        lines = api.get(f"/api/v1/invoices/{invoice.pk}/lines").json()["items"]
        assert [(line["kind"], line["offering"] is None) for line in lines] == [
            ("usage", False),
            ("minimum", True),
        ]
        explained = api.get(f"/api/v1/invoices/{invoice.pk}/lines/1/explain").json()
        assert explained["rule"].endswith("= 10.000000 €")
        assert [(each["kind"], each["name"]) for each in explained["month"]] == [("percent", "Partner")]
        least = api.get(f"/api/v1/invoices/{invoice.pk}/lines/2/explain").json()
        assert (least["price"], least["recomputed_equal"]) == (None, True)


def test_operators_add_and_end_everything_on_one_page(kestrel: Home, operator: Client) -> None:
    path, tenant = "/ops/discounts/", kestrel.tenant
    code = {
        "what": "campaign",
        "code": "autumn-26",
        "name": "Autumn",
        "percent": "12.5",
        "months": "3",
        "most": "10",
    }
    assert "AUTUMN-26 can be redeemed: 12.5 % off." in words(operator.post(path, code, follow=True))
    assert "was made before" in words(operator.post(path, code), 409)
    discount = {
        "what": "discount",
        "tenant": tenant.pk,
        "name": "Partner",
        "amount": "20",
        "price_classes": ["spot"],
    }
    assert "pays €20.00 less from 2026-11 on" in words(operator.post(path, discount, follow=True))
    minimum = {"what": "minimum", "tenant": tenant.pk, "amount": "500", "since": "2026-12-01T00:00"}
    assert "pays at least so much" in words(operator.post(path, minimum, follow=True))
    page = words(operator.get(path))
    assert "of 10" in page
    assert "spot" in page
    with as_staff():
        ids = [Campaign.objects.get().pk, Discount.objects.get().pk, Minimum.objects.get().pk]
    for pk in ids[:2]:
        assert "End" in words(operator.get(f"{path}{pk}/end/"))
        assert "ends." in words(operator.post(f"{path}{pk}/end/", follow=True))
    assert "It begins at" in words(operator.post(f"{path}{ids[2]}/end/"), 400)
    with clock.standing_at(NOW.replace(month=12)):
        assert "ends." in words(operator.post(f"{path}{ids[2]}/end/", follow=True))
    assert operator.get(f"{path}xyz/end/").status_code == 404


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"what": "nothing"}, "does not say what to add"),
        ({"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "101"}, "no more than 100 %"),
        ({"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "-1"}, "A percentage is a number"),
        ({"what": "campaign", "code": "AUTUMN-26", "name": "x", "amount": "5"}, "no currency we know"),
        (
            {"what": "campaign", "code": "AUTUMN-26", "name": "x", "amount": "5.555", "currency": "eur"},
            "no amount",
        ),
        (
            {"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "5", "months": "x"},
            "no whole number",
        ),
        (
            {"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "5", "until": "soon"},
            "A moment looks",
        ),
        ({"what": "discount", "tenant": "ten_none", "name": "x", "percent": "5"}, "There is no such tenant"),
    ],
)
def test_what_cannot_be_meant_is_said_on_the_page(operator: Client, typed: dict[str, str], said: str) -> None:
    answer = operator.post("/ops/discounts/", typed)
    assert answer.status_code == 400
    assert said in answer.context["refusal"].detail
    assert not Campaign.objects.exists()


def test_operators_do_the_same_over_the_api(kestrel: Home, operator: Client) -> None:
    made = put(
        operator, "campaigns", {"code": "autumn-26", "name": "Autumn", "amount": "5.00", "currency": "EUR"}
    )
    assert (made["code"], made["amount"]["amount"], made["redeemed"]) == ("AUTUMN-26", "5.000000", 0)
    assert put(operator, f"campaigns/{made['id']}/end", {"at": None})["until"] is not None
    given = put(
        operator, "discounts", {"tenant": kestrel.tenant.pk, "name": "Partner", "percent": "7", "months": 2}
    )
    assert (given["percent"], given["last_month"], given["tenant"]["name"]) == ("7.00", "2026-12", "Kestrel")
    assert put(operator, f"discounts/{given['id']}/end", {"last_month": None})["last_month"] == "2026-11"
    least = put(
        operator, "minimums", {"tenant": kestrel.tenant.pk, "amount": "100", "since": "2026-12-01T00:00:00Z"}
    )
    ended = put(operator, f"minimums/{least['id']}/end", {"at": "2026-12-05T00:00:00Z"})
    assert ended["until"] == "2026-12-05T00:00:00Z"
    for name in ("campaigns", "discounts", "minimums"):
        assert operator.get(f"/api/v1/ops/{name}").json()["total_estimate"] == 1
    assert put(operator, "minimums", {"tenant": kestrel.tenant.pk, "amount": "-1"}, 400)["code"] == "invalid"
    with as_staff():
        assert giving.find(given["id"]).percent_bp == 700


def test_spend_says_what_the_terms_of_the_month_come_to(payer: Client, kestrel: Home) -> None:
    ran(kestrel.project, sold(EURO), START, 10 * HOUR)
    given(kestrel.tenant, percent_bp=1000)
    drafted(kestrel.tenant)
    assert "€1.00 taken off by what was agreed for the month" in words(payer.get("/spend/"))
    minimums.agree(kestrel.tenant, minor=9000, since=NOW, until=None, actor=OPERATOR, now=NOW)
    assert "added by what was agreed for the month" in words(payer.get("/spend/"))


def test_a_line_that_was_corrected_is_not_rounded_by_its_hours(kestrel: Home) -> None:
    ran(kestrel.project, sold(EURO), START, 10 * HOUR)
    draft = drafted(kestrel.tenant)
    with as_tenant(kestrel.tenant.pk):
        told = explain(draft.lines.get())
    assert _rule(told).endswith("→ 10.00 €")
    less = Corrected("cor_x", "corrected", -EURO * HOUR, -HOUR)
    assert _rule(replace(told, corrected=(less,))).endswith("= 10.000000 €")


def test_a_line_of_a_kind_of_a_newer_release_is_shown_and_told(payer: Client, kestrel: Home) -> None:
    ran(kestrel.project, sold(EURO), START, HOUR)
    draft = drafted(kestrel.tenant)
    with as_tenant(kestrel.tenant.pk):
        energy = {"offering_id": "energy", "kind": "energy", "price_version_id": 0, "project_id": ""}
        nums = {"exact_num": 36 * 10**11, "month_num": 36 * 10**11, "minor": 100, "n": 2}
        tenant = {"tenant": kestrel.tenant, "leases": 0, "unit_seconds": 0}
        draft.lines.create(**energy, **nums, **tenant)
        Invoice.objects.filter(pk=draft.pk).update(total=200)
        draft = Invoice.objects.select_related("period", "tenant").get()
        for what in ("charges", "focus"):
            assert "".join(sheets.text(draft, what))
    api = Api(kestrel.token(Role.BILLING))
    for path in (f"invoices/{draft.pk}", f"invoices/{draft.pk}/lines"):
        answer = api.ask("GET", f"/api/v1/{path}")
        assert answer.status_code in (200, 404), answer.content
    assert "energy" in words(payer.get(f"/invoices/{draft.pk}/"))


def test_a_form_that_is_refused_keeps_what_was_typed_and_the_others_stay_empty(
    kestrel: Home, operator: Client
) -> None:
    typed = {"what": "minimum", "tenant": kestrel.tenant.pk, "amount": "1.234", "since": "2026-12-01T00:00"}
    answer = operator.post("/ops/discounts/", typed)
    assert "'1.234' is no amount of EUR" in words(answer, 400)
    page = answer.content.decode()
    assert (page.count('value="1.234"'), page.count('value="2026-12-01T00:00"')) == (1, 1)
    sold(EURO)
    typed = {
        "what": "discount",
        "tenant": kestrel.tenant.pk,
        "name": "x",
        "percent": "101",
        "price_classes": "spot",
    }
    page = operator.post("/ops/discounts/", typed).content.decode()
    assert (page.count('value="101"'), page.count('value="spot" selected')) == (1, 1)


def test_a_minimum_that_ends_later_can_be_ended_sooner_and_one_to_come_not_yet(
    kestrel: Home, operator: Client
) -> None:
    until = NOW + timedelta(days=90)
    made = minimums.agree(kestrel.tenant, minor=100, since=NOW, until=until, actor=OPERATOR, now=NOW)
    assert f"/ops/discounts/{made.pk}/" in operator.get("/ops/discounts/").content.decode()
    later = minimums.agree(kestrel.tenant, minor=100, since=until, until=None, actor=OPERATOR, now=NOW)
    with pytest.raises(Invalid, match="It begins at 2027-02-19 09:00:00 UTC"):
        minimums.end(later, at=NOW, actor=OPERATOR, now=NOW)
