"""Corrections: proposal, approval and exports on operators' pages."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing import tasks
from billing.models import Correction, Invoice
from billing.services.invoicing.corrections import correction_proposals
from billing.services.invoicing.disputes import dispute_requests
from billing.services.invoicing.month_close import close_checklist
from broker.models import Offering
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, User
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.corrections.correction_setup import (
    ANNA,
    BEGUN,
    NOW,
    WHY,
    approve_correction,
    close_period,
    create_ten_hour_lease,
    propose_correction,
    propose_price,
)
from tests.billing.histories import EURO, add_running_lease, create_customer, create_priced_offering
from tests.web.keyed_requests import patch_json, post_keyed
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


def staff(settings: Any, name: str) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user(f"{name}@example.org", is_staff=True))
    return client


@pytest.fixture
def author(settings: Any) -> Client:
    return staff(settings, "author")


@pytest.fixture
def other(settings: Any) -> Client:
    return staff(settings, "other")


def correction_form(of: str, **more: str) -> dict[str, str]:
    return {"what": "back", "lease": of, "since": "2026-10-05 02:00:00", "until": "2026-10-05 05:00:00",
            "reason": WHY} | more  # fmt: skip


def seal(page: Any) -> str:
    return str(page.content.decode().split('name="seal" value="')[1].split('"')[0])


def test_a_correction_is_approved_by_another_operator_than_its_author(author: Client, other: Client) -> None:
    tenant, _, lease = create_ten_hour_lease()
    assert "No corrections Nothing is booked before it is approved." in page_words(author.get("/ops/corrections/"))
    answer = author.post("/ops/corrections/", correction_form(lease.pk))
    page = answer["Location"]
    assert answer.status_code == 302
    mine = author.get(page)
    assert "€20.00 €14.00" in page_words(mine)
    assert "Another operator has to approve this correction." in page_words(mine)
    typed = {"verb": "approve", "seal": seal(mine)}
    assert "You have proposed this correction yourself." in page_words(author.post(page, typed), 409)
    assert "The preview has changed" in page_words(other.post(page, typed | {"seal": "x"}), 409)
    assert other.post(page, typed).status_code == 302
    shown = page_words(other.get(page))
    assert "Approved and booked." in shown
    assert lease.pk in page_words(author.get("/ops/corrections/"))
    client = Client()
    with tenant_scope(tenant.pk):
        user = User.objects.create_user("payer@example.org")
        Member.objects.create(tenant=tenant, user=user, role=Role.OWNER, created_at=NOW)
        invoice = Invoice.objects.get(tenant=tenant)
    client.force_login(user)
    drawer = page_words(client.get(f"/invoices/{invoice.pk}/?line=1"))
    assert f"corrected, 05 Oct 02:00:00 to 05 Oct 05:00:00 UTC: {WHY}" in drawer
    assert "recalculated, matches" in drawer


def test_a_running_lease_is_corrected_on_the_page(author: Client, other: Client) -> None:
    _, project = create_customer()
    lease = add_running_lease(project, create_priced_offering(2 * EURO), BEGUN)
    with clock.frozen_at(BEGUN + timedelta(hours=10)):
        page = author.post("/ops/corrections/", correction_form(lease.pk))["Location"]
        mine = author.get(page)
        assert "€10.00 €4.00" in page_words(mine)
        assert other.post(page, {"verb": "approve", "seal": seal(mine)}).status_code == 302
        assert "Approved and booked." in page_words(other.get(page))


def test_a_price_correction_above_the_threshold_needs_two_approvals(
    author: Client, other: Client, settings: Any
) -> None:
    settings.CORRECTION_APPROVAL_THRESHOLD = 1
    third = staff(settings, "third")
    _, _, lease = create_ten_hour_lease()
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    typed = correction_form("", what="price", version=str(version.pk), price="1.50")
    page = author.post("/ops/corrections/", typed)["Location"]
    approve = {"verb": "approve", "seal": seal(author.get(page))}
    assert "A second approval is required." in page_words(other.post(page, approve, follow=True))
    assert "booked tenant by tenant" in page_words(third.post(page, approve, follow=True))
    tasks.book_corrections(page.split("/")[3], "")
    assert "Booked" in page_words(third.get(page))
    assert Correction.objects.get().status == "booked"
    tasks.post_and_seal_ledger()


def test_a_correction_is_withdrawn_and_nothing_is_booked(author: Client) -> None:
    _, _, lease = create_ten_hour_lease()
    page = author.post("/ops/corrections/", correction_form(lease.pk))["Location"]
    assert "Correction withdrawn. Nothing was booked." in page_words(
        author.post(page, {"verb": "withdraw"}, follow=True)
    )
    assert author.get("/ops/corrections/cor_none/").status_code == 404


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"lease": "lse_none"}, "Lease 'lse_none' was not found."),
        ({"since": "yesterday"}, '"From" is not a valid time.'),
        ({"what": "price", "version": "x"}, "Price version 'x' was not found."),
        ({"until": "2026-10-05T01:00:00+00:00"}, "The end is before the start."),
        ({"what": "charge"}, "All of this period is already charged"),
        ({"since": "2026-10-06", "until": "2026-10-07"}, "Nothing in this period is charged"),
    ],
)
def test_an_invalid_correction_shows_its_error(author: Client, typed: dict[str, str], said: str) -> None:
    _, _, lease = create_ten_hour_lease()
    assert said in page_words(author.post("/ops/corrections/", correction_form(lease.pk, **typed)), 400)
    assert not Correction.objects.exists()


def send(client: Client, path: str, body: dict[str, Any], status: int = 200) -> Any:
    act = patch_json if path.startswith("corrections/") else post_keyed
    answer = act(client, f"/api/v1/ops/{path}", body)
    assert answer.status_code == status, answer.content
    return answer.json()


def test_the_api_proposes_approves_and_withdraws_corrections(author: Client, other: Client) -> None:
    _, _, lease = create_ten_hour_lease()
    span = {"since": "2026-10-05T02:00:00Z", "until": "2026-10-05T05:00:00Z", "reason": WHY}
    made = send(author, f"leases/{lease.pk}/correction", span, 201)
    (share,) = made["shares"]
    (change,) = share["changes"]
    assert (change["amount_before"]["amount"], change["amount_after"]["amount"]) == ("20.000000", "14.000000")
    where = f"corrections/{made['id']}"
    send(author, where, {"status": "approved", "seal": made["seal"]}, 409)
    assert send(other, where, {"status": "approved", "seal": made["seal"]})["status"] == "booked"
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    price = send(
        author,
        f"price-versions/{version.pk}/correction",
        span | {"price_per_hour": "1.50", "since": "2026-10-05T00:00:00Z"},
        201,
    )
    assert (price["kind"], price["price_per_hour"]["amount"]) == ("price", "1.500000000")
    assert send(other, f"corrections/{price['id']}", {"status": "withdrawn"})["status"] == "withdrawn"
    send(author, "price-versions/x/correction", span | {"price_per_hour": "1"}, 404)
    send(author, "leases/lse_none/correction", span, 404)
    assert author.get("/api/v1/ops/corrections?status=booked").json()["total_estimate"] == 1


def test_the_month_close_checklist_lists_open_corrections_and_disputes() -> None:
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    correction = propose_correction(lease, 2, 5, now=NOW)
    dispute_requests.dispute_lines(invoice, lines={1: None}, reason=WHY, actor=ANNA, now=NOW)

    def state(name: str) -> tuple[str, str]:
        with staff_scope():
            checks = close_checklist.build_checklist("2026-10", now=NOW).checks
        item = next(each for each in checks if each.name == name)
        return item.state.value, item.found

    assert state("Corrections are decided") == ("action_required", "1 waits for approval, 0 being booked")
    assert state("Disputes are resolved") == ("pending", "1 dispute is open")
    correction_proposals.withdraw_correction(correction, actor=ANNA, now=NOW)
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    approve_correction(propose_price(version, 150, now=NOW), now=NOW)
    assert state("Corrections are decided") == ("pending", "0 wait for approval, 1 being booked")


def test_operators_download_exports_and_statements_and_each_read_is_audited(author: Client) -> None:
    tenant, _, _ = create_ten_hour_lease()
    invoice = close_period(tenant)
    focus = author.get(f"/ops/invoices/{invoice.pk}/exports/focus/")
    assert focus["Content-Type"].startswith("text/csv")
    assert author.get(f"/api/v1/ops/invoices/{invoice.pk}/exports/focus").content == focus.content
    assert author.get(f"/api/v1/ops/invoices/{invoice.pk}/exports/x").status_code == 404
    assert author.get(f"/ops/invoices/{invoice.pk}/exports/x/").status_code == 404
    pdf = author.get(f"/ops/statements/{tenant.pk}/pdf/")
    assert pdf.content.startswith(b"%PDF")
    assert "opening" in author.get(f"/ops/statements/{tenant.pk}/csv/").content.decode()
    assert author.get(f"/ops/statements/{tenant.pk}/x/").status_code == 404
    with clock.frozen_at(NOW + timedelta(minutes=1)):
        body = author.get(f"/api/v1/ops/tenants/{tenant.pk}/statement").json()
    assert body["closing"]["owed"]["amount"] == "20.000000"
    assert author.get(f"/api/v1/ops/tenants/{tenant.pk}/statement/pdf").content.startswith(b"%PDF")
    with staff_scope():
        seen = set(AuditEvent.objects.filter(actor_label="author@example.org").values_list("action", flat=True))
    assert {"ops.invoice.export", "ops.invoices", "ops.statement"} <= seen
