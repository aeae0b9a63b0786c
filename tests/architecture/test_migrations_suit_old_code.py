"""An upgrade migrates first, and the old release runs on until the new one is ready: it must still be able to write."""

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField
from django.db.models import NOT_PROVIDED

FLOORS = ("ports", "tenants", "broker", "billing")
# These came before anything could be upgraded while it ran.
EARLIER = {"billing": "0009", "broker": "0015", "ports": "0000", "tenants": "0007"}


def test_what_the_old_release_does_not_know_of_has_a_value_without_it() -> None:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    later = [
        (app, name, operation)
        for (app, name), migration in loader.disk_migrations.items()
        if app in FLOORS and name[:4] > EARLIER[app]
        for operation in migration.operations
        if isinstance(operation, AddField)
    ]
    assert later, "nothing is looked at"
    guilty = [
        f"{app} {name}: {added.model_name}.{added.name} needs db_default, or null"
        for app, name, added in later
        if not added.field.null and added.field.db_default is NOT_PROVIDED
    ]
    assert guilty == []
