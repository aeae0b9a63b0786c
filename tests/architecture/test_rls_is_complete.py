"""Every tenant table has row-level security; no unique constraint leaks."""

from typing import Any

import pytest
from django.db import connection

from tests.architecture.samples import WITHOUT_TENANT_POLICY, tenant_models

pytestmark = pytest.mark.django_db

# Unique without a tenant, and harmless: what must be unique is random, so nobody can ask for another's.
RANDOM = {
    "id": "ids are random (ports.ids)",
    "prefix": "a token's public prefix is random",
    "digest": "the hash of a random secret",
    "lease_id": "a random id; the key of what hangs on one lease",
    "volume_id": "a random id; the key of a volume's steps",
    "charge_id": "a random id",
    "token_id": "a random id; the key of what hangs on one token",
    "grant_id": "a random id",
    "payment_id": "a random id",
    "invoice_id": "a random id",
    "credit_note_id": "a random id",
    "period_id": "a random id",
    "line_id": "a random id",
    "idem": "begins with a random id, of an invoice or of what else a transfer stands for",
    "account_id": "given out by the product one after another; each account has its balance from the start",
    "number": "given out by the product one after another, never asked for",
}

# A table that says of no row whose it is has no wall, so it must hold nothing of a tenant's own: say here what it does.
OF_NO_TENANT = {
    "people are of several tenants, and their accounts their own": {
        *(
            "tenants_user",
            "tenants_operatortoken",
            "tenants_operatoridempotencyrecord",
            "tenants_signup",
            "billing_trialcredit",
            "tenants_sshkey",
            "django_session",
            "mfa_authenticator",
            "account_emailaddress",
        ),
        *("account_emailconfirmation", "socialaccount_socialaccount", "socialaccount_socialtoken"),
    },
    "what the frameworks keep of themselves": {
        *("auth_permission", "auth_group", "auth_group_permissions", "django_content_type"),
        *("django_migrations", "socialaccount_socialapp", "cache"),
    },
    "what is for sale, and what it costs": {
        *(
            "broker_gpumodel",
            "broker_offering",
            "broker_operatortemplate",
            "billing_taxrate",
            "billing_offeringtaxcategory",
            "billing_campaign",
            "billing_exchangerate",
            "billing_journalsettings",
            "billing_journalaccount",
        ),
    },
    "the fleet, which operators and workers see": {
        *(
            "broker_cluster",
            "broker_node",
            "broker_gpu",
            "broker_inventorychange",
            "broker_clustercredential",
            "broker_imageprepull",
        ),
        *(
            "broker_clusterexamination",
            "broker_clusterwatch",
            "broker_repartition",
            "broker_repartitionlogentry",
        ),
        *("broker_relocationplan", "broker_relocationlogentry", "broker_installation", "broker_orphan"),
        *("broker_spotreclaim", "broker_promisedslot"),
        *("broker_gpuslot", "broker_samplebatch", "broker_gpusample", "broker_gpuminute", "broker_gpuhour"),
    },
    "what a cluster says of our objects in it, by the names we gave them; tenants are shown none of it": {
        *("broker_clusterobject", "broker_simulatedpod", "broker_simulatedvolume", "broker_simulatednode"),
    },
    "the books of a gateway that is only simulated": {
        *("billing_simulatedcharge", "billing_simulatedpayer", "billing_simulatedrefund"),
    },
    "where Stripe says something happened, by the names it has there; tenants are shown none of it": {
        *(
            "billing_stripeevent",
            "billing_stripereconciliationday",
            "billing_reconciledcharge",
            "billing_stripedifference",
        ),
    },
    "what operators propose and approve; what it is of a tenant stands in its shares": {
        "billing_correction",
    },
    "what banks say came in; whose it is, stands in its receipt": {
        *("billing_bankstatement", "billing_bankentry"),
    },
    "how far the product itself has got": {
        "billing_billingrun",
        "billing_invariantrun",
        "billing_invoiceseries",
        "billing_striperatelimit",
        "request_count",
        "stream_process",
    },
}

# What sees every tenant's rows and tells everybody this much of them, and never whose they are.
VIEWS = {
    "broker_occupied": {"gpu_id", "start", "size", "profile", "isolation", "mine"},
    "broker_waiting": {"lease_id", "offering_id", "quantity", "created_at", "mine"},
    "broker_placechange": {"gpu_id", "xid"},
    "billing_tenantprice": {  # with the rights of whoever asks
        *("tenant_id", "card_id", "version_id", "offering_id", "currency", "nano_per_hour", "valid", "part"),
    },
    "broker_vacated": {"gpu_id", "start", "stop", "profile", "isolation", "held_at", "released_at"},
}
# Functions with the owner's rights: authentication, and triggers that read other tenants' rows.
FUNCTIONS = {
    *("knock_with_token", "knock_with_user", "refuse_other_currency"),
    "refresh_lease_statistics",  # it reads, and returns nothing
    *("create_telemetry_partition", "drop_telemetry_partitions"),  # only the owner has partitions; whole days
    *("open_balance", "open_platform_account", "post_transfers"),  # triggers of the ledger
}


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def test_every_table_with_a_tenant_forces_row_level_security() -> None:
    bare = rows(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attname = 'tenant_id'"
        " AND NOT a.attisdropped AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
    )
    assert {str(name) for (name,) in bare} == set(WITHOUT_TENANT_POLICY)


