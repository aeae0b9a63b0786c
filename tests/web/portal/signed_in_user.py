"""A signed-in user on a priced fleet, in simulated time."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.http import HttpResponse
from django.test import Client

from billing.models import PriceVersion
from billing.models.prices import list_rate_card
from broker.models import Offering
from tenants.domain.roles import Role
from tenants.models import Project, User
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.simulation import NOW, Simulation, TenantContext, create_fleet, create_tenant, offering, simulate
from web.portal.authentication import SESSION_PROJECT

EURO = 10**9


@dataclass
class PortalSession:
    """A signed-in member of a tenant, with a browser."""

    sim: Simulation
    owner: TenantContext
    user: User
    client: Client = field(default_factory=Client)

    def get(self, path: str, **headers: Any) -> HttpResponse:
        return self.client.get(path, headers=headers)

    def post(self, path: str, **form: Any) -> HttpResponse:
        return self.client.post(path, form)

    def read(self, path: str, *, status: int = 200) -> str:
        """Return the visible text of a page."""
        answer = self.get(path)
        assert answer.status_code == status, answer.content[:300]
        return visible_text(answer)

    def change_time_zone(self, time_zone: str) -> None:
        """Change the tenant's time zone."""
        with tenant_scope(self.owner.tenant.pk):
            tenants.change(self.owner.tenant, actor=self.owner.actor, now=self.sim.now, time_zone=time_zone)

    def switch_project(self, project: Project) -> None:
        session = self.client.session
        session[SESSION_PROJECT] = project.pk
        session.save()

    def sign_in_as(self, role: Role, project: Project | None = None) -> "PortalSession":
        """Return the session of another member of the tenant."""
        user = self.owner.create_member(role, project)
        actor = Actor("user", user.pk, user.email)
        return sign_in(self.sim, replace(self.owner, actor=actor), user)


def sign_in(sim: Simulation, owner: TenantContext, user: User) -> PortalSession:
    portal = PortalSession(sim, owner, user)
    portal.client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return portal


def run_lease_for(portal: PortalSession, profile: str, seconds: int, **wanted: Any) -> None:
    """Run a lease for some seconds, and end it."""
    lease = portal.sim.create_lease(portal.owner, offering(profile), max_duration_s=20 * 86_400, **wanted)
    portal.sim.run(seconds)
    portal.sim.release_lease(lease)
    portal.sim.run(5)


def visible_text(answer: HttpResponse) -> str:
    """Return the visible text of a response in one line."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", answer.content.decode(), flags=re.DOTALL)
    body = re.sub(r"</?(small|time)\b[^>]*>", "", body)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body))).strip()


def price_all_offerings(nano_per_unit: int = EURO, *, currency: str = "EUR") -> None:
    """Price every offering at a euro per unit, half for spot."""
    card = list_rate_card()
    PriceVersion.objects.bulk_create(
        [
            PriceVersion(
                rate_card=card,
                offering=offering,
                currency=currency,
                valid=DateTimeTZRange(NOW - timedelta(days=90), None),
                nano_per_hour=nano_per_unit
                * offering.milli_units
                // (2000 if offering.price_class == "spot" else 1000),
                created_at=NOW,
            )
            for offering in Offering.objects.all()
        ]
    )


@contextmanager
def open_portal() -> Iterator[PortalSession]:
    """The owner of Kestrel, with one node of eight H100 and a price for everything."""
    with simulate() as sim:
        create_fleet()
        price_all_offerings()
        owner = create_tenant("Kestrel")
        user = owner.create_member(Role.OWNER)
        yield sign_in(sim, replace(owner, actor=Actor("user", user.pk, user.email)), user)
