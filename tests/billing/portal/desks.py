"""Somebody signed in at their desk, over a fleet with prices, in time that moves only when told to."""

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
from billing.services import prices
from broker.models import Offering
from tenants.domain.roles import Role
from tenants.models import Project, User
from tenants.portal.doors import SESSION_PROJECT
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant
from tests.world import NOW, Home, Life, alive, fleet, home, offering

EURO = 10**9


@dataclass
class Desk:
    """One person in one tenant, with a browser."""

    life: Life
    owner: Home
    user: User
    client: Client = field(default_factory=Client)

    def get(self, path: str, **headers: Any) -> HttpResponse:
        return self.client.get(path, headers=headers)

    def post(self, path: str, **form: Any) -> HttpResponse:
        return self.client.post(path, form)

    def read(self, path: str, *, status: int = 200) -> str:
        """Return a page as somebody reads it: words only."""
        answer = self.get(path)
        assert answer.status_code == status, answer.content[:300]
        return words(answer)

    def moves_to(self, time_zone: str) -> None:
        """Let the tenant's days and months begin elsewhere."""
        with as_tenant(self.owner.tenant.pk):
            tenants.change(self.owner.tenant, actor=self.owner.actor, now=self.life.now, time_zone=time_zone)

    def works_in(self, project: Project) -> None:
        session = self.client.session
        session[SESSION_PROJECT] = project.pk
        session.save()

    def signed_in_as(self, role: Role, project: Project | None = None) -> "Desk":
        """Return the desk of somebody else in the tenant."""
        user = self.owner.member(role, project)
        actor = Actor("user", user.pk, user.email)
        return at_desk(self.life, replace(self.owner, actor=actor), user)


def at_desk(life: Life, owner: Home, user: User) -> Desk:
    desk = Desk(life, owner, user)
    desk.client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return desk


def ran(desk: Desk, profile: str, seconds: int, **wanted: Any) -> None:
    """Let a lease be active for so long, and end."""
    lease = desk.life.lease(desk.owner, offering(profile), max_duration_s=20 * 86_400, **wanted)
    desk.life.run(seconds)
    desk.life.release(lease)
    desk.life.run(5)


def words(answer: HttpResponse) -> str:
    """Return what a page says, in one line, without its markup and scripts."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", answer.content.decode(), flags=re.DOTALL)
    body = re.sub(r"</?(small|time)\b[^>]*>", "", body)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body))).strip()


def price_all(nano_per_unit: int = EURO, *, currency: str = "EUR") -> None:
    """Give every offering a price: a euro an hour for each compute slice, half of it for spot."""
    card = prices.list_card()
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
def opened() -> Iterator[Desk]:
    """The owner of Kestrel, with one node of eight H100 and a price for everything."""
    with alive() as life:
        fleet()
        price_all()
        owner = home("Kestrel")
        user = owner.member(Role.OWNER)
        yield at_desk(life, replace(owner, actor=Actor("user", user.pk, user.email)), user)
