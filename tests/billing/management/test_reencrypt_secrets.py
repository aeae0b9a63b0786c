"""The command reencrypt_secrets: old keys can be removed afterwards."""

import json
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from broker.models import Cluster, ClusterCredential, Lease
from broker.services.leases.provision_specs import load_provision_spec
from ports import crypto
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import VALUE, save_secret
from tests.simulation import NOW, Simulation, create_fleet, create_tenant, offering, reload_lease


def test_secrets_and_credentials_are_readable_without_the_old_key(sim: Simulation, settings: LazySettings) -> None:
    create_fleet()
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    secrets = {"TOKEN": save_secret(kestrel).pk}
    lease = sim.create_lease(kestrel, offering(), secrets=secrets, env={"PLAIN": "plain-value"})
    before = sim.create_lease(kestrel, offering(), env={"PLAIN": "plain-value"})
    with tenant_scope(kestrel.tenant.pk):  # as it was stored before values were encrypted
        Lease.objects.filter(pk=before.pk).update(env={"PLAIN": "plain-value"})
    save_secret(swift)
    sealed = crypto.encrypt(json.dumps({"kind": "Config"}).encode())
    ClusterCredential.objects.create(cluster=Cluster.objects.get(), sealed=sealed, updated_at=NOW)
    newest = Fernet.generate_key().decode()
    settings.CREDENTIAL_ENCRYPTION_KEYS = f"{newest},{settings.CREDENTIAL_ENCRYPTION_KEYS}"
    printed = StringIO()
    call_command("reencrypt_secrets", stdout=printed)
    assert "1 cluster credentials, 2 values of secrets, variables of 2 leases and schedules" in printed.getvalue()
    settings.CREDENTIAL_ENCRYPTION_KEYS = newest
    assert b"Config" in crypto.decrypt(bytes(ClusterCredential.objects.get().sealed))
    with tenant_scope(kestrel.tenant.pk):
        assert load_provision_spec(reload_lease(lease), with_secrets=True).secrets[0].value == VALUE
        for each in (lease, before):
            assert ("PLAIN", "plain-value") in load_provision_spec(reload_lease(each)).env
            assert "plain-value" not in str(reload_lease(each).env)


def test_a_missing_old_key_is_reported_and_changes_nothing(sim: Simulation, settings: LazySettings) -> None:
    save_secret(create_tenant("Kestrel"))
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    with pytest.raises(CommandError, match="can decrypt the stored credentials"):
        call_command("reencrypt_secrets", stdout=StringIO())
