"""The squashed migrations create the schema that the migrations before them created."""

from collections import Counter
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.database import OwnDatabase
from tests.schema.statements import apply_changes, comparable, describe, parse, parse_changes

HERE = Path(__file__).parent
STORED = parse((HERE / "schema_before_squash.sql").read_text())
CHANGES = parse_changes((HERE / "renamed.tsv").read_text())


def described(database: OwnDatabase) -> Counter[str]:
    with database.server.as_administrator(database.name) as connection:
        return Counter(comparable(describe(connection)))


def differences(before: Counter[str], after: Counter[str]) -> dict[str, list[str]]:
    return {"missing": sorted((before - after).elements()), "unexpected": sorted((after - before).elements())}


SQUASHED = "0002_database_rules"  # later migrations change the schema on purpose
NONE: dict[str, list[str]] = {"missing": [], "unexpected": []}


@pytest.mark.deep
def test_the_schema_equals_the_one_before_the_squash(own_database: OwnDatabase) -> None:
    for app in ("broker", "billing", "tenants"):
        call_command("migrate", app, SQUASHED, database="owner", interactive=False, verbosity=0)
    wanted = Counter(comparable(apply_changes(STORED, CHANGES)))
    assert wanted.total() > 3000
    assert differences(wanted, described(own_database)) == NONE


def test_every_listed_change_is_of_a_stored_statement() -> None:
    assert [each for each in CHANGES if not any(map(each.concerns, STORED))] == []


@pytest.mark.deep
def test_the_database_rules_are_removed_and_applied_again(own_database: OwnDatabase) -> None:
    before = described(own_database)
    call_command("migrate", "tenants", "0001", database="owner", interactive=False, verbosity=0)
    between = described(own_database)
    assert not [each for each in between if each.startswith(("CREATE POLICY", "CREATE TRIGGER", "CREATE OR REPLACE"))]
    call_command("migrate", database="owner", interactive=False, verbosity=0)
    assert differences(before, described(own_database)) == NONE
