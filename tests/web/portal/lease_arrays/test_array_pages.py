"""Arrays of leases in the portal: launched at once, shown and released together."""

import pytest

from broker.models import Lease, LeaseArray
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import create_tenant, offering
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
FORM = {"name": "sweep", "runs": "batch", "command": "train", "lasts": "1 h", "class": "on_demand"}


def launch(portal: PortalSession, **more: str) -> LeaseArray:
    answer = portal.post("/launch/", offering=offering().pk, **{**FORM, "array_size": "3", **more})
    assert answer.status_code == 302, visible_text(answer)
    with tenant_scope(portal.owner.tenant.pk):
        return LeaseArray.objects.get()


def test_an_array_is_launched_once_and_shown(portal: PortalSession) -> None:
    array = launch(portal, key="same")
    assert launch(portal, key="same").pk == array.pk
    portal.sim.run(20)
    page = portal.read(f"/lease-arrays/{array.pk}/")
    assert "Array of 3 leases" in page
    assert "Active 3" in page
    assert "sweep-2" in page
    with tenant_scope(portal.owner.tenant.pk):
        lease = Lease.objects.get(array_index=1)
    assert "index 1 of this array" in portal.read(f"/leases/{lease.pk}/")


def test_a_long_array_is_shown_in_pages(portal: PortalSession) -> None:
    array = launch(portal, array_size="35")
    assert "sweep-30" not in portal.read(f"/lease-arrays/{array.pk}/")
    assert "sweep-34" in portal.read(f"/lease-arrays/{array.pk}/?from=30")


def test_all_leases_of_an_array_are_released_together(portal: PortalSession) -> None:
    array = launch(portal)
    path = f"/lease-arrays/{array.pk}/release/"
    assert "3 leases end now." in portal.read(path)
    assert portal.sign_in_as(Role.VIEWER).get(path).status_code == 403
    assert portal.post(path).status_code == 302
    page = portal.read(f"/lease-arrays/{array.pk}/")
    assert "Released 3" in page
    assert "Release all" not in page.partition("API request")[0]


def test_an_array_beyond_the_quota_is_refused_as_a_whole(portal: PortalSession) -> None:
    portal.owner.set_quota(QuotaKind.UNITS, 2000)
    answer = portal.post("/launch/", offering=offering().pk, **FORM, array_size="3")
    assert answer.status_code == 409
    assert "Lease 3 of 3 is refused, so none was created." in visible_text(answer)
    with tenant_scope(portal.owner.tenant.pk):
        assert not LeaseArray.objects.exists()


@pytest.mark.parametrize(("size", "text"), [("many", "This is not a whole number."), ("1001", "1 to 1000 leases")])
def test_a_wrong_array_size_is_explained(portal: PortalSession, size: str, text: str) -> None:
    answer = portal.post("/launch/", offering=offering().pk, **FORM, array_size=size)
    assert answer.status_code == 409
    assert text in visible_text(answer)


def test_an_array_of_another_tenant_is_not_found(portal: PortalSession) -> None:
    other = create_tenant("Other")
    with tenant_scope(other.tenant.pk):
        array = LeaseArray.objects.create(
            tenant=other.tenant, project=other.project, name="x", size=1, created_at=portal.sim.now
        )
    assert portal.get(f"/lease-arrays/{array.pk}/").status_code == 404
