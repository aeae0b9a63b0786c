"""Variables of saved templates are encrypted at rest, also in what leases keep of them."""

from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection

from broker.models import LaunchTemplate, Lease
from broker.services.launch_templates.template_choice import launchable_templates
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import change_template, save_template
from tests.simulation import Simulation, TenantContext, create_fleet, create_tenant, offering, reload_lease

VALUE = "a-value-of-a-tenant"


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_fleet()
    return create_tenant("Kestrel")


def stored(owner: TenantContext) -> str:
    """Return every stored row of templates and leases, as who reads the database sees it."""
    with tenant_scope(owner.tenant.pk), connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM broker_launchtemplate t UNION ALL SELECT l::text FROM broker_lease l")
        return "\n".join(text for (text,) in cursor.fetchall())


def variables_of(lease: Lease) -> dict[str, str]:
    """Return the variables of its template that a lease is started with."""
    with tenant_scope(lease.tenant_id):
        template = load_provision_spec(reload_lease(lease)).template
    assert template is not None
    return dict(template.env)


def test_values_are_encrypted_in_a_template_and_in_its_leases(sim: Simulation, kestrel: TenantContext) -> None:
    saved = save_template(kestrel, env={"MODE": VALUE})
    lease = sim.create_lease(kestrel, offering(), template_id=saved.pk)
    assert VALUE not in stored(kestrel)
    assert variables_of(lease) == {"MODE": VALUE}
    with tenant_scope(kestrel.tenant.pk):
        assert LaunchTemplate.objects.get().env == {"MODE": VALUE}


def test_a_released_lease_keeps_the_names_only(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), template_id=save_template(kestrel, env={"MODE": VALUE}).pk)
    sim.release_lease(lease)
    sim.run(60)
    ended = reload_lease(lease)
    assert (ended.state, ended.template_env) == ("released", {"MODE": ""})


def test_templates_and_their_leases_are_read_after_the_key_was_replaced(
    sim: Simulation, kestrel: TenantContext, settings: Any
) -> None:
    saved = save_template(kestrel, env={"MODE": VALUE})
    lease = sim.create_lease(kestrel, offering(), template_id=saved.pk)
    newest = Fernet.generate_key().decode()
    settings.CREDENTIAL_ENCRYPTION_KEYS = f"{newest},{settings.CREDENTIAL_ENCRYPTION_KEYS}"
    call_command("reencrypt_secrets", stdout=(printed := StringIO()))
    assert "1 templates" in printed.getvalue()
    settings.CREDENTIAL_ENCRYPTION_KEYS = newest
    assert variables_of(lease) == {"MODE": VALUE}
    assert variables_of(sim.create_lease(kestrel, offering(), template_id=saved.pk)) == {"MODE": VALUE}


def test_without_its_key_a_template_is_listed_and_not_launched(
    sim: Simulation, kestrel: TenantContext, settings: Any
) -> None:
    saved = save_template(kestrel, env={"MODE": VALUE})
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    with tenant_scope(kestrel.tenant.pk):
        assert [each.pk for each in launchable_templates(kestrel.project)] == [saved.pk]
    with pytest.raises(InvalidValue, match="cannot be read"):
        sim.create_lease(kestrel, offering(), template_id=saved.pk)
    with pytest.raises(InvalidValue, match="cannot be read"):
        change_template(kestrel, saved, name="Other")
    change_template(kestrel, saved, env={"MODE": "new"})
    assert variables_of(sim.create_lease(kestrel, offering(), template_id=saved.pk)) == {"MODE": "new"}
