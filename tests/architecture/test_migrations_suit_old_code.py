"""The old release can still write after the migrations of the new one."""

from collections.abc import Iterable

from django.db import models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField
from django.db.models import NOT_PROVIDED

FLOORS = ("ports", "tenants", "broker", "billing")
INITIAL = ("0001", "0002")  # no older release runs beside these


def unwritable(migrations: Iterable[Migration]) -> list[str]:
    """Return new columns without a default, which the old release cannot fill."""
    return [
        f"{each.app_label} {each.name}: {added.model_name}.{added.name} needs db_default, or null"
        for each in migrations
        if each.app_label in FLOORS and each.name[:4] not in INITIAL
        for added in each.operations
        if isinstance(added, AddField) and not added.field.null and added.field.db_default is NOT_PROVIDED
    ]


def test_columns_unknown_to_the_previous_release_have_defaults() -> None:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    assert {app for app, _ in loader.disk_migrations} >= set(FLOORS)
    assert unwritable(loader.disk_migrations.values()) == []


def test_a_column_without_a_value_is_found() -> None:
    class Later(Migration):
        operations = [
            AddField("lease", "bare", models.CharField(max_length=9, default="")),
            AddField("lease", "filled", models.CharField(max_length=9, default="", db_default="")),
            AddField("lease", "unknown", models.DateTimeField(null=True)),
        ]

    later = Later("0003_later", "broker")
    assert unwritable([later]) == ["broker 0003_later: lease.bare needs db_default, or null"]
