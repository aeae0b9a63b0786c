"""`manage.py seed`: the first start's fleet, prices, tenants and seven weeks of history."""

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.hashers import make_password
from django.core.management.base import BaseCommand

from billing.services.showcase import months, papers, people, prices, racks, story
from broker.models.telling import untold
from ports import clock, ids
from tenants.models import User
from tenants.services import tokens
from tenants.services.walls import as_tenant

DAYS = 51
BUDGETS = {"": 150_000, "docking": 6_000}  # cents a month
TOKEN_SCOPES = (
    "leases:write",
    "offerings:read",
    "projects:read",
    "quotas:read",
    "budgets:read",
    "usage:read",
    "billing:read",
)


class Command(BaseCommand):
    help = "Fill an empty installation with a simulated fleet, demo tenants and their history. Repeatable."

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        if User.objects.filter(email="mira@kestrel.example").exists():
            self.stdout.write(json.dumps({"seeded": False}))
            return
        then = (now - timedelta(days=DAYS)).replace(microsecond=0)
        racks.fill(now=then)
        prices.publish_all(since=then, actor=people.OPERATOR, now=then)
        password = ids.secret(12)
        hashed = make_password(password)  # once: every account of the showcase has the same
        people.person("operator@gpubroker.example", "Operator", hashed, now=then, staff=True)
        kestrel = people.kestrel(hashed, now=then)
        tern = people.neighbour("Tern Robotics", "tern.example", hashed, now=then)
        fjord = people.neighbour("Fjord Climate", "fjord.example", hashed, now=then)
        papers.publish(now=then)
        papers.tell(kestrel, papers.KESTREL, now=then)
        papers.tell(tern, papers.TERN, now=then)
        with untold():
            story.live_through(
                [
                    *story.kestrel_plans(kestrel, now=now, days=DAYS - 1),
                    *story.kestrel_now(kestrel, now=now),
                    *story.neighbour_plans(tern, now=now, seed="tern", live=38, gang=6),
                    *story.neighbour_plans(fjord, now=now, seed="fjord", live=26, gang=5),
                ],
                until=now,
            )
        months.close_and_draft(now=now)
        months.limit(kestrel, BUDGETS, now=now)
        with as_tenant(kestrel.tenant.pk):
            _, token = tokens.issue(
                tenant=kestrel.tenant,
                name="first start",
                scopes=TOKEN_SCOPES,
                expires_at=now + timedelta(days=90),
                actor=people.OPERATOR,
                now=now,
                user_id=kestrel.actors["mira"].id,
            )
        self.stdout.write(json.dumps(self._answer(password, token, kestrel)))

    def _answer(self, password: str, token: str, kestrel: people.Cast) -> dict[str, Any]:
        project = kestrel.projects["protein-design"].pk
        accounts = (
            ("mira@kestrel.example", "owner of Kestrel Bio"),
            ("jonas@kestrel.example", "member of protein-design"),
            ("operator@gpubroker.example", "operator"),
        )
        return {
            "seeded": True,
            "accounts": [{"email": e, "password": password, "role": r} for e, r in accounts],
            "token": token,
            "launch": {
                "name": "first-slice",
                "project": project,
                "offering": racks.first_offering(),
                "max_duration_s": 3600,
            },
        }
