"""Pages show tenants the CPU, memory and scratch of a slice."""

import pytest

from broker.models import Lease, Offering
from broker.services.inventory.hardware import SimulatedRack
from tenants.services.rls import tenant_scope
from tests.simulation import REGION, create_cpu_nodes, create_fleet, offering
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
EIGHTH = "1.5 CPUs, 12 GiB memory, 25 GiB scratch"


def test_the_catalogue_shows_the_resources_of_every_slice(portal: PortalSession) -> None:
    page = portal.read("/catalogue/")
    assert EIGHTH in page
    assert "12 CPUs, 96 GiB memory, 200 GiB scratch" in page
    assert ",1500,12288,25600" in portal.get("/catalogue/?format=csv").content.decode()


def test_the_launch_page_shows_the_resources_in_its_list_and_in_the_quote(portal: PortalSession) -> None:
    page = portal.read(f"/launch/?offering={offering('1g.10gb').pk}")
    assert f"1g.10gb H100 SXM 80GB {EIGHTH}" in page
    assert f"Each slice has {EIGHTH}" in page


def test_the_lease_page_shows_the_resources_of_the_time_of_the_request(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    Offering.objects.update(cpu_milli=100)
    assert f"Each slice has {EIGHTH}" in visible_text(portal.get(f"/leases/{lease.pk}/"))


def test_a_lease_without_recorded_resources_shows_the_former_share(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    Offering.objects.update(cpu_milli=100)
    with tenant_scope(portal.owner.tenant.pk):
        Lease.objects.update(cpu_milli=0, host_memory_mib=0, scratch_mib=0)
    assert f"Each slice has {EIGHTH}" in visible_text(portal.get(f"/leases/{lease.pk}/"))


def test_only_models_with_mig_have_memory_slices_in_the_catalogue(portal: PortalSession) -> None:
    create_fleet(SimulatedRack("t4-1", REGION, "T4-16GB", nodes=1, gpus_per_node=1))
    page = visible_text(portal.get("/catalogue/"))
    assert "80 GB per GPU, 8 memory slices" in page
    assert "16 GB per GPU" in page
    assert "16 GB per GPU, 4 memory slices" not in page


def test_the_catalogue_shows_no_quota_for_cpus(portal: PortalSession) -> None:
    create_cpu_nodes()
    assert "None" not in visible_text(portal.get("/catalogue/"))
