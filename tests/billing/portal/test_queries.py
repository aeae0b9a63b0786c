"""However many leases there are, a page asks the database as often: queries.json is the baseline.

A page that needs one more query fails here; if the query is worth it, write the new number into the file.
"""

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.models import Invoice
from billing.services import drafts, rating
from broker.domain.states import LeaseState
from broker.models import Lease
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk
from tests.world import offering

pytestmark = pytest.mark.django_db
BASELINE = json.loads((Path(__file__).parent / "queries.json").read_text())
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb")


def populate(desk: Desk, times: int) -> None:
    """Add leases in every state a page may show, with what was charged for them."""
    for n in range(times):
        project = desk.owner.child(f"p{Lease.objects.count()}-{n}-{desk.life.now:%H%M%S%f}")
        for profile in PROFILES:
            lease = desk.life.lease(desk.owner, offering(profile), project=project, max_duration_s=40_000)
            desk.life.run(60)
            if profile != "1g.10gb":
                desk.life.release(lease)
                desk.life.run(10)
        desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED, quantity=8, project=project)
        desk.life.run(1)
    rating.rate(now=desk.life.now)
    with as_tenant(desk.owner.tenant.pk):
        drafts.refresh(desk.owner.tenant, now=desk.life.now)


def addresses(desk: Desk) -> dict[str, str]:
    with as_tenant(desk.owner.tenant.pk):
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


def counted(desk: Desk) -> dict[str, int]:
    found = {}
    for name, address in addresses(desk).items():
        with CaptureQueriesContext(connection) as spoken:
            assert desk.get(address).status_code == 200
        found[name] = len(spoken)
    return found


def test_the_number_of_queries_is_the_baseline_and_does_not_grow_with_rows(desk: Desk) -> None:
    populate(desk, 1)
    few = counted(desk)
    populate(desk, 4)
    many = counted(desk)
    assert many == few
    assert few == BASELINE


def test_the_frame_asks_three_times_in_the_root_and_once_more_below(desk: Desk) -> None:
    child = desk.owner.child("below")
    populate(desk, 1)
    plain = with_frame(desk)
    desk.works_in(child)
    assert (plain, with_frame(desk)) == (3, 4)


def with_frame(desk: Desk) -> int:
    """Count what the frame itself asks: leases by state, burn, spend, and which projects are below."""
    with CaptureQueriesContext(connection) as spoken:
        desk.get("/team/")
    asked = [q["sql"] or "" for q in spoken]  # a prepared statement is noted without its words
    frame = ("GROUP BY 1", "sum(l.quantity", "WITH charged AS", '"path" @>')
    return sum(any(mark in sql for mark in frame) for sql in asked)


def test_no_page_is_larger_than_100_kb(desk: Desk) -> None:
    populate(desk, 3)
    large = {name: len(desk.get(address).content) for name, address in addresses(desk).items()}
    assert {name: size for name, size in large.items() if size > 100_000} == {}