def test_every_table_without_a_tenant_is_listed_with_a_reason() -> None:
    bare = rows(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND c.relname <> 'tenants_tenant' AND NOT EXISTS (SELECT FROM pg_attribute a"
        " WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)"
    )
    assert {str(name) for (name,) in bare} == set().union(*OF_NO_TENANT.values())


def test_only_listed_views_and_definer_functions_bypass_rls() -> None:
    values: dict[str, set[str]] = {}
    for view, column in rows(
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('v', 'm') AND c.relname LIKE '%\\_%'"
        " AND c.relname NOT LIKE 'pg\\_%'"
    ):
        values.setdefault(str(view), set()).add(str(column))
    assert values == VIEWS
    found = rows("SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace")
    assert {str(name) for (name,) in found} == FUNCTIONS


def test_every_tenant_table_has_a_policy_for_reading_and_writing() -> None:
    found = {
        str(table)
        for (table,) in rows(
            "SELECT tablename FROM pg_policies WHERE policyname = 'tenant_wall' AND cmd = 'ALL'"
            " AND qual LIKE '%app.tenant%' AND with_check LIKE '%app.tenant%'"
        )
    }
    assert {model._meta.db_table for model in tenant_models()} - found == set()


def test_only_staff_system_and_auth_roles_have_unrestricted_policies() -> None:
    wide = rows(
        "SELECT tablename, policyname, roles::text[] FROM pg_policies WHERE schemaname = 'public' AND qual = 'true'"
    )
    allowed = {"gpubroker_staff", "gpubroker_system", "gpubroker_auth"}
    for table, policy, roles in wide:
        names = set(roles)
        assert names <= allowed, f"{policy} on {table} is open to {names - allowed}"


def test_every_unique_index_names_the_tenant_or_something_random() -> None:
    tables = {model._meta.db_table for model in tenant_models()}
    found = rows(
        "SELECT c.relname, i.relname, array_agg(a.attname::text) FROM pg_index x"
        " JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(x.indkey)"
        " WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace GROUP BY 1, 2"
    )
    telling = [
        f"{table}.{index}({', '.join(columns)})"
        for table, index, columns in found
        if table in tables and not set(columns) & {"tenant_id", *RANDOM}
    ]
    assert telling == []


def test_the_login_role_of_the_web_process_has_no_special_rights() -> None:
    ((login, superuser, bypass, owns),) = rows(
        "SELECT current_user, r.rolsuper, r.rolbypassrls,"
        " (SELECT count(*) FROM pg_class c WHERE c.relowner = r.oid AND c.relkind = 'r')"
        " FROM pg_roles r WHERE r.rolname = current_user"
    )
    assert (login, superuser, bypass, owns) == ("gpubroker_web", False, False, 0)


def test_other_roles_of_the_product_have_no_special_rights() -> None:
    # The administrator of a server of our own makes the roles, and nothing of the product ever logs in as it.
    special = rows(
        "SELECT rolname FROM pg_roles WHERE rolname LIKE 'gpubroker\\_%' AND rolname <> 'gpubroker_admin'"
        " AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolreplication)"
    )
    owning = rows(
        "SELECT DISTINCT r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
    )
    owners = rows(
        "SELECT rolname FROM pg_roles WHERE rolname IN ('gpubroker_web', 'gpubroker_worker')"
        " AND pg_has_role(oid, 'gpubroker_owner', 'MEMBER')"
    )
    assert (special, owning, owners) == ([], [("gpubroker_owner",)], [])


def test_roles_with_more_rights_are_not_inherited() -> None:
    inherited = rows(
        "SELECT r.rolname FROM pg_roles r WHERE r.rolname LIKE 'gpubroker_%' AND r.rolname <> current_user"
        " AND pg_has_role(current_user, r.oid, 'USAGE')"
    )
    assert inherited == []


# Of whom, on which table, which of these verbs; information_schema would show a login only its own.
RIGHTS = (
    "SELECT r.rolname, t.tablename, verb FROM pg_roles r, pg_tables t, unnest(ARRAY[{verbs}]) AS verb"
    " WHERE r.rolname IN ({roles}) AND t.schemaname = 'public'"
    " AND has_table_privilege(r.oid, format('public.%I', t.tablename), verb)"
)
READERS = "'gpubroker_staff', 'gpubroker_auth'"


def test_roles_with_more_rights_can_only_read() -> None:
    assert rows(RIGHTS.format(verbs="'SELECT'", roles=READERS)) != []
    assert rows(RIGHTS.format(verbs="'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'", roles=READERS)) == []
