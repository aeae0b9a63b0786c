"""Operators' search: by name, number or ID."""

import pytest
from django.test import Client

from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from broker.models import Gpu, Node
from tests.billing.histories import add_ended_lease, utc
from tests.simulation import Simulation, TenantContext, offering
from tests.web.portal.signed_in_user import visible_text

pytestmark = pytest.mark.django_db


def test_words_find_tenants_leases_and_nodes(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    sim.create_lease(kestrel, offering("1g.10gb"), name="kestrel training")
    shown = visible_text(operator.get("/ops/search/?q=kestr"))
    assert f"Tenants {kestrel.tenant.name}" in shown
    assert "Leases kestrel training" in shown
    node = Node.objects.all()[0]
    assert f"Nodes {node.name}" in visible_text(operator.get(f"/ops/search/?q={node.name[:2]}"))
    assert "Nothing found" in visible_text(operator.get("/ops/search/?q=nobody%00"))


def test_a_whole_id_or_number_leads_to_its_page(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    lease, gpu = sim.create_lease(kestrel, offering("1g.10gb")), Gpu.objects.all()[0]
    add_ended_lease(kestrel.project, offering("2g.20gb"), utc("2026-10-28 00:00:00"), 3600)
    lease_rating.rate_all_leases(now=sim.now)
    final = close_month.close_period(kestrel.tenant, "2026-10", now=sim.now)
    assert final is not None
    pages = {
        kestrel.tenant.pk: f"/ops/tenants/{kestrel.tenant.pk}/",
        lease.pk: f"/ops/leases/{lease.pk}/",
        gpu.uuid: f"/ops/gpus/{gpu.pk}/",
        gpu.node_id: f"/ops/nodes/{gpu.node_id}/",
        final.pk: f"/ops/invoices/{final.pk}/",
        str(final): f"/ops/invoices/{final.pk}/",
    }
    for words, address in pages.items():
        answer = operator.get(f"/ops/search/?q={words}")
        assert (answer.status_code, answer.headers.get("Location")) == (302, address), words
