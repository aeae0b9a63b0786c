"""Create a fleet and a tenant with a token: `python -m tests.chaos.world <nodes>`."""

import json
import os
import sys
from datetime import datetime, timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import transaction  # noqa: E402

from billing.services.demo.seed import seed_prices  # noqa: E402
from broker.models import Offering, OfferingState  # noqa: E402
from broker.services.inventory import gpu_catalogue, hardware  # noqa: E402
from broker.services.inventory.hardware import SimulatedRack  # noqa: E402
from ports import clock  # noqa: E402
from tenants.domain.roles import Role  # noqa: E402
from tenants.models import Project, Quota, QuotaKind, ServiceAccount, Tenant  # noqa: E402
from tenants.services import projects, tenants, tokens  # noqa: E402
from tenants.services.actors import Actor  # noqa: E402
from tenants.services.rls import tenant_scope  # noqa: E402

OPERATOR = Actor("staff", "", "chaos")
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb", "whole-gpu")


def fleet(nodes: int, *, now: datetime) -> dict[str, str]:
    """Add racks and publish on-demand offerings; return the offering of each profile."""
    gpu_catalogue.load_gpu_models()
    hardware.add_simulated_racks([SimulatedRack("north-1", "eu-north", "H100-80GB", nodes=nodes)], now=now)
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
    seed_prices.publish_list_prices(since=now - timedelta(hours=1), actor=OPERATOR, now=now)
    sold = Offering.objects.published().filter(price_class="on_demand", profile__in=PROFILES)
    return dict(sold.values_list("profile", "id"))


def ceiling(tenant: Tenant, project: Project) -> None:
    """Set a quota far above what the project uses."""
    for kind, limit in ((QuotaKind.UNITS, 10**7), (QuotaKind.GPU_SECONDS, 10**13)):
        Quota.objects.update_or_create(
            tenant=tenant, project=project, kind=kind, defaults={"limit": limit, "soft_limit": limit}
        )


@transaction.atomic
def tenant_with_token(*, now: datetime) -> dict[str, str]:
    """Create a tenant, a project, quotas on both, and a service account token."""
    tenant, root = tenants.create(name="Kestrel Bio", owner=None, actor=OPERATOR, now=now, currency="EUR")
    project = projects.create(parent=root, name="docking", actor=OPERATOR, now=now)
    for node in (root, project):
        ceiling(tenant, node)
    with tenant_scope(tenant.pk):
        machine = ServiceAccount.objects.create(tenant=tenant, name="machine", role=Role.MEMBER, created_at=now)
        _, text = tokens.issue(
            tenant=tenant,
            name="chaos",
            scopes=("leases:write", "offerings:read", "projects:read", "quotas:read"),
            expires_at=now + timedelta(days=1),
            actor=OPERATOR,
            now=now,
            service_account=machine,
        )
    return {"project": project.pk, "token": text}


if __name__ == "__main__":
    now = clock.now()
    offerings = fleet(int(sys.argv[1]), now=now)
    print(json.dumps({"offerings": offerings, **tenant_with_token(now=now)}))
