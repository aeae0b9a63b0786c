"""The tenants and people of a first start, made through the same services as everyone else's."""

from dataclasses import dataclass
from datetime import datetime

from allauth.account.models import EmailAddress
from django.db import transaction

from tenants.models import Project, Quota, QuotaKind, Role, Tenant, User
from tenants.services import members, projects, tenants
from tenants.services.actors import Actor

OPERATOR = Actor("staff", "", "showcase")


@dataclass(frozen=True)
class Cast:
    """One demo tenant: its projects by name and its people's actors by first name."""

    tenant: Tenant
    projects: dict[str, Project]
    actors: dict[str, Actor]


@dataclass(frozen=True)
class Account:
    """What is printed at the first start."""

    email: str
    role: str


def person(email: str, name: str, password: str, *, now: datetime, staff: bool = False) -> User:
    """Make a user whose address counts as verified, from a password that is hashed already."""
    user = User.objects.create(email=email, password=password, name=name, is_staff=staff, joined_at=now)
    EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
    return user


@transaction.atomic
def kestrel(password: str, *, now: datetime) -> Cast:
    """Kestrel Bio: an owner, an admin of one project, a member, someone for billing and a viewer."""
    mira = person("mira@kestrel.example", "Mira", password, now=now)
    tenant, root = tenants.create(
        name="Kestrel Bio", owner=mira, actor=OPERATOR, now=now, time_zone="Europe/Berlin", currency="EUR"
    )
    design = projects.create(parent=root, name="protein-design", actor=OPERATOR, now=now)
    docking = projects.create(parent=root, name="docking", actor=OPERATOR, now=now)
    people = {"mira": mira}
    for first, role, project in (
        ("jonas", Role.MEMBER, design),
        ("aiko", Role.ADMIN, docking),
        ("lena", Role.BILLING, None),
        ("tomas", Role.VIEWER, None),
    ):
        people[first] = person(f"{first}@kestrel.example", first.capitalize(), password, now=now)
        members.add(tenant=tenant, user=people[first], role=role, project=project, actor=OPERATOR, now=now)
    _ceilings(tenant, root, units=96, gpu_hours=20_000, per_hour=40)
    _ceilings(tenant, design, units=64, gpu_hours=12_000, per_hour=32)
    return Cast(
        tenant,
        {"protein-design": design, "docking": docking},
        {first: Actor("user", user.pk, user.email) for first, user in people.items()},
    )


@transaction.atomic
def neighbour(name: str, domain: str, password: str, *, now: datetime) -> Cast:
    """A smaller tenant with one owner and one project."""
    owner = person(f"ops@{domain}", name.split()[0], password, now=now)
    tenant, root = tenants.create(name=name, owner=owner, actor=OPERATOR, now=now)
    project = projects.create(parent=root, name="research", actor=OPERATOR, now=now)
    _ceilings(tenant, root, units=400, gpu_hours=300_000, per_hour=400)
    return Cast(tenant, {"research": project}, {"owner": Actor("user", owner.pk, owner.email)})


def _ceilings(tenant: Tenant, project: Project, *, units: int, gpu_hours: int, per_hour: int) -> None:
    limits = {
        QuotaKind.UNITS: units * 1000,
        QuotaKind.GPU_SECONDS: gpu_hours * 3_600_000,
        QuotaKind.BURN: per_hour * 10**9,
    }
    for kind, limit in limits.items():
        Quota.objects.update_or_create(
            tenant=tenant, project=project, kind=kind, defaults={"limit": limit, "soft_limit": limit}
        )
