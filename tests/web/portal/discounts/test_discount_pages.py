"""Discounts, codes and minimums on the pages and over the API."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import Campaign, Discount, Invoice, Minimum
from billing.services.agreements import minimums
from billing.services.agreements.discounts import campaigns, tenant_discounts
from billing.services.agreements.discounts.campaigns import RedemptionLimits
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from billing.services.documents import csv_exports
from billing.services.reports.line_explanations import CorrectionEffect, explain_invoice_line
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import NOW, START, close_and_get_invoice, create_discount, create_draft
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_priced_offering
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.keyed_requests import patch_json, post_keyed
from tests.web.portal.page_text import page_words
from web.api.invoices import _rule_text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


def create(client: Client, path: str, body: dict[str, Any], status: int = 201) -> Any:
    answer = post_keyed(client, f"/api/v1/ops/{path}", body)
    assert answer.status_code == status, answer.content
    return answer.json()


def change(client: Client, path: str, body: dict[str, Any]) -> Any:
    answer = patch_json(client, f"/api/v1/ops/{path}", body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_payer_redeems_a_code_on_the_page_and_sees_the_discount(kestrel: TenantContext, payer: Client) -> None:
    campaigns.create_campaign(
        "AUTUMN-26",
        DiscountTerms("Autumn", minor=5000, currency="EUR"),
        RedemptionLimits(months=2),
        actor=OPERATOR,
        now=NOW,
    )
    assert "No discounts" in page_words(payer.get("/discounts/"))
    assert "The code does not exist or is not valid yet" in page_words(
        payer.post("/discounts/", {"code": "WINTER-26"}), 409
    )
    done = page_words(payer.post("/discounts/", {"code": "autumn-26"}, follow=True))
    assert "Autumn: €50.00 off, starting this month." in done
    assert "2026-11 to 2026-12" in done
    assert "already redeemed" not in done
    again = page_words(payer.post("/discounts/", {"code": "autumn-26"}), 409)
    assert "AUTUMN-26 was redeemed on 2026-11-21" in again
    with tenant_scope(kestrel.tenant.pk):
        assert Discount.objects.count() == 1


def test_an_admin_cannot_redeem_codes(kestrel: TenantContext) -> None:
    client = Client()
    client.force_login(kestrel.create_member(Role.ADMIN))
    assert "can redeem codes" in page_words(client.get("/discounts/"))
    assert client.post("/discounts/", {"code": "AUTUMN-26"}).status_code == 403


def test_a_code_is_redeemed_over_the_api_once_and_audited(kestrel: TenantContext) -> None:
    api = ApiClient(kestrel.token(Role.BILLING))
    campaigns.create_campaign(
        "AUTUMN-26", DiscountTerms("Autumn", percent_bp=1250), RedemptionLimits(), actor=OPERATOR, now=NOW
    )
    made = api.send("POST", "/api/v1/discounts", {"code": "AUTUMN-26"})
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["percent"], body["amount"], body["code"], body["last_month"]) == (
        "12.50",
        None,
        "AUTUMN-26",
        None,
    )
    again = api.send("POST", "/api/v1/discounts", {"code": "AUTUMN-26"})
    assert (again.status_code, again.json()["code"]) == (409, "coupon-redeemed")
    unknown = api.send("POST", "/api/v1/discounts", {"code": "NOBODY"})
    assert (unknown.status_code, unknown.json()["code"]) == (409, "coupon-unknown")
    with tenant_scope(kestrel.tenant.pk):
        assert AuditEvent.objects.filter(action="discount.assign", subject_id=body["id"]).count() == 1
    minimums.create_minimum(kestrel.tenant, minor=100, since=NOW, until=None, actor=OPERATOR, now=NOW)
    (least,) = api.get("/api/v1/minimum-spends").json()["items"]
    assert (least["amount"]["amount"], least["until"]) == ("1.000000", None)


@pytest.mark.deep
def test_an_invoice_shows_its_discount_and_minimum_spend(kestrel: TenantContext, payer: Client) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(kestrel.tenant, percent_bp=1000)
    minimums.create_minimum(kestrel.tenant, minor=50_000, since=NOW, until=None, actor=OPERATOR, now=NOW)
    for invoice in (create_draft(kestrel.tenant), close_and_get_invoice(kestrel.tenant)):
        path = f"/invoices/{invoice.pk}/"
        page = page_words(payer.get(path))
        assert "−€1.00: Partner" in page
        assert "Minimum spend" in page
        drawer = page_words(payer.get(f"{path}?line=1"))
        assert "− 1.000000 Partner" in drawer
        assert "recalculated, matches" in drawer
        added = page_words(payer.get(f"{path}?line=2"))
        assert "Adjustments of the month" in added
        assert "recalculated, matches" in added
        assert payer.get(f"{path}?format=csv").status_code == 200
        assert payer.get(f"{path}verification/").context["report"].equal
        assert payer.get(f"/invoices/{invoice.pk}/pdf/").status_code == 200
        api = ApiClient(kestrel.token(Role.BILLING))
        lines = api.get(f"/api/v1/invoices/{invoice.pk}/lines").json()["items"]
        assert [(line["kind"], line["offering"] is None) for line in lines] == [
            ("usage", False),
            ("minimum", True),
        ]
        explained = api.get(f"/api/v1/invoices/{invoice.pk}/lines/1/explain").json()
        assert explained["rule"].endswith("= 10.000000 €")
        assert [(each["kind"], each["name"]) for each in explained["adjustments"]] == [("percent", "Partner")]
        least = api.get(f"/api/v1/invoices/{invoice.pk}/lines/2/explain").json()
        assert (least["price"], least["recomputed_equal"]) == (None, True)


def test_operators_create_and_end_campaigns_discounts_and_minimums_on_the_page(
    kestrel: TenantContext, operator: Client
) -> None:
    path, tenant = "/ops/discounts/", kestrel.tenant
    code = {
        "what": "campaign",
        "code": "autumn-26",
        "name": "Autumn",
        "percent": "12.5",
        "months": "3",
        "most": "10",
    }
    assert "AUTUMN-26 created: 12.5 % off." in page_words(operator.post(path, code, follow=True))
    assert "already exists" in page_words(operator.post(path, code), 409)
    discount = {
        "what": "discount",
        "tenant": tenant.pk,
        "name": "Partner",
        "amount": "20",
        "price_classes": ["spot"],
    }
    assert "gets €20.00 off from 2026-11" in page_words(operator.post(path, discount, follow=True))
    minimum = {"what": "minimum", "tenant": tenant.pk, "amount": "500", "since": "2026-12-01T00:00"}
    assert "Minimum spend of" in page_words(operator.post(path, minimum, follow=True))
    page = page_words(operator.get(path))
    assert "of 10" in page
    assert "spot" in page
    with staff_scope():
        ids = [Campaign.objects.get().pk, Discount.objects.get().pk, Minimum.objects.get().pk]
    for pk in ids[:2]:
        assert "End" in page_words(operator.get(f"{path}{pk}/end/"))
        assert "ended." in page_words(operator.post(f"{path}{pk}/end/", follow=True))
    assert "The minimum starts at" in page_words(operator.post(f"{path}{ids[2]}/end/"), 400)
    with clock.frozen_at(NOW.replace(month=12)):
        assert "ended." in page_words(operator.post(f"{path}{ids[2]}/end/", follow=True))
    assert operator.get(f"{path}xyz/end/").status_code == 404


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"what": "nothing"}, "form is incomplete"),
        ({"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "101"}, "at most 100"),
        ({"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "-1"}, "The percentage is not a number"),
        ({"what": "campaign", "code": "AUTUMN-26", "name": "x", "amount": "5"}, "is not a supported currency"),
        (
            {"what": "campaign", "code": "AUTUMN-26", "name": "x", "amount": "5.555", "currency": "eur"},
            "not an amount",
        ),
        (
            {"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "5", "months": "x"},
            "not a whole number",
        ),
        (
            {"what": "campaign", "code": "AUTUMN-26", "name": "x", "percent": "5", "until": "soon"},
            "The time is not valid",
        ),
        ({"what": "discount", "tenant": "ten_none", "name": "x", "percent": "5"}, "The tenant was not found"),
    ],
)
def test_invalid_discount_terms_show_an_error_on_the_page(operator: Client, typed: dict[str, str], said: str) -> None:
    answer = operator.post("/ops/discounts/", typed)
    assert answer.status_code == 400
    assert said in answer.context["refusal"].detail
    assert not Campaign.objects.exists()


def test_operators_create_and_end_campaigns_discounts_and_minimums_over_the_api(
    kestrel: TenantContext, operator: Client
) -> None:
    made = create(operator, "campaigns", {"code": "autumn-26", "name": "Autumn", "amount": "5.00", "currency": "EUR"})
    assert (made["code"], made["amount"]["amount"], made["redemption_count"]) == ("AUTUMN-26", "5.000000", 0)
    assert change(operator, f"campaigns/{made['id']}", {"until": None})["until"] is not None
    given = create(operator, "discounts", {"tenant": kestrel.tenant.pk, "name": "Partner", "percent": "7", "months": 2})
    assert (given["percent"], given["last_month"], given["tenant"]["name"]) == ("7.00", "2026-12", "Kestrel")
    assert change(operator, f"discounts/{given['id']}", {"last_month": None})["last_month"] == "2026-11"
    least = create(
        operator, "minimum-spends", {"tenant": kestrel.tenant.pk, "amount": "100", "since": "2026-12-01T00:00:00Z"}
    )
    ended = change(operator, f"minimum-spends/{least['id']}", {"until": "2026-12-05T00:00:00Z"})
    assert ended["until"] == "2026-12-05T00:00:00Z"
    for name in ("campaigns", "discounts", "minimum-spends"):
        assert operator.get(f"/api/v1/ops/{name}").json()["total_estimate"] == 1
    assert create(operator, "minimum-spends", {"tenant": kestrel.tenant.pk, "amount": "-1"}, 400)["code"] == "invalid"
    with staff_scope():
        assert tenant_discounts.get_discount(given["id"]).percent_bp == 700


def test_the_spend_page_shows_the_adjustments_of_the_month(payer: Client, kestrel: TenantContext) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(kestrel.tenant, percent_bp=1000)
    create_draft(kestrel.tenant)
    assert "€1.00 deducted by adjustments for the month" in page_words(payer.get("/spend/"))
    minimums.create_minimum(kestrel.tenant, minor=9000, since=NOW, until=None, actor=OPERATOR, now=NOW)
    assert "added by adjustments for the month" in page_words(payer.get("/spend/"))


def test_the_rule_text_of_a_corrected_line_has_no_rounding_step(kestrel: TenantContext) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(EURO), START, 10 * HOUR)
    draft = create_draft(kestrel.tenant)
    with tenant_scope(kestrel.tenant.pk):
        explained = explain_invoice_line(draft.lines.get())
    assert _rule_text(explained).endswith("→ 10.00 €")
    less = CorrectionEffect("cor_x", "corrected", -EURO * HOUR, -HOUR)
    assert _rule_text(replace(explained, corrected=(less,))).endswith("= 10.000000 €")


def test_an_invoice_line_of_an_unknown_kind_breaks_no_page_api_or_export(payer: Client, kestrel: TenantContext) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(EURO), START, HOUR)
    draft = create_draft(kestrel.tenant)
    with tenant_scope(kestrel.tenant.pk):
        energy = {"offering_id": "energy", "kind": "energy", "price_version_id": 0, "project_id": ""}
        nums = {"exact_num": 36 * 10**11, "month_num": 36 * 10**11, "minor": 100, "n": 2}
        tenant = {"tenant": kestrel.tenant, "leases": 0, "unit_seconds": 0}
        draft.lines.create(**energy, **nums, **tenant)
        Invoice.objects.filter(pk=draft.pk).update(total=200)
        draft = Invoice.objects.select_related("period", "tenant").get()
        for what in ("charges", "focus"):
            assert "".join(csv_exports.csv_text(draft, what))
    api = ApiClient(kestrel.token(Role.BILLING))
    for path in (f"invoices/{draft.pk}", f"invoices/{draft.pk}/lines"):
        answer = api.send("GET", f"/api/v1/{path}")
        assert answer.status_code in (200, 404), answer.content
    assert "energy" in page_words(payer.get(f"/invoices/{draft.pk}/"))


def test_a_refused_form_keeps_its_input_and_the_other_forms_stay_empty(
    kestrel: TenantContext, operator: Client
) -> None:
    typed = {"what": "minimum", "tenant": kestrel.tenant.pk, "amount": "1.234", "since": "2026-12-01T00:00"}
    answer = operator.post("/ops/discounts/", typed)
    assert "'1.234' is not an amount in EUR" in page_words(answer, 400)
    page = answer.content.decode()
    assert (page.count('value="1.234"'), page.count('value="2026-12-01T00:00"')) == (1, 1)
    create_priced_offering(EURO)
    typed = {
        "what": "discount",
        "tenant": kestrel.tenant.pk,
        "name": "x",
        "percent": "101",
        "price_classes": "spot",
    }
    page = operator.post("/ops/discounts/", typed).content.decode()
    assert (page.count('value="101"'), page.count('value="spot" selected')) == (1, 1)


def test_a_running_minimum_can_be_ended_early_but_a_scheduled_one_cannot(
    kestrel: TenantContext, operator: Client
) -> None:
    until = NOW + timedelta(days=90)
    made = minimums.create_minimum(kestrel.tenant, minor=100, since=NOW, until=until, actor=OPERATOR, now=NOW)
    assert f"/ops/discounts/{made.pk}/" in operator.get("/ops/discounts/").content.decode()
    later = minimums.create_minimum(kestrel.tenant, minor=100, since=until, until=None, actor=OPERATOR, now=NOW)
    with pytest.raises(InvalidValue, match="The minimum starts at 2027-02-19 09:00:00 UTC"):
        minimums.end_minimum(later, at=NOW, actor=OPERATOR, now=NOW)
