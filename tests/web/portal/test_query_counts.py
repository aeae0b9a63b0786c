"""Pages need a constant number of queries; query_counts.json is the baseline.

A page that needs one more query fails here; if the query is worth it, write the new number into the file.
"""

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.models import Invoice
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.services.rls import tenant_scope
from tests.simulation import offering
from tests.web.portal.signed_in_user import PortalSession
from tests.web.ui.style_page import get_style_page

pytestmark = pytest.mark.django_db
BASELINE = json.loads((Path(__file__).parent / "query_counts.json").read_text())
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb")


def populate(portal: PortalSession, times: int) -> None:
    """Add leases in every state, with their charges."""
    for n in range(times):
        project = portal.owner.create_project(f"p{Lease.objects.count()}-{n}-{portal.sim.now:%H%M%S%f}")
        for profile in PROFILES:
            lease = portal.sim.create_lease(portal.owner, offering(profile), project=project, max_duration_s=40_000)
            portal.sim.run(60)
            if profile != "1g.10gb":
                portal.sim.release_lease(lease)
                portal.sim.run(10)
        portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, quantity=8, project=project)
        portal.sim.run(1)
    lease_rating.rate_all_leases(now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)


def addresses(portal: PortalSession) -> dict[str, str]:
    with tenant_scope(portal.owner.tenant.pk):
        active = Lease.objects.filter(state="active").latest("pk")
        invoice = Invoice.objects.latest("pk")
    return {
        "home": "/?whose=all",
        "catalogue": "/catalogue/",
        "launch": f"/launch/?offering={offering('1g.10gb').pk}",
        "leases": "/leases/?state=all",
        "leases as csv": "/leases/?state=all&format=csv",
        "lease": f"/leases/{active.pk}/",
        "row": f"/leases/{active.pk}/row/",
        "queue": "/queue/",
        "spend": "/spend/",
        "spend by month and project": "/spend/?by=month&group=project",
        "invoices": "/invoices/",
        "invoice": f"/invoices/{invoice.pk}/",
        "explained": f"/invoices/{invoice.pk}/?line=1",
    }


def counted(portal: PortalSession) -> dict[str, int]:
    found = {}
    for name, address in addresses(portal).items():
        with CaptureQueriesContext(connection) as spoken:
            assert portal.get(address).status_code == 200
        found[name] = len(spoken)
    return found


@pytest.mark.deep
def test_the_number_of_queries_is_the_baseline_and_does_not_grow_with_rows(portal: PortalSession) -> None:
    populate(portal, 1)
    few = counted(portal)
    populate(portal, 4)
    many = counted(portal)
    assert many == few
    assert few == BASELINE


@pytest.mark.deep
def test_the_page_frame_needs_three_queries_in_the_root_project_and_four_below(portal: PortalSession) -> None:
    child = portal.owner.create_project("below")
    populate(portal, 1)
    plain = with_frame(portal)
    portal.switch_project(child)
    assert (plain, with_frame(portal)) == (3, 4)


def with_frame(portal: PortalSession) -> int:
    """Count the queries of the page layout."""
    with CaptureQueriesContext(connection) as spoken:
        portal.get("/team/")
    requests = [q["sql"] or "" for q in spoken]  # a prepared statement is noted without its words
    frame = ("GROUP BY 1", "sum(l.quantity", "WITH charged AS", '"path" @>')
    return sum(any(mark in sql for mark in frame) for sql in requests)


@pytest.mark.deep
def test_no_page_is_larger_than_100_kb(portal: PortalSession) -> None:
    populate(portal, 3)
    large = {name: len(portal.get(address).content) for name, address in addresses(portal).items()}
    large["style guide"] = len(get_style_page().content)
    large["style guide with a drawer"] = len(get_style_page("?explain").content)
    assert {name: size for name, size in large.items() if size > 100_000} == {}
