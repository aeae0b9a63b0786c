"""Benchmark of operators' pages with 170,000 leases: `make bench ONLY=face_operators`.

Forty tenants have leased for two months; 2,000 leases run. Every page of operators that needs no id is requested alone,
through the whole WSGI application, as a signed-in operator's browser would.
"""

import os
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
from django.db import connection, connections, transaction
from django.test import override_settings
from django.urls import URLPattern, get_resolver

import config.wsgi  # noqa: F401  # sets Django up as a web worker has it
from bench import face
from bench.figures import Figures
from billing.services.demo.seed import seed_prices
from billing.services.invoicing import drafts
from billing.services.ledger import invariant_checks
from billing.services.rating import lease_rating
from broker.models import Gpu, Offering
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SimulatedRack
from ports import clock
from tenants.models import Tenant, User
from tenants.services import projects, tenants
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope

LISTS = {  # of the longest list: all of it, its middle, one tenant, days, words
    "leases_all": "state=all",
    "leases_page": "state=all&from={middle}",
    "leases_tenant": "state=all&tenant=Tenant+1",
    "leases_days": "state=all&since={day}",
    "leases_words": "state=all&q=no+lease+has+this+name",
}
TENANTS, OVER, LIVE, NODES = (3, 100, 10, 3) if sys.argv[1:] == ["small"] else (40, 4_200, 50, 126)
WAITING = 2  # of each tenant's live leases
MOST_MS = 200


def build() -> None:
    """Create the fleet, the prices, and the tenants with their leases and charges."""
    now = clock.now()
    with transaction.atomic():
        gpu_catalogue.load_gpu_models()
        hardware.add_simulated_racks([SimulatedRack("north-1", "eu-north", "H100-80GB", nodes=NODES)], now=now)
        gpu_catalogue.derive_offerings(now=now)
        Offering.objects.update(state="published")
        seed_prices.publish_list_prices(since=now - timedelta(days=90), actor=SYSTEM, now=now)
    gpus = list(Gpu.objects.order_by("node__name", "index").values_list("pk", flat=True))
    per_tenant = -(-LIVE // 7)
    for number in range(TENANTS):
        add_tenant(number, gpus[number * per_tenant : (number + 1) * per_tenant])
    lease_rating.rate_all_leases(now=now)
    invariant_checks.record_checks(now=now)
    for tenant in Tenant.objects.all():
        with tenant_scope(tenant.pk):
            drafts.refresh_drafts(tenant, now=now)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def add_tenant(number: int, gpus: list[str]) -> None:
    """Create one tenant, its leases that are over, and those that run on its GPUs."""
    now = clock.now()
    with transaction.atomic():
        owner = User.objects.create_user(f"owner-{number}@example.org", joined_at=now)
        tenant, root = tenants.create(
            name=f"Tenant {number}", owner=owner, actor=SYSTEM, now=now, time_zone="Europe/Berlin"
        )
        places = [projects.create(parent=root, name=f"p{n}", actor=SYSTEM, now=now).pk for n in range(4)]
    sold = Offering.objects.filter(profile="1g.10gb", price_class="on_demand")
    wanted = {
        "numbered_from": number * 1_000_000,
        "tenant": tenant.pk,
        "projects": places,
        "places": len(places),
        "offerings": [offering.pk for offering in sold],
        "kinds": len(sold),
        "over": OVER,
        "live": LIVE,
        "waiting": WAITING,
        "gpus": gpus,
        "user": owner.pk,
        "email": owner.email,
        "now": now,
    }
    with tenant_scope(tenant.pk), connection.cursor() as cursor:
        cursor.execute((face.HERE / "leases.sql").read_text(), wanted)


def operator_addresses() -> Iterator[str]:
    """Yield the address of every operators' page that needs no id and answers GET."""
    yield from _below("", get_resolver().url_patterns)


def _below(prefix: str, patterns: list[Any]) -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            if route.startswith("ops/") and "<" not in route:
                yield f"/{route}"
        elif "<" not in route:
            yield from _below(route, pattern.url_patterns)


def main() -> None:
    figures = Figures("face_operators")
    build()
    operator = User.objects.create_user("operator@example.org", joined_at=clock.now(), is_staff=True)
    with override_settings(ALLOWED_HOSTS=["testserver"], OPERATORS_REQUIRE_MFA=False):
        client = face.signed_in(operator.email)
        for address in sorted(set(operator_addresses())):
            if client.get(address).status_code == 302:
                continue  # the address of an action, which leads to its page
            p95, _ = face.timed(client, address)
            name = re.sub(r"[/-]", "_", address.removeprefix("/ops/").strip("/")) or "control_room"
            figures.report_max(f"{name}_p95", p95, unit="ms", at_most=MOST_MS)
        day = (clock.now() - timedelta(days=7)).date()
        for name, query in LISTS.items():
            p95, _ = face.timed(client, f"/ops/leases/?{query.format(middle=TENANTS * OVER // 2, day=day)}")
            figures.report_max(f"{name}_p95", p95, unit="ms", at_most=MOST_MS)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
