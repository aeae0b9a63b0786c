"""Pay an invoice over the API and read the outcome."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_collection
from billing.services.rating import lease_rating
from ports import clock, outbox, payments
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.gateways.faults import inject_faults
from tests.billing.histories import HOUR, add_ended_lease, create_priced_offering, utc
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-01 00:05:00")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.using_gateway(SimulatedGateway()), outbox.captured(lambda *_: None), clock.frozen_at(NOW):
        yield


@pytest.fixture
def october(kestrel: TenantContext) -> Invoice:
    add_ended_lease(kestrel.project, create_priced_offering(), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def api(owner: TenantContext, role: Role = Role.BILLING) -> ApiClient:
    return ApiClient(owner.token(role, now=NOW))


def body_of(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.content
    return answer.json()


def pay(asker: ApiClient, invoice: Invoice, key: str = "k-1") -> Any:
    return asker.send("POST", f"invoices/{invoice.pk}/pay", Idempotency_Key=key)


def work(payment: str, owner: TenantContext) -> None:
    payment_collection.PAYMENTS.collect(payment, owner.tenant.pk, now=NOW)


def test_a_payment_request_returns_202_and_the_payment_then_succeeds(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    answer = pay(asker, october)
    payment = body_of(answer, 202)
    assert (payment["status"], payment["amount"]) == ("pending", {"amount": "1.000000", "currency": "EUR"})
    assert (payment["invoice"], payment["automatic"], payment["gateway"]) == (october.pk, False, "simulated")
    assert answer["Location"] == f"/api/v1/payments/{payment['id']}"
    work(payment["id"], kestrel)
    settled = body_of(asker.send("GET", f"payments/{payment['id']}"))
    assert (settled["status"], settled["next_try_at"]) == ("succeeded", None)
    assert settled["reference"].startswith("sim_")
    paid = body_of(asker.send("GET", f"invoices/{october.pk}"))
    assert (paid["status"], paid["paid_at"]) == ("paid", "2026-11-01T00:05:00Z")


def test_a_repeated_idempotency_key_returns_the_same_payment(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    first = body_of(pay(asker, october), 202)
    work(first["id"], kestrel)
    again = pay(asker, october)
    assert again["Idempotency-Replayed"] == "true"
    assert body_of(again, 202) == first
    assert len(body_of(asker.send("GET", "payments"))["items"]) == 1


def test_a_second_key_during_a_payment_is_refused_with_a_link_to_it(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    first = body_of(pay(asker, october), 202)
    problem = body_of(pay(asker, october, "k-2"), 409)
    assert problem["type"].endswith("not-payable")
    assert problem["fix"]["href"] == f"/api/v1/payments/{first['id']}"


def test_a_declined_payment_shows_its_reason_and_can_be_retried(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    inject_faults(kestrel.tenant.pk, GatewayFault.DECLINED)
    first = body_of(pay(asker, october), 202)["id"]
    work(first, kestrel)
    (declined,) = body_of(asker.send("GET", f"payments?invoice={october.pk}&status=declined"))["items"]
    assert (declined["id"], declined["code"]) == (first, "insufficient_funds")
    assert "insufficient funds" in declined["reason"]
    second = body_of(pay(asker, october, "k-2"), 202)["id"]
    work(second, kestrel)
    ids = [each["id"] for each in body_of(asker.send("GET", "payments"))["items"]]
    assert ids == [second, first]


def test_a_stuck_payment_shows_its_reason_and_resumes_at_the_next_payment_request(
    kestrel: TenantContext, october: Invoice
) -> None:
    asker = api(kestrel)
    inject_faults(kestrel.tenant.pk, GatewayFault.REJECTED)
    first = body_of(pay(asker, october), 202)["id"]
    work(first, kestrel)
    (stuck,) = body_of(asker.send("GET", f"payments?invoice={october.pk}&status=stuck"))["items"]
    assert (stuck["id"], stuck["code"], stuck["next_try_at"]) == (first, "bad_credentials", None)
    assert (stuck["stuck_at"], stuck["attempt_count"]) == ("2026-11-01T00:05:00Z", 1)
    assert "does not accept our credentials" in stuck["reason"]
    again = body_of(pay(asker, october, "k-2"), 202)
    assert (again["id"], again["status"], again["stuck_at"]) == (first, "pending", None)
    work(first, kestrel)
    assert body_of(asker.send("GET", f"invoices/{october.pk}"))["status"] == "paid"


@pytest.mark.parametrize(
    ("role", "status"), [(Role.OWNER, 202), (Role.BILLING, 202), (Role.ADMIN, 403), (Role.MEMBER, 403)]
)
def test_only_owners_and_billing_members_can_pay_an_invoice(
    kestrel: TenantContext, october: Invoice, role: Role, status: int
) -> None:
    body_of(pay(api(kestrel, role), october), status)


def test_a_token_with_billing_read_cannot_pay_an_invoice(kestrel: TenantContext, october: Invoice) -> None:
    reader = ApiClient(kestrel.token(Role.OWNER, scopes=("billing:read",), now=NOW))
    body_of(pay(reader, october), 403)
    body_of(reader.send("GET", "payments"))


def test_invoices_and_payments_of_another_tenant_return_404(kestrel: TenantContext, october: Invoice) -> None:
    payment = body_of(pay(api(kestrel), october), 202)["id"]
    other_tenant = api(create_tenant("Tern"))
    body_of(pay(other_tenant, october), 404)
    body_of(other_tenant.send("GET", f"payments/{payment}"), 404)
    assert body_of(other_tenant.send("GET", "payments"))["items"] == []


def test_without_a_gateway_the_fix_is_a_transfer_with_the_invoice_number(
    kestrel: TenantContext, october: Invoice
) -> None:
    with payments.using_gateway(None):
        problem = body_of(pay(api(kestrel), october), 409)
    assert "2026-10-0001" in problem["fix"]["text"]
    with tenant_scope(kestrel.tenant.pk):
        assert Invoice.objects.get().status == "finalized"


def test_a_dry_run_creates_no_payment(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    body_of(asker.send("POST", f"invoices/{october.pk}/pay?dry_run=true"))
    assert body_of(asker.send("GET", "payments"))["items"] == []


@pytest.mark.parametrize("query", ["status=lost", "bogus=1", "sort=reference"])
def test_an_invalid_payments_query_is_refused(kestrel: TenantContext, query: str) -> None:
    body_of(api(kestrel).send("GET", f"payments?{query}"), 400)


def test_the_number_of_queries_is_the_same_with_many_payments(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    inject_faults(kestrel.tenant.pk, *[GatewayFault.DECLINED] * 6)
    counts = []
    for number in range(6):
        work(body_of(pay(asker, october, f"k-{number}"), 202)["id"], kestrel)
        with CaptureQueriesContext(connection) as spoken:
            assert len(body_of(asker.send("GET", "payments"))["items"]) == number + 1
        counts.append(len(spoken))
    assert len(set(counts)) == 1, counts


def test_payments_are_paginated(kestrel: TenantContext, october: Invoice) -> None:
    asker = api(kestrel)
    inject_faults(kestrel.tenant.pk, *[GatewayFault.DECLINED] * 3)
    opened = []
    for number in range(3):
        opened.append(body_of(pay(asker, october, f"k-{number}"), 202)["id"])
        work(opened[-1], kestrel)
    first = body_of(asker.send("GET", "payments?limit=2&sort=id"))
    second = body_of(asker.send("GET", f"payments?limit=2&sort=id&cursor={first['next_cursor']}"))
    assert [each["id"] for each in (*first["items"], *second["items"])] == opened
