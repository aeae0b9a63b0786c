"""Variables of leases and schedules are encrypted, and deleted at a lease's end."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.secrets import variable_encryption
from broker.services.secrets.variable_encryption import VariableUnreadable
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, offering, reload_lease

VALUES = {"DATABASE": "pass-of-mira", "EMPTY": ""}


@pytest.fixture
def lease(sim: Simulation, kestrel: TenantContext) -> Lease:
    return sim.create_lease(kestrel, offering(), env=VALUES)


def stored_env(lease: Lease) -> str:
    with tenant_scope(lease.tenant_id), connection.cursor() as cursor:
        cursor.execute("SELECT env::text FROM broker_lease WHERE id = %s", [lease.pk])
        return str(cursor.fetchone()[0])


def test_values_are_stored_encrypted_and_reach_the_program(lease: Lease) -> None:
    assert "pass-of-mira" not in stored_env(lease)
    assert "DATABASE" in stored_env(lease)
    with tenant_scope(lease.tenant_id):
        assert VALUES.items() <= dict(load_provision_spec(reload_lease(lease)).env).items()


def test_values_are_forgotten_when_a_lease_is_released(sim: Simulation, lease: Lease) -> None:
    sim.release_lease(lease)
    sim.run(30)
    over = reload_lease(lease)
    assert (over.state, over.env) == (LeaseState.RELEASED, dict.fromkeys(VALUES, ""))


def test_a_lease_without_its_key_is_not_started_with_wrong_values(
    sim: Simulation, kestrel: TenantContext, settings: Any
) -> None:
    waiting = sim.request_lease(kestrel, offering(), env=VALUES)
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    sim.run(60)
    ended = reload_lease(waiting)
    assert ended.active_at is None
    with tenant_scope(ended.tenant_id):
        assert not Lease.objects.filter(pk=waiting.pk, state=LeaseState.ACTIVE).exists()


def test_a_running_lease_outlives_a_lost_key(sim: Simulation, lease: Lease, settings: Any) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    sim.run(600)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_value_cannot_be_moved_to_another_lease_or_variable() -> None:
    stored = variable_encryption.encrypt_variables({"A": "one", "B": "two"}, owner_id="lse_1")
    assert variable_encryption.decrypt_variables(stored, owner_id="lse_1") == {"A": "one", "B": "two"}
    with pytest.raises(VariableUnreadable, match="value of A cannot be read: it belongs to another"):
        variable_encryption.decrypt_variables(stored, owner_id="lse_2")
    with pytest.raises(VariableUnreadable, match="value of A cannot be read"):
        variable_encryption.decrypt_variables({"A": stored["B"]}, owner_id="lse_1")


def test_values_of_before_are_read_as_they_are() -> None:
    assert variable_encryption.decrypt_variables({"A": "one"}, owner_id="lse_1") == {"A": "one"}
