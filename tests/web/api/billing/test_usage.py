"""Daily usage, charges, invoices and prices over the API."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from billing.models import PriceVersion
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from broker.models import Lease
from ports import clock
from tenants.domain.roles import Role
from tenants.services import tenants
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_running_lease,
    create_priced_offering,
    invoices_of,
    set_price,
    utc,
)
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")


class Asker:
    """API client with a frozen clock."""

    def __init__(self, owner: TenantContext, role: Role = Role.OWNER) -> None:
        self.api = ApiClient(owner.token(role, now=NOW))

    def get(self, path: str, status: int = 200) -> Any:
        with clock.frozen_at(NOW):
            answer: Any = self.api.send("GET", path)
        assert answer.status_code == status, answer.content
        return answer.json()


@pytest.fixture
def lease(kestrel: TenantContext) -> Lease:
    """An hour of two units, rated and drafted, and a running lease."""
    offering = create_priced_offering(1_340_000_000)
    ended = add_ended_lease(kestrel.project, offering, utc("2026-11-19 08:00:00"), HOUR, quantity=2)
    add_running_lease(kestrel.project, offering, NOW - timedelta(seconds=10))
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(kestrel.tenant, now=NOW)
    return ended


def test_usage_is_listed_by_day_up_to_the_current_second(kestrel: TenantContext, lease: Lease) -> None:
    found = Asker(kestrel).get("usage")
    assert [(each["day"], each["key"], each["unit_seconds"]) for each in found["items"]] == [
        ("2026-11-19", lease.offering_id, 2 * HOUR),
        ("2026-11-21", lease.offering_id, 10),
    ]
    assert found["items"][0]["amount"] == {"amount": "2.680000", "currency": "EUR"}
    assert found["total"] == {"amount": "2.680000", "currency": "EUR"}
    assert (found["since"], found["time_zone"]) == ("2026-11-01T00:00:00Z", "UTC")


def test_the_total_is_rounded_line_by_line_as_the_invoice_is(kestrel: TenantContext) -> None:
    child = kestrel.create_project("design")
    offering = create_priced_offering(EURO)
    for project in (kestrel.project, child):
        add_ended_lease(project, offering, utc("2026-11-19 08:00:00"), 10)  # 0.28 cents, which is nought on each line
    add_ended_lease(kestrel.project, create_priced_offering(EURO), utc("2026-11-19 08:00:00"), HOUR)
    for group in ("offering", "project", "lease"):
        found = Asker(kestrel).get(f"usage?group_by={group}")
        assert found["total"] == {"amount": "1.000000", "currency": "EUR"}
    found = Asker(kestrel).get("usage?price_class=spot")
    assert (found["items"], found["total"]["amount"]) == ([], "0.000000")


def test_usage_of_some_days_grouped_by_lease(kestrel: TenantContext, lease: Lease) -> None:
    found = Asker(kestrel).get("usage?from=2026-11-19&to=2026-11-20&group_by=lease")
    assert [each["key"] for each in found["items"]] == [lease.pk]


def test_days_begin_at_midnight_in_the_tenants_time_zone_and_end_now_at_the_latest(
    kestrel: TenantContext, lease: Lease
) -> None:
    with tenant_scope(kestrel.tenant.pk):
        tenants.change(kestrel.tenant, actor=kestrel.actor, now=NOW, time_zone="America/New_York")
    add_ended_lease(kestrel.project, lease.offering, utc("2026-11-18 04:30:00"), HOUR)  # half before their midnight
    found = Asker(kestrel).get("usage?from=2026-11-18&to=2026-11-19")
    assert (found["since"], found["until"]) == ("2026-11-18T05:00:00Z", "2026-11-19T05:00:00Z")
    assert [(each["day"], each["unit_seconds"]) for each in found["items"]] == [("2026-11-18", HOUR // 2)]
    ahead = Asker(kestrel).get("usage?from=2026-11-20&to=2026-12-01")
    assert (ahead["until"], ahead["unit_seconds"]) == ("2026-11-21T09:00:00Z", 10)


def test_usage_of_a_project_includes_its_subprojects(kestrel: TenantContext, lease: Lease) -> None:
    child = kestrel.create_project("child")
    add_ended_lease(child, lease.offering, utc("2026-11-18 08:00:00"), 60)
    asker = Asker(kestrel)
    assert asker.get(f"usage?project={child.pk}&group_by=project")["unit_seconds"] == 60
    assert asker.get(f"usage?project={kestrel.project.pk}")["unit_seconds"] == 2 * HOUR + 70
    asker.get("usage?project=prj_nowhere", 404)


def test_a_role_in_one_project_sees_only_its_usage(kestrel: TenantContext, lease: Lease) -> None:
    from tenants.models import ServiceAccount
    from tenants.services import tokens

    child = kestrel.create_project("child")
    add_ended_lease(child, lease.offering, utc("2026-11-18 08:00:00"), 60)
    lease_rating.rate_all_leases(now=NOW)
    with tenant_scope(kestrel.tenant.pk):
        machine = ServiceAccount.objects.create(
            tenant=kestrel.tenant, name="inner", role=Role.VIEWER, project=child, created_at=NOW
        )
        _, text = tokens.issue(
            tenant=kestrel.tenant,
            name="inner",
            scopes=("tenant:admin",),
            expires_at=NOW + timedelta(days=1),
            actor=kestrel.actor,
            now=NOW,
            service_account=machine,
        )
    asker = Asker(kestrel)
    asker.api = ApiClient(text)
    assert asker.get("usage")["unit_seconds"] == 60
    assert [charge["unit_seconds"] for charge in asker.get("rated-charges")["items"]] == [60]
    asker.get(f"leases/{lease.pk}/charges", 404)


@pytest.mark.parametrize(
    "query",
    [
        "from=yesterday",
        "from=2026-13-01",
        "from=2026-11-22",
        "from=2026-11-20&to=2026-11-20",
        "from=2020-01-01",
        "from=0001-01-01",
        "group_by=colour",
        "colour=red",
    ],
)
def test_an_invalid_usage_period_is_refused(kestrel: TenantContext, query: str) -> None:
    Asker(kestrel).get(f"usage?{query}", 400)


def test_charges_are_paginated_without_duplicates(kestrel: TenantContext, lease: Lease) -> None:
    for day in range(1, 8):
        add_ended_lease(kestrel.project, lease.offering, utc(f"2026-11-{day:02d} 08:00:00"), day)
    lease_rating.rate_all_leases(now=NOW)
    asker, found, cursor = Asker(kestrel), [], ""
    while cursor is not None:
        page = asker.get(f"rated-charges?limit=3{cursor}")
        found += page["items"]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert sorted(charge["unit_seconds"] for charge in found) == [1, 2, 3, 4, 5, 6, 7, 2 * HOUR]
    assert len({charge["id"] for charge in found}) == 8


def test_usage_is_grouped_by_a_tag_that_has_to_be_named(kestrel: TenantContext, lease: Lease) -> None:
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(tags={"team": "fold"})
    asker = Asker(kestrel)
    found = asker.get("usage?from=2026-11-19&to=2026-11-20&group_by=tag&tag=team")
    assert [(day["key"], day["unit_seconds"]) for day in found["items"]] == [("fold", 2 * HOUR)]
    for wrong in ("group_by=tag", "group_by=project&tag=team", "tag=team"):
        assert asker.get(f"usage?{wrong}", 400)["errors"][0]["field"] == "tag"


def test_charges_are_filtered_by_lease_and_moment(kestrel: TenantContext, lease: Lease) -> None:
    asker = Asker(kestrel)
    (charge,) = asker.get(f"rated-charges?lease={lease.pk}")["items"]
    assert (charge["since"], charge["until"], charge["seq"]) == (
        "2026-11-19T08:00:00Z",
        "2026-11-19T09:00:00Z",
        2,
    )
    assert charge["amount"] == {"amount": "2.680000", "currency": "EUR"}
    assert charge["exact"] == {"amount": "2.680000000000", "currency": "EUR"}
    assert asker.get("rated-charges?since__gte=2026-11-20T00:00:00Z")["items"] == []


def test_a_lease_lists_its_charges_and_its_cost_so_far(kestrel: TenantContext, lease: Lease) -> None:
    asker = Asker(kestrel)
    found = asker.get(f"leases/{lease.pk}/charges")
    assert (found["seconds"], found["unit_seconds"], len(found["items"])) == (HOUR, 2 * HOUR, 1)
    assert found["cost_so_far"] == {"amount": "2.680000", "currency": "EUR"}
    with tenant_scope(kestrel.tenant.pk):
        running = Lease.objects.get(state="active")
    still = asker.get(f"leases/{running.pk}/charges")
    assert (still["seconds"], still["items"]) == (10, [])
    assert still["cost_so_far"] == {"amount": "0.003722", "currency": "EUR"}, "10 s × 1.34 €/h, half up"
    asker.get("leases/lse_nowhere/charges", 404)


def test_an_invoice_lists_its_lines_and_explains_their_seconds(kestrel: TenantContext, lease: Lease) -> None:
    asker = Asker(kestrel)
    (invoice,) = asker.get("invoices")["items"]
    assert (invoice["status"], invoice["number"], invoice["month"]) == ("draft", None, "2026-11")
    assert invoice["total"] == {"amount": "2.680000", "currency": "EUR"}
    assert asker.get(f"invoices/{invoice['id']}") == invoice
    (line,) = asker.get(f"invoices/{invoice['id']}/lines")["items"]
    assert (line["line"], line["lease_count"], line["unit_seconds"]) == (1, 1, 2 * HOUR)
    answer = asker.get(f"invoices/{invoice['id']}/lines/1/explain")
    assert answer["rule"] == "7,200 s × 1.340000000 €/h ÷ 3600 s/h = 2.680000 € → 2.68 €"
    assert answer["fraction"] == "9,648,000,000,000 / 3,600,000,000,000"
    assert (answer["recomputed_equal"], answer["recomputed"]["amount"]) == (True, "2.680000")
    assert [(w["state"], w["seconds"], w["charged"]) for w in answer["leases"][0]["intervals"]] == [
        ("active", HOUR, True)
    ]
    assert answer["price"]["price_per_hour"]["amount"] == "1.340000000"


@pytest.mark.parametrize("number", ["0", "2", "9" * 30, "one", "-1", "1.0", "²"])
def test_an_unknown_invoice_line_returns_404(kestrel: TenantContext, lease: Lease, number: str) -> None:
    (invoice,) = invoices_of(kestrel.tenant)
    Asker(kestrel).get(f"invoices/{invoice.pk}/lines/{number}/explain", 404)


def test_final_invoices_have_their_number_and_are_filtered(kestrel: TenantContext, lease: Lease) -> None:
    add_ended_lease(kestrel.project, lease.offering, utc("2026-10-05 08:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    close_month.close_due_months(now=NOW)
    asker = Asker(kestrel)
    (october,) = asker.get("invoices?status=finalized")["items"]
    assert (october["number"], october["month"]) == ("2026-10-0001", "2026-10")
    assert [each["month"] for each in asker.get("invoices?month=2026-11")["items"]] == ["2026-11"]


def test_only_owners_admins_and_billing_members_read_invoices(kestrel: TenantContext, lease: Lease) -> None:
    (invoice,) = invoices_of(kestrel.tenant)
    for role, status in ((Role.MEMBER, 403), (Role.VIEWER, 403), (Role.BILLING, 200), (Role.ADMIN, 200)):
        asker = Asker(kestrel, role)
        asker.get("invoices", status)
        asker.get(f"invoices/{invoice.pk}", status)


def test_usage_charges_and_invoices_of_another_tenant_are_not_accessible(kestrel: TenantContext, lease: Lease) -> None:
    (invoice,) = invoices_of(kestrel.tenant)
    other_tenant = Asker(create_tenant("Tern"))
    other_tenant.get(f"invoices/{invoice.pk}", 404)
    assert other_tenant.get("rated-charges")["items"] == []
    assert other_tenant.get("usage")["items"] == []


def test_prices_are_listed_with_their_validity(kestrel: TenantContext) -> None:
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=utc("2026-12-01 00:00:00"))
    create_priced_offering(3 * EURO, currency="USD")
    asker = Asker(kestrel)
    found = asker.get(f"price-versions?offering={offering.pk}&sort=id")["items"]
    assert [(each["price_per_hour"]["amount"], each["until"]) for each in found] == [
        ("1.000000000", "2026-12-01T00:00:00Z"),
        ("2.000000000", None),
    ]
    assert len(asker.get("price-versions?at=2026-12-02T00:00:00Z")["items"]) == 1
    first = asker.get("price-versions?limit=1")
    second = asker.get(f"price-versions?limit=1&cursor={first['next_cursor']}")
    assert first["items"][0]["id"] != second["items"][0]["id"]
    assert PriceVersion.objects.count() == 3


def test_billing_lists_need_at_most_14_queries_with_many_rows(
    kestrel: TenantContext, lease: Lease, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for day in range(1, 15):
        add_ended_lease(kestrel.project, create_priced_offering(EURO), utc(f"2026-11-{day:02d} 08:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(kestrel.tenant, now=NOW)
    (invoice,) = invoices_of(kestrel.tenant)
    asker = Asker(kestrel)
    for path in ("usage", "rated-charges", "invoices", f"invoices/{invoice.pk}/lines"):
        with django_assert_max_num_queries(14):
            asker.get(path)
