"""`manage.py seed`: create the demo fleet, prices, tenants and seven weeks of history."""

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.hashers import make_password
from django.core.management.base import BaseCommand

from billing.services.demo.seed import seed_fleet, seed_history, seed_invoices, seed_prices, seed_tax, seed_tenants
from broker.models.transitions import transitions_not_logged
from ports import clock, ids
from tenants.models import User
from tenants.services import tokens
from tenants.services.rls import tenant_scope

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
    help = "Fill an empty installation with a simulated fleet, demo tenants and their history; once only."

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        if User.objects.filter(email="mira@kestrel.example").exists():
            self.stdout.write(json.dumps({"seeded": False}))
            return
        then = (now - timedelta(days=DAYS)).replace(microsecond=0)
        seed_fleet.create_fleet(now=then)
        seed_prices.publish_list_prices(since=then, actor=seed_tenants.SEED_ACTOR, now=then)
        password = ids.random_token(12)
        hashed = make_password(password)  # once: all demo accounts have the same password
        seed_tenants.create_user("operator@gpubroker.example", "Operator", hashed, now=then, staff=True)
        kestrel = seed_tenants.create_kestrel(hashed, now=then)
        tern = seed_tenants.create_neighbour("Tern Robotics", "tern.example", hashed, now=then)
        fjord = seed_tenants.create_neighbour("Fjord Climate", "fjord.example", hashed, now=then)
        seed_tax.publish_tax_rates(now=then)
        seed_tax.set_tenant_details(kestrel, seed_tax.KESTREL_PARTY, now=then)
        seed_tax.set_tenant_details(tern, seed_tax.TERN_PARTY, now=then)
        with transitions_not_logged():
            seed_history.run_plans(
                [
                    *seed_history.kestrel_plans(kestrel, now=now, days=DAYS - 1),
                    *seed_history.kestrel_now(kestrel, now=now),
                    *seed_history.neighbour_plans(tern, now=now, seed="tern", live=38, gang=6),
                    *seed_history.neighbour_plans(fjord, now=now, seed="fjord", live=26, gang=5),
                ],
                until=now,
            )
        seed_invoices.close_and_draft(now=now)
        seed_invoices.set_budgets(kestrel, BUDGETS, now=now)
        with tenant_scope(kestrel.tenant.pk):
            _, token = tokens.issue(
                tenant=kestrel.tenant,
                name="first start",
                scopes=TOKEN_SCOPES,
                expires_at=now + timedelta(days=90),
                actor=seed_tenants.SEED_ACTOR,
                now=now,
                user_id=kestrel.actors["mira"].id,
            )
        self.stdout.write(json.dumps(self._answer(password, token, kestrel)))

    def _answer(self, password: str, token: str, kestrel: seed_tenants.DemoTenant) -> dict[str, Any]:
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
                "offering": seed_fleet.first_offering(),
                "max_duration_s": 3600,
            },
        }
