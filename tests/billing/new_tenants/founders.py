"""Test helpers: sell H200, sign up, launch."""

from datetime import timedelta

from billing.services.new_tenants import tenant_creation
from billing.services.new_tenants.tenant_creation import WantedTenant
from broker.models import Lease, Offering
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from tenants.models import Project, Tenant, User
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.simulation import NOW, create_fleet, offering

H200 = "H200-141GB"


def sell_h200() -> Offering:
    """Sell whole H200 of two nodes."""
    create_fleet(SimulatedRack("north-1", "eu-north", H200, nodes=2))
    whole = Offering.objects.filter(gpu_model=H200, isolation="device", price_class="on_demand").first()
    assert whole is not None
    set_price(whole, 3 * EURO, since=LONG_AGO)
    return whole


def sell_slice() -> Offering:
    """Sell the smallest slice of an H200."""
    found = offering("1g.18gb", model=H200)
    set_price(found, EURO, since=LONG_AGO)
    return found


def person(email: str) -> User:
    return User.objects.create_user(email)


def actor_of(user: User) -> Actor:
    return Actor("user", user.pk, user.email)


def found(user: User, name: str = "Kestrel", *, ip_address: str = "192.0.2.7", currency: str = "EUR") -> Tenant:
    """Create a tenant as somebody does who signs up."""
    with tenant_scope(""):
        return tenant_creation.found_tenant(
            WantedTenant(name, "DE", currency, "Europe/Berlin"),
            user=user,
            ip_address=ip_address,
            actor=actor_of(user),
            now=NOW,
        )


def launch(tenant: Tenant, user: User, wanted: Offering, *, hours: float = 1, quantity: int = 1) -> Lease:
    with tenant_scope(tenant.pk):
        project = Project.objects.select_related("tenant").get(parent=None)
        return request_lease(
            LeaseRequest(
                offering_id=wanted.pk,
                name="fold",
                max_duration_s=int(timedelta(hours=hours).total_seconds()),
                quantity=quantity,
                image="ubuntu",
            ),
            project=project,
            actor=actor_of(user),
            now=NOW,
        )
