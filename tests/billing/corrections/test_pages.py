"""Corrections as operators propose, look at and approve them, what of them is told elsewhere, and files of tenants."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing import tasks
from billing.models import Correction, Invoice
from billing.services import month_close
from billing.services.corrections import proposing
from billing.services.disputes import asking
from broker.models import Offering
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, User
from tenants.services.walls import as_staff, as_tenant
from tests.billing.corrections.corrected import (
    ANNA,
    NOW,
    WHY,
    approved,
    close,
    proposed,
    repriced,
    ten_hours,
)
from tests.billing.pages import words

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


def staff(settings: Any, name: str) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user(f"{name}@example.org", is_staff=True))
    return client


@pytest.fixture
def author(settings: Any) -> Client:
    return staff(settings, "author")


@pytest.fixture
def other(settings: Any) -> Client:
    return staff(settings, "other")


def asked(of: str, **more: str) -> dict[str, str]:
    return {"what": "back", "lease": of, "since": "2026-10-05 02:00:00", "until": "2026-10-05 05:00:00",
            "reason": WHY} | more  # fmt: skip


def seal(page: Any) -> str:
    return str(page.content.decode().split('name="seal" value="')[1].split('"')[0])


def test_it_is_proposed_looked_at_and_approved_by_somebody_else(author: Client, other: Client) -> None:
    tenant, _, lease = ten_hours()
    assert "0 corrections." in words(author.get("/ops/corrections/"))
    answer = author.post("/ops/corrections/", asked(lease.pk))
    page = answer["Location"]
    assert answer.status_code == 302
    mine = author.get(page)
    assert "€20.00 €14.00" in words(mine)
    assert "Somebody else has to approve it." in words(mine)
    typed = {"verb": "approve", "seal": seal(mine)}
    assert "You have proposed it yourself." in words(author.post(page, typed), 409)
    assert "You saw another diff" in words(other.post(page, typed | {"seal": "x"}), 409)
    assert other.post(page, typed).status_code == 302
    shown = words(other.get(page))
    assert "Approved and booked." in shown
    assert lease.pk in words(author.get("/ops/corrections/"))
    client = Client()
    with as_tenant(tenant.pk):
        user = User.objects.create_user("payer@example.org")
        Member.objects.create(tenant=tenant, user=user, role=Role.OWNER, created_at=NOW)
        invoice = Invoice.objects.get(tenant=tenant)
    client.force_login(user)
    drawer = words(client.get(f"/invoices/{invoice.pk}/?line=1"))
    assert f"corrected, 05 Oct 02:00:00 to 05 Oct 05:00:00 UTC: {WHY}" in drawer
    assert "recomputed, equal" in drawer


def test_a_price_is_corrected_by_two_others(author: Client, other: Client, settings: Any) -> None:
    settings.CORRECTION_LIMIT = 1
    third = staff(settings, "third")
    _, _, lease = ten_hours()
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    typed = asked("", what="price", version=str(version.pk), price="1.50")
    page = author.post("/ops/corrections/", typed)["Location"]
    approve = {"verb": "approve", "seal": seal(author.get(page))}
    assert "one other has to approve it too" in words(other.post(page, approve, follow=True))
    assert "booked tenant by tenant" in words(third.post(page, approve, follow=True))
    tasks.book_corrections(page.split("/")[3], "")
    assert "Booked" in words(third.get(page))
    assert Correction.objects.get().status == "booked"
    tasks.keep_ledger()


def test_it_is_withdrawn(author: Client) -> None:
    _, _, lease = ten_hours()
    page = author.post("/ops/corrections/", asked(lease.pk))["Location"]
    assert "Withdrawn; nothing was booked." in words(author.post(page, {"verb": "withdraw"}, follow=True))
    assert author.get("/ops/corrections/cor_none/").status_code == 404


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"lease": "lse_none"}, "There is no lease 'lse_none'."),
        ({"since": "yesterday"}, "The since is no moment."),
        ({"what": "price", "version": "x"}, "There is no price version 'x'."),
        ({"until": "2026-10-05T01:00:00+00:00"}, "It ends before it begins."),
        ({"what": "charge"}, "All of it is charged already"),
        ({"since": "2026-10-06", "until": "2026-10-07"}, "Nothing of it is charged"),
    ],
)
def test_what_was_typed_wrong_is_said(author: Client, typed: dict[str, str], said: str) -> None:
    _, _, lease = ten_hours()
    assert said in words(author.post("/ops/corrections/", asked(lease.pk, **typed)), 400)
    assert not Correction.objects.exists()


def put(client: Client, path: str, body: dict[str, Any], status: int = 200) -> Any:
    answer = client.put(f"/api/v1/ops/{path}", body, content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_the_api_does_the_same(author: Client, other: Client) -> None:
    _, _, lease = ten_hours()
    span = {"since": "2026-10-05T02:00:00Z", "until": "2026-10-05T05:00:00Z", "reason": WHY}
    made = put(author, f"leases/{lease.pk}/correction", span)
    (share,) = made["shares"]
    (change,) = share["changes"]
    assert (change["before"]["amount"], change["after"]["amount"]) == ("20.000000", "14.000000")
    where = f"corrections/{made['id']}"
    put(author, where, {"status": "approved", "seal": made["seal"]}, 409)
    assert put(other, where, {"status": "approved", "seal": made["seal"]})["status"] == "booked"
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    price = put(
        author,
        f"price-versions/{version.pk}/correction",
        span | {"per_hour": "1.50", "since": "2026-10-05T00:00:00Z"},
    )
    assert (price["kind"], price["per_hour"]["amount"]) == ("price", "1.500000000")
    assert put(other, f"corrections/{price['id']}", {"status": "withdrawn"})["status"] == "withdrawn"
    put(author, "price-versions/x/correction", span | {"per_hour": "1"}, 404)
    put(author, "leases/lse_none/correction", span, 404)
    assert author.get("/api/v1/ops/corrections?status=booked").json()["total_estimate"] == 1


def test_the_checklist_of_the_month_names_what_waits() -> None:
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    correction = proposed(lease, 2, 5, now=NOW)
    asking.dispute(invoice, lines={1: None}, reason=WHY, actor=ANNA, now=NOW)

    def state(name: str) -> tuple[str, str]:
        with as_staff():
            item = next(each for each in month_close.look("2026-10", now=NOW).items if each.name == name)
        return item.state.value, item.found

    assert state("Corrections are decided") == ("bad", "1 waits for approval, 0 being booked")
    assert state("Disputes are answered") == ("waits", "1 dispute is open")
    proposing.withdraw(correction, actor=ANNA, now=NOW)
    version = Offering.objects.get(pk=lease.offering_id).price_versions.get()
    approved(repriced(version, 150, now=NOW), now=NOW)
    assert state("Corrections are decided") == ("waits", "0 wait for approval, 1 being booked")


def test_operators_take_the_same_files_and_each_look_is_kept(author: Client) -> None:
    tenant, _, _ = ten_hours()
    invoice = close(tenant)
    focus = author.get(f"/ops/invoices/{invoice.pk}/exports/focus/")
    assert focus["Content-Type"].startswith("text/csv")
    assert author.get(f"/api/v1/ops/invoices/{invoice.pk}/exports/focus").content == focus.content
    assert author.get(f"/api/v1/ops/invoices/{invoice.pk}/exports/x").status_code == 404
    assert author.get(f"/ops/invoices/{invoice.pk}/exports/x/").status_code == 404
    pdf = author.get(f"/ops/statements/{tenant.pk}/pdf/")
    assert pdf.content.startswith(b"%PDF")
    assert "opening" in author.get(f"/ops/statements/{tenant.pk}/csv/").content.decode()
    assert author.get(f"/ops/statements/{tenant.pk}/x/").status_code == 404
    with clock.standing_at(NOW + timedelta(minutes=1)):
        told = author.get(f"/api/v1/ops/tenants/{tenant.pk}/statement").json()
    assert told["closing"]["owed"]["amount"] == "20.000000"
    assert author.get(f"/api/v1/ops/tenants/{tenant.pk}/statement/pdf").content.startswith(b"%PDF")
    with as_staff():
        seen = set(
            AuditEvent.objects.filter(actor_label="author@example.org").values_list("action", flat=True)
        )
    assert {"ops.invoice.export", "ops.invoices", "ops.statement"} <= seen
