"""Benchmark of the portal with 10,000 leases of which 2,000 are live.

Usage: `python -m bench.face`, on a migrated, empty database. Every page is requested through the whole
WSGI application, as a signed-in person's browser would.
"""

import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from statistics import quantiles
from time import perf_counter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
from django.conf import settings
from django.db import connection, connections, transaction
from django.test import Client, override_settings

import config.wsgi  # noqa: F401  # sets Django up as a web worker has it
from bench.figures import Figures
from billing.models import Invoice
from billing.services.demo.seed import seed_prices
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from broker.models import Gpu, Lease, Offering
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SimulatedRack
from ports import clock
from tenants.domain.roles import Role
from tenants.models import Project, Tenant, User
from tenants.services import members, projects, tenants
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope

HERE = Path(__file__).parent
SMALL = sys.argv[1:] == ["small"]
OVER, LIVE, WAITING = (80, 20, 2) if SMALL else (8_000, 2_000, 100)
NODES = 2 if SMALL else 36  # of eight GPUs: seven slices each hold what runs, and a few GPUs stay free
MORE_NODES = 2 if SMALL else 90  # with them 1,008 GPUs, for the operators' map
ROUNDS, WARM_UP = (3, 1) if SMALL else (30, 3)
MOST_MS, MOST_BYTES = 200, 100_000
MORE_PROJECTS, MORE_PEOPLE = 50, 60  # beside those in which leases run, and the owner
OPERATIONS = {
    "control_room": "/ops/",
    "control_room_by_tenant": "/ops/?by=tenant",
    "fleet_map": "/ops/fleet-map/",
    "gpus": "/ops/gpus/",
    "clusters": "/ops/clusters/",
    "queue_of_all": "/ops/queue/",
    "offerings": "/ops/offerings/",
    "tenants": "/ops/tenants/",
    "system": "/ops/system/",
}


def build() -> Tenant:
    """Create the fleet, the prices and the tenant with its leases and charges."""
    now = clock.now()
    with transaction.atomic():
        gpu_catalogue.load_gpu_models()
        hardware.add_simulated_racks([SimulatedRack("north-1", "eu-north", "H100-80GB", nodes=NODES)], now=now)
        gpu_catalogue.derive_offerings(now=now)
        Offering.objects.update(state="published")
        seed_prices.publish_list_prices(since=now - timedelta(days=90), actor=SYSTEM, now=now)
        owner = User.objects.create_user("bench@example.org", joined_at=now)
        tenant, root = tenants.create(name="Bench", owner=owner, actor=SYSTEM, now=now, time_zone="Europe/Berlin")
        places = [projects.create(parent=root, name=f"p{n}", actor=SYSTEM, now=now).pk for n in range(8)]
        join(tenant, root, now)
    sold = Offering.objects.filter(profile="1g.10gb", price_class="on_demand")
    wanted = {
        "tenant": tenant.pk,
        "projects": places,
        "places": len(places),
        "offerings": [offering.pk for offering in sold],
        "kinds": len(sold),
        "numbered_from": 0,
        "over": OVER,
        "live": LIVE,
        "waiting": WAITING,
        "gpus": list(Gpu.objects.order_by("node__name", "index").values_list("pk", flat=True)),
        "user": owner.pk,
        "email": owner.email,
        "now": now,
    }
    with tenant_scope(tenant.pk), connection.cursor() as cursor:
        cursor.execute((HERE / "leases.sql").read_text(), wanted)
    lease_rating.rate_all_leases(now=now)
    with tenant_scope(tenant.pk):
        drafts.refresh_drafts(tenant, now=now)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return tenant


def join(tenant: Tenant, root: Project, now: datetime) -> None:
    """Add members to the tenant, and more projects than one page shows."""
    for number in range(MORE_PROJECTS):
        projects.create(parent=root, name=f"more {number}", actor=SYSTEM, now=now)
    with tenant_scope(tenant.pk):
        for number in range(MORE_PEOPLE):
            user = User.objects.create_user(f"person-{number}@example.org", joined_at=now)
            members.add(tenant=tenant, user=user, role=Role.MEMBER, project=None, actor=SYSTEM, now=now)


