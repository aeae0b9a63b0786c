"""Who made what was there before it was kept: filled in from the audit trail, tenant by tenant."""

from importlib import import_module

from django.db import connections

from tenants.domain.roles import Role
from tenants.models import ApiToken, ServiceAccount
from tenants.services import service_accounts, walls
from tenants.services.actors import Actor
from tests.tenants import people
from tests.tenants.people import ALL, moment

FILL = import_module("tenants.migrations.0008_makers").FILL


def test_who_made_what_is_told_of_all_tenants_by_their_audit_trails(own_database: object) -> None:
    worlds = [people.make(name) for name in ("Delta", "Echo")]
    for world in worlds:
        world.token()
        with walls.as_tenant(world.tenant.pk):
            asked = {"tenant": world.tenant, "project": None, "grants": ALL, "now": moment()}
            actor = Actor("user", world.owner.pk, world.owner.email)
            service_accounts.create(name="robot", role=Role.VIEWER, actor=actor, **asked)
            for model in (ServiceAccount, ApiToken):
                model.objects.update(made_by="", made_by_label="")
    with connections["owner"].cursor() as cursor:
        cursor.execute(FILL)
    for world in worlds:
        with walls.as_tenant(world.tenant.pk):
            robot, token = ServiceAccount.objects.get(), ApiToken.objects.get()
        assert (robot.made_by, robot.made_by_label) == (world.owner.pk, world.owner.email)
        assert (token.made_by, token.made_by_label) == ("", "broker")
