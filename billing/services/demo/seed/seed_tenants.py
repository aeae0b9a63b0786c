"""Demo tenants and users, created through the normal services."""

from dataclasses import dataclass
from datetime import datetime

from allauth.account.models import EmailAddress
from django.db import transaction

from tenants.models import Project, Quota, QuotaKind, Role, Tenant, User
from tenants.services import members, projects, tenants
from tenants.services.actors import Actor

SEED_ACTOR = Actor("staff", "", "showcase")


@dataclass(frozen=True)
class DemoTenant:
    """A demo tenant: its projects by name, its users' actors by first name."""

    tenant: Tenant
    projects: dict[str, Project]
    actors: dict[str, Actor]


def create_user(email: str, name: str, password: str, *, now: datetime, staff: bool = False) -> User:
    """Create a user with a verified address, from an already hashed password."""
    user = User.objects.create(email=email, password=password, name=name, is_staff=staff, joined_at=now)
    EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
    return user


@transaction.atomic
def create_kestrel(password: str, *, now: datetime) -> DemoTenant:
    """Create Kestrel Bio: an owner, a project admin, a member, a billing member, a viewer."""
    mira = create_user("mira@kestrel.example", "Mira", password, now=now)
    tenant, root = tenants.create(
        name="Kestrel Bio", owner=mira, actor=SEED_ACTOR, now=now, time_zone="Europe/Berlin", currency="EUR"
    )
    design = projects.create(parent=root, name="protein-design", actor=SEED_ACTOR, now=now)
    docking = projects.create(parent=root, name="docking", actor=SEED_ACTOR, now=now)
    people = {"mira": mira}
    for first, role, project in (
        ("jonas", Role.MEMBER, design),
        ("aiko", Role.ADMIN, docking),
        ("lena", Role.BILLING, None),
        ("tomas", Role.VIEWER, None),
    ):
        people[first] = create_user(f"{first}@kestrel.example", first.capitalize(), password, now=now)
        members.add(tenant=tenant, user=people[first], role=role, project=project, actor=SEED_ACTOR, now=now)
    _set_quotas(tenant, root, units=96, gpu_hours=20_000, per_hour=40)
    _set_quotas(tenant, design, units=64, gpu_hours=12_000, per_hour=32)
    return DemoTenant(
        tenant,
        {"protein-design": design, "docking": docking},
        {first: Actor("user", user.pk, user.email) for first, user in people.items()},
    )


@transaction.atomic
def create_neighbour(name: str, domain: str, password: str, *, now: datetime) -> DemoTenant:
    """Create a smaller tenant with one owner and one project."""
    owner = create_user(f"ops@{domain}", name.split()[0], password, now=now)
    tenant, root = tenants.create(name=name, owner=owner, actor=SEED_ACTOR, now=now)
    project = projects.create(parent=root, name="research", actor=SEED_ACTOR, now=now)
    _set_quotas(tenant, root, units=400, gpu_hours=300_000, per_hour=400)
    return DemoTenant(tenant, {"research": project}, {"owner": Actor("user", owner.pk, owner.email)})


def _set_quotas(tenant: Tenant, project: Project, *, units: int, gpu_hours: int, per_hour: int) -> None:
    limits = {
        QuotaKind.UNITS: units * 1000,
        QuotaKind.GPU_SECONDS: gpu_hours * 3_600_000,
        QuotaKind.BURN: per_hour * 10**9,
    }
    for kind, limit in limits.items():
        Quota.objects.update_or_create(
            tenant=tenant, project=project, kind=kind, defaults={"limit": limit, "soft_limit": limit}
        )