def pages(tenant: Tenant) -> dict[str, str]:
    """Return the URL of every page, by name."""
    with tenant_scope(tenant.pk):
        active = Lease.objects.filter(state="active").order_by("pk")[0].pk
        invoice = Invoice.objects.order_by("-pk")[0].pk
    return {
        "home": "/",
        "catalogue": "/catalogue/",
        "launch": "/launch/",
        "leases": "/leases/",
        "leases_all": "/leases/?state=all",
        "lease": f"/leases/{active}/",
        "queue": "/queue/",
        "spend": "/spend/",
        "spend_months": "/spend/?by=month&group=project",
        "invoices": "/invoices/",
        "invoice": f"/invoices/{invoice}/",
        "explained": f"/invoices/{invoice}/?line=1",
        "projects": "/projects/",
        "team": "/team/",
        "tokens": "/tokens/",
        "volumes": "/volumes/",
        "audit": "/audit/",
        "account": "/account/",
    }


def operations() -> Client:
    """Grow the fleet to 1,008 GPUs; return the client of an operator."""
    now = clock.now()
    hardware.add_simulated_racks([SimulatedRack("west-2", "eu-west", "H100-80GB", nodes=MORE_NODES)], now=now)
    operator = User.objects.create_user("operator@example.org", joined_at=now, is_staff=True)
    return signed_in(operator.email)


def signed_in(email: str) -> Client:
    """Return a user's signed-in client."""
    client = Client()
    client.force_login(User.objects.get(email=email), backend=settings.AUTHENTICATION_BACKENDS[0])
    return client


def timed(client: Client, address: str) -> tuple[float, int]:
    """Return the p95 response time in ms and the page's uncompressed bytes."""
    took: list[float] = []
    for n in range(ROUNDS + WARM_UP):
        begun = perf_counter()
        answer = client.get(address)
        passed = perf_counter() - begun
        if answer.status_code != 200:
            raise RuntimeError(f"{address} answered {answer.status_code}")
        if n >= WARM_UP:
            took.append(passed * 1000)
    return quantiles(took, n=20)[-1], len(answer.content)


def first_load(client: Client) -> int:
    """Return the compressed bytes of the home page for an empty browser cache."""
    seen: set[str] = set()

    def get(address: str) -> tuple[int, str]:
        answer = client.get(address, headers={"Accept-Encoding": "gzip"})
        body = b"".join(answer) if answer.streaming else answer.content
        plain = client.get(address)
        text = b"".join(plain) if plain.streaming else plain.content
        return len(body), text.decode("utf-8", "replace")

    size, page = get("/")
    for address in linked(page):
        if address not in seen:
            seen.add(address)
            more, text = get(address)
            size += more
            for font in re.findall(r'url\("\.\./(vendor/[^"]+)"\)', text) if address.endswith(".css") else ():
                if f"/static/{font}" not in seen and "mono" not in font:
                    seen.add(f"/static/{font}")
                    size += get(f"/static/{font}")[0]
    return size


def linked(page: str) -> Iterator[str]:
    """Yield the URLs that the page loads, and its icons."""
    yield from re.findall(r'(?:src|href)="(/static/[^"#]+)', page)


def main() -> None:
    figures = Figures("face")
    tenant = build()
    client = signed_in("bench@example.org")
    with override_settings(ALLOWED_HOSTS=["testserver"], OPERATORS_REQUIRE_MFA=False):
        for name, address in pages(tenant).items():
            p95, size = timed(client, address)
            figures.report_max(f"{name}_ttfb_p95", p95, unit="ms", at_most=MOST_MS)
            figures.report_max(f"{name}_bytes", size, unit="B", at_most=MOST_BYTES)
        figures.report_max("first_load", first_load(client), unit="B", at_most=MOST_BYTES)
        operator = operations()
        for name, address in OPERATIONS.items():
            p95, size = timed(operator, address)
            figures.report_max(f"{name}_ttfb_p95", p95, unit="ms", at_most=MOST_MS)
            figures.report_max(f"{name}_bytes", size, unit="B", at_most=MOST_BYTES)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
