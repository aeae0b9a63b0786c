"""Terminal page of a lease, and the page in place of a simulated program."""

import pytest
from django.conf import settings

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster
from tenants.domain.roles import Role
from tests.broker.domain.workloads.test_workloads import KEY
from tests.simulation import create_tenant, offering
from tests.web.portal.signed_in_user import PortalSession

pytestmark = pytest.mark.django_db


def test_an_active_lease_links_to_its_terminal(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), name="fold")
    address = f"/leases/{lease.pk}/terminal/"
    assert f'href="{address}"' in portal.get(f"/leases/{lease.pk}/").content.decode()
    page = portal.get(address)
    assert page.status_code == 200
    html = page.content.decode()
    assert f'data-terminal="{settings.TERMINALS_URL}/api/v1/terminals/{lease.pk}"' in html
    assert "simulated: commands are imitated, nothing is executed" in html
    assert len(html.encode()) < 100_000


def test_the_terminal_of_a_real_cluster_is_not_called_simulated(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    Cluster.objects.update(provisioner="kubernetes")
    assert "simulated" not in portal.read(f"/leases/{lease.pk}/terminal/")


def test_a_queued_lease_says_that_it_has_no_terminal_yet(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), LeaseState.QUEUED)
    assert "Open terminal" not in portal.read(f"/leases/{lease.pk}/")
    page = portal.get(f"/leases/{lease.pk}/terminal/").content.decode()
    assert "The lease is not active." in page
    assert "data-terminal=" not in page


def test_viewers_and_other_tenants_get_no_terminal_page(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    theirs = portal.sim.create_lease(create_tenant("Swift"), offering())
    for page in ("terminal", "simulated-page"):
        assert portal.get(f"/leases/{theirs.pk}/{page}/").status_code == 404
        assert portal.sign_in_as(Role.VIEWER).get(f"/leases/{lease.pk}/{page}/").status_code == 403
    assert "Open terminal" not in portal.sign_in_as(Role.VIEWER).read(f"/leases/{lease.pk}/")


def test_a_simulated_notebook_opens_a_page_that_says_so(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), workload="jupyter", env={"A": "hidden"})
    address = f"/leases/{lease.pk}/simulated-page/"
    assert f'href="{address}"' in portal.get(f"/leases/{lease.pk}/").content.decode()
    page = portal.read(address)
    assert "Simulated JupyterLab" in page
    assert "This cluster is simulated: no program runs here." in page
    assert "H100 SXM 80GB · 1g.10gb · 10 GiB" in page
    assert "hidden" not in page


def test_a_simulated_ssh_box_says_that_it_has_no_ssh_server(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), workload="ssh", ssh_keys=[KEY])
    assert "It has no SSH server; use the terminal" in portal.read(f"/leases/{lease.pk}/")


def test_the_simulated_page_of_another_lease_leads_to_the_lease(portal: PortalSession) -> None:
    queued = portal.sim.create_lease(portal.owner, offering(), LeaseState.QUEUED, workload="jupyter")
    assert portal.get(f"/leases/{queued.pk}/simulated-page/")["Location"] == f"/leases/{queued.pk}/"
    notebook = portal.sim.create_lease(portal.owner, offering(), workload="jupyter")
    Cluster.objects.update(provisioner="kubernetes")
    assert portal.get(f"/leases/{notebook.pk}/simulated-page/")["Location"] == f"/leases/{notebook.pk}/"
