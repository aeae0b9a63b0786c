"""Cost allocation of an invoice by project, user and tag."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.models import Invoice, TaxRate
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports import cost_allocation
from billing.services.reports.cost_allocation import CostShare, allocate_cost
from broker.models import Lease
from ports import clock
from tenants.domain.roles import Role
from tenants.models import Project, Tenant
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.documents.test_exports import close_october
from tests.billing.histories import EURO, HOUR, LONG_AGO, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate
from tests.simulation import create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
OCTOBER = utc("2026-10-01 00:00:00")
PEOPLE = ("usr_ada", "usr_bob", "usr_cy")


def allocated_parts(invoice: Invoice, by: str, tag: str = "") -> list[CostShare]:
    with tenant_scope(invoice.tenant_id):
        return allocate_cost(invoice, by=by, tag=tag)


def add_lease_of(project: Project, offering: Any, hours: int, seconds: int, who: str, **tags: str) -> None:
    lease = add_ended_lease(project, offering, OCTOBER + timedelta(hours=hours), seconds)
    with tenant_scope(project.tenant_id):
        label = f"{who[4:]}@example.org"
        Lease.objects.filter(pk=lease.pk).update(requested_by=who, requested_by_label=label, tags=tags)


def create_two_projects() -> tuple[Tenant, Project, Project]:
    tenant, root = create_customer()
    with tenant_scope(tenant.pk):
        below = projects.create(parent=root, name="below", actor=SYSTEM, now=LONG_AGO)
    return tenant, root, below


@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 1), st.integers(1, 5000), st.integers(0, 2)),
        min_size=1,
        max_size=15,
    )
)
def test_allocated_costs_add_up_to_the_invoice_including_tax(used: list[tuple[bool, int, int, int]]) -> None:
    with override_settings(SUPPLIER=LUMEN.as_dict()):
        if not TaxRate.objects.exists():
            set_tax_rate("DE", 19)
        tenant, root, below = create_two_projects()
        shelf = [create_priced_offering(333_333_333), create_priced_offering(1_234_567_891)]
        for n, (deep, which, seconds, who) in enumerate(used):
            add_lease_of(below if deep else root, shelf[which], 2 * n, seconds, PEOPLE[who], team=f"team {who % 2}")
        invoice = close_october(tenant)
    for by, tag in (("project", ""), ("user", ""), ("tag", "team"), ("tag", "nobody has it")):
        found = allocated_parts(invoice, by, tag)
        assert sum(part.net for part in found) == invoice.subtotal
        assert sum(part.tax for part in found) == invoice.tax
        assert sum(part.total for part in found) == invoice.total
        assert sum(part.unit_seconds for part in found) == sum(seconds for _, _, seconds, _ in used)


def test_an_indivisible_cent_is_allocated_to_the_first_part() -> None:
    tenant, root = create_customer()
    offering = create_priced_offering(EURO)
    add_lease_of(root, offering, 0, HOUR // 200, "usr_ada")  # half a cent each
    add_lease_of(root, offering, 2, HOUR // 200, "usr_bob")
    invoice = close_october(tenant)
    assert invoice.total == 1
    assert [(part.key, part.name, part.total) for part in allocated_parts(invoice, "user")] == [
        ("usr_ada", "ada@example.org", 1),
        ("usr_bob", "bob@example.org", 0),
    ]


def test_usage_without_the_tag_is_allocated_to_a_part_of_its_own() -> None:
    tenant, root = create_customer()
    offering = create_priced_offering(EURO)
    add_lease_of(root, offering, 0, HOUR, "usr_ada", team="docking")
    add_lease_of(root, offering, 2, 2 * HOUR, "usr_bob", site="north")
    invoice = close_october(tenant)
    assert [(part.key, part.total) for part in allocated_parts(invoice, "tag", "team")] == [("", 200), ("docking", 100)]
    with tenant_scope(tenant.pk):
        assert cost_allocation.invoice_tag_names(invoice) == ["site", "team"]


def test_late_usage_is_allocated_to_its_requester() -> None:
    tenant, root = create_customer()
    offering = create_priced_offering(EURO)
    add_lease_of(root, offering, 0, HOUR, "usr_ada")
    close_october(tenant)
    add_lease_of(root, offering, 2, HOUR, "usr_bob", team="late")
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    november = close_month.close_period(tenant, "2026-11", now=utc("2026-12-01 00:05:00"))
    assert november is not None
    assert [(part.key, part.total) for part in allocated_parts(november, "user")] == [("usr_bob", 100)]
    with tenant_scope(tenant.pk):
        assert cost_allocation.invoice_tag_names(november) == ["team"]


def test_a_line_without_charges_is_allocated_to_no_user() -> None:
    tenant, root = create_customer()
    add_lease_of(root, create_priced_offering(EURO), 0, HOUR, "usr_ada")
    invoice = close_october(tenant)
    empty = Invoice(pk=invoice.pk, tenant_id=tenant.pk, period_id=0)
    assert [(part.key, part.total) for part in allocated_parts(empty, "user")] == [("", 100)]


def test_the_api_returns_the_cost_allocation_and_refuses_invalid_queries() -> None:
    with clock.frozen_at(NOW):
        kestrel = create_tenant("Kestrel")
        lease = add_ended_lease(kestrel.project, create_priced_offering(2 * EURO), OCTOBER, HOUR)
        with tenant_scope(kestrel.tenant.pk):
            Lease.objects.filter(pk=lease.pk).update(tags={"team": "docking"})
        lease_rating.rate_all_leases(now=NOW)
        invoice = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
        assert invoice is not None
        api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
        path = f"invoices/{invoice.pk}/cost-allocation"
        body = api.send("GET", path).json()
        two = {"amount": "2.000000", "currency": "EUR"}
        assert (body["group_by"], body["tag_names"], body["total"]) == ("project", ["team"], two)
        assert body["items"] == [
            {
                "key": kestrel.project.pk,
                "name": kestrel.project.name,
                "unit_seconds": HOUR,
                "amount": two,
                "tax": two | {"amount": "0.000000"},
                "credited": two | {"amount": "0.000000"},
                "total": two,
            }
        ]
        assert api.send("GET", f"{path}?group_by=tag&tag=team").json()["items"][0]["key"] == "docking"
        for odd in ("group_by=colour", "group_by=tag", "group_by=user&tag=team", "group_by=tag&tag=" + "x" * 101):
            assert api.send("GET", f"{path}?{odd}").status_code == 400
