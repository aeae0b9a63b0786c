"""Try to change append-only tables with every login: `make attacks`.

Each login updates, deletes from and truncates each append-only table, on a throwaway server with the data of a month.
Then a superuser, whom nothing stops, changes the ledger, and the verification of the seals must report it.
Exits with 1 if any attack succeeded or was not reported.
"""

import sys
from contextlib import closing
from io import StringIO
from os import environ

import psycopg
from psycopg import sql

from deploy.embedded import roles
from deploy.embedded.roles import DATABASE, LOGINS, OWNER, WORKER, Server
from deploy.embedded.scratch import EMPTY_DATABASE, scratch

ASSUMED = ("gpubroker_staff", "gpubroker_system", "gpubroker_auth")  # what the product's logins may become
GUARDED = """
SELECT c.relname, a.attname
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
 WHERE t.tgname = 'append_only' ORDER BY 1
"""
ATTACKS = {
    "UPDATE": "UPDATE {table} SET {column} = {column}",
    "DELETE": "DELETE FROM {table}",
    "TRUNCATE": "TRUNCATE {table} CASCADE",
}
# What the product promises at least, whatever else is guarded as well.
PROMISED = {
    "broker_transition",
    "billing_ratedcharge",
    "billing_ledgertransfer",
    "billing_ledgerseal",
    "billing_creditnote",
    "billing_creditnoteline",
    "tenants_auditevent",
}
BY_SUPERUSER = {
    "a transfer is made larger": "UPDATE billing_ledgertransfer SET minor = minor + 1 WHERE id = {one}",
    "a transfer is dated back": "UPDATE billing_ledgertransfer SET at = at - interval '1 day' WHERE id = {one}",
    "a transfer is removed": "DELETE FROM billing_ledgertransfer WHERE id = {one}",
    "a seal is removed": "DELETE FROM billing_ledgerseal WHERE n = 1",
    "a seal is rewritten": "UPDATE billing_ledgerseal SET hash = sha256(hash) WHERE n = 1",
}
DONE = "DONE"
Connection = psycopg.Connection[tuple[object, ...]]


def main() -> int:
    with scratch() as ready:
        server = ready.product.server
        environ.update(ready.product.env(WORKER) | {"GPUBROKER_LOG_LEVEL": "ERROR"})
        environ["GPUBROKER_OWNER_DATABASE_URL"] = server.login(OWNER, DATABASE)
        roles.clone_database(server, DATABASE, template=EMPTY_DATABASE)
        _live_a_month()
        through = _attack_all(server)
        unnoticed = _edit_all(server)
    print(f"\n{through} attacks got through, {unnoticed} edits of a superuser were not noticed")
    return 1 if through or unnoticed else 0


def _live_a_month() -> None:
    import django

    django.setup()
    from django.db import connections

    from billing.services.ledger import ledger_seal
    from ports import clock
    from tests.billing.crashes.crash_month import create_month
    from tests.billing.crashes.trial import invoice_run

    create_month()
    invoice_run()
    ledger_seal.seal_ledger(now=clock.now() + ledger_seal.SEAL_DELAY * 2)
    for alias in connections:
        connections[alias].close()


def _attack_all(server: Server) -> int:
    """Return how many attacks succeeded, and how many tables lack a guard."""
    with closing(server.as_administrator(DATABASE)) as administrator:
        tables = {str(name): str(column) for name, column in administrator.execute(GUARDED)}
        held = {name: _held(administrator, name) for name in tables}
    logins = (*LOGINS, *ASSUMED)
    print(f"{'table':26} {'rows':>5}" + "".join(f"{login.removeprefix('gpubroker_'):>12}" for login in logins))
    through = 0
    for name, (rows, tenant) in held.items():
        reported = []
        for login in logins:
            found = [_attack(server, login, tenant, attack, name, tables[name]) for attack in ATTACKS]
            reported.append(" ".join("-" if each == DONE and not rows else each for each in found))
            through += sum(each == DONE and (rows > 0 or login != OWNER) for each in found)
        print(f"{name:26} {rows:5}" + "".join(f"{each:>12}" for each in reported))
    print("UPDATE, DELETE, TRUNCATE: no = no right to it, tr = a trigger refuses it, - = no row there to try it on")
    for name in sorted(PROMISED.difference(tables)):
        print(f"{name} is not guarded at all")
    return through + len(PROMISED.difference(tables))


def _held(administrator: Connection, table: str) -> tuple[int, str]:
    """Return the number of rows of a table, and a tenant that owns some."""
    counted = sql.SQL("SELECT count(*), coalesce(max(to_jsonb(t)->>'tenant_id'), '') FROM {} t").format(
        sql.Identifier(table)
    )
    found = administrator.execute(counted).fetchone()
    return (int(str(found[0])), str(found[1])) if found else (0, "")


def _attack(server: Server, login: str, tenant: str, attack: str, table: str, column: str) -> str:
    """Return what refuses an attack: `no` right, `tr` trigger, or DONE."""
    attacking = sql.SQL(ATTACKS[attack]).format(table=sql.Identifier(table), column=sql.Identifier(column))
    as_whom = login if login in LOGINS else WORKER
    with closing(psycopg.connect(server.login(as_whom, DATABASE))) as connection:
        connection.execute("SELECT set_config('app.tenant', %s, false)", [tenant])
        if login != as_whom:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(login)))
        try:
            connection.execute(attacking)
        except psycopg.errors.InsufficientPrivilege:
            return "no"
        except psycopg.DatabaseError as error:
            if "append-only" not in str(error):
                raise
            return "tr"
        return DONE


def _edit_all(server: Server) -> int:
    """Change the ledger as a superuser without triggers, in copies."""
    from django.core.management import CommandError, call_command

    from billing.services.ledger import ledger_seal
    from ports import clock
    from tests.database import pointed_at

    unnoticed = 0
    print()
    for n, (what, edit) in enumerate(BY_SUPERUSER.items()):
        copy = f"{DATABASE}_{n}"
        roles.clone_database(server, copy, template=DATABASE)
        with closing(server.as_administrator(copy)) as superuser:
            superuser.execute("SET session_replication_role = replica")
            one = superuser.execute("SELECT min(id) FROM billing_ledgertransfer").fetchone()
            superuser.execute(edit.format(one=one[0] if one else 0))
        # A seal that nobody misses at once is missed when what it sealed is a day old.
        with pointed_at(copy), clock.frozen_at(clock.now() + 2 * ledger_seal.MAX_UNSEALED_AGE):
            try:
                call_command("verify_ledger", stdout=StringIO())
                said, unnoticed = "NOT NOTICED", unnoticed + 1
            except CommandError as wrong:
                said = str(wrong).splitlines()[1].strip()  # the first of what is wrong
        print(f"a superuser: {what:30} {said[:100]}")
        roles.drop_database(server, copy)
    return unnoticed


if __name__ == "__main__":
    sys.exit(main())
