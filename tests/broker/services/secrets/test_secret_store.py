"""Saved secrets: created, replaced and deleted; what is refused; the audit log."""

import pytest
from django.conf import LazySettings
from django.db import DatabaseError, transaction

from broker.domain.lifecycle.states import LeaseState
from broker.domain.workloads.secret_variables import MAX_VALUE_BYTES
from broker.models import Secret, SecretVersion
from broker.services.secrets import secret_store
from broker.services.secrets.secret_errors import NoEncryptionKey, SecretInUse, SecretNameTaken, TooManySecrets
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.broker.services.secrets.saved_secrets import (
    VALUE,
    delete_secret,
    replace_value,
    save_secret,
    stored_versions,
)
from tests.simulation import Simulation, TenantContext, create_tenant, offering


def test_a_secret_is_stored_encrypted_with_its_version(kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        stored = SecretVersion.objects.get(secret=secret)
    assert (secret.version, stored.version, stored.size_bytes) == (1, 1, len(VALUE))
    assert VALUE.encode() not in bytes(stored.sealed)


def test_each_change_is_audited_without_the_value(kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    delete_secret(kestrel, replace_value(kestrel, secret, "another-value"))
    with tenant_scope(kestrel.tenant.pk):
        events = list(AuditEvent.objects.filter(subject_id=secret.pk).order_by("id"))
    assert [(each.action, each.subject_label, each.detail["version"]) for each in events] == [
        ("secret.create", "HF_TOKEN", 1),
        ("secret.replace", "HF_TOKEN", 2),
        ("secret.delete", "HF_TOKEN", 2),
    ]
    assert not any(value in str(each.detail) for each in events for value in (VALUE, "another-value"))


def test_replacing_an_unused_secret_deletes_its_old_value(kestrel: TenantContext) -> None:
    secret = replace_value(kestrel, save_secret(kestrel), "new")
    assert (secret.version, secret.updated_by_label) == (2, kestrel.actor.label)
    assert stored_versions(kestrel, secret) == [2]


def test_an_old_value_is_kept_while_a_lease_uses_it(sim: Simulation, kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    lease = sim.create_lease(kestrel, offering(), secrets={"HF_TOKEN": secret.pk})
    replace_value(kestrel, replace_value(kestrel, secret, "second"), "third")
    assert stored_versions(kestrel, secret) == [1, 3]
    sim.release_lease(lease)
    sim.run(60)
    assert stored_versions(kestrel, secret) == [3]


def test_a_used_secret_cannot_be_deleted_until_its_lease_is_over(sim: Simulation, kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    lease = sim.create_lease(kestrel, offering(), LeaseState.ACTIVE, secrets={"TOKEN": secret.pk}, name="train")
    with pytest.raises(SecretInUse, match="train, which is active, uses HF_TOKEN"):
        delete_secret(kestrel, secret)
    sim.release_lease(lease)
    sim.run(60)
    delete_secret(kestrel, secret)
    with tenant_scope(kestrel.tenant.pk):
        assert not Secret.objects.exists()
        assert not SecretVersion.objects.exists()


def test_a_secret_that_was_deleted_meanwhile_cannot_be_changed(kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    delete_secret(kestrel, secret)
    with pytest.raises(ObjectNotFound):
        replace_value(kestrel, secret, "new")
    with pytest.raises(ObjectNotFound):
        delete_secret(kestrel, secret)


def test_a_name_is_unique_in_its_project(kestrel: TenantContext) -> None:
    save_secret(kestrel)
    save_secret(kestrel, project=kestrel.create_project("team"))
    with pytest.raises(SecretNameTaken):
        save_secret(kestrel)


def test_a_project_has_a_limited_number_of_secrets(kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_store, "MAX_SECRETS", 1)
    save_secret(kestrel, "A")
    with pytest.raises(TooManySecrets):
        save_secret(kestrel, "B")


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [("hf_plain", "x", "name"), ("A", "", "value"), ("A", "x" * (MAX_VALUE_BYTES + 1), "value")],
)
def test_invalid_names_and_values_are_refused_without_repeating_them(
    kestrel: TenantContext, name: str, value: str, field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        save_secret(kestrel, name, value)
    assert refused.value.field == field
    assert "hf_plain" not in f"{refused.value.detail} {refused.value.extra}"


def test_nothing_is_stored_without_an_encryption_key(kestrel: TenantContext, settings: LazySettings) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    with pytest.raises(NoEncryptionKey):
        save_secret(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        assert not Secret.objects.exists()


def test_only_the_tenants_own_transactions_read_encrypted_values(kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    with tenant_scope(create_tenant("Swift").tenant.pk):
        assert not Secret.objects.exists()
        assert not SecretVersion.objects.exists()
    for scope in (staff_scope, system_scope):
        with scope():
            assert Secret.objects.get() == secret
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic(), scope():
            list(SecretVersion.objects.all())
