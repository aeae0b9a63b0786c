"""Secrets chosen by leases: pinned at launch, read for the provisioner, refused if unreadable."""

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.domain.workloads.secret_variables import MAX_VALUE_BYTES, SecretVariable
from broker.models import Lease, SecretVersion, Transition
from broker.provisioners.base import ProvisionSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import VALUE, delete_secret, replace_value, save_secret
from tests.simulation import Simulation, TenantContext, create_tenant, offering, reload_lease


def load_spec(lease: Lease, *, with_secrets: bool = True) -> ProvisionSpec:
    with tenant_scope(lease.tenant_id):
        return load_provision_spec(reload_lease(lease), with_secrets=with_secrets)


def test_a_lease_stores_ids_and_its_provisioner_gets_values(sim: Simulation, kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    lease = sim.create_lease(kestrel, offering(), workload="batch", secrets={"TOKEN": secret.pk})
    assert lease.secrets == {"TOKEN": {"secret": secret.pk, "version": 1}}
    assert load_spec(lease).secrets == (SecretVariable("TOKEN", secret.pk, 1, VALUE),)
    assert lease_spec(load_spec(lease)).workload.secrets[0].value == VALUE
    assert VALUE not in repr(load_spec(lease))


def test_values_are_read_only_where_objects_are_made(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), secrets={"TOKEN": save_secret(kestrel).pk})
    (variable,) = load_spec(lease, with_secrets=False).secrets
    assert (variable.name, variable.value) == ("TOKEN", None)


def test_a_running_lease_keeps_its_value_until_it_is_started_again(sim: Simulation, kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    volume = sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering(), secrets={"TOKEN": secret.pk}, volume=volume.pk)
    replace_value(kestrel, secret, "new")
    assert load_spec(lease).secrets[0].value == VALUE
    sim.stop_lease(lease, kestrel)
    sim.run(30)
    sim.start_lease(lease, kestrel)
    sim.run(30)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert load_spec(lease).secrets[0].value == "new"


def test_a_secret_of_another_project_or_tenant_does_not_exist(sim: Simulation, kestrel: TenantContext) -> None:
    beside = save_secret(kestrel, project=kestrel.create_project("team"))
    foreign = save_secret(create_tenant("Swift"))
    for secret_id in (beside.pk, foreign.pk, "sec_0"):
        with pytest.raises(ObjectNotFound, match="The secret chosen for 'TOKEN' does not exist in this project"):
            sim.request_lease(kestrel, offering(), secrets={"TOKEN": secret_id})


def test_a_lease_gets_at_most_64_kib_of_secrets(sim: Simulation, kestrel: TenantContext) -> None:
    large = save_secret(kestrel, value="x" * MAX_VALUE_BYTES)
    sim.request_lease(kestrel, offering(), secrets={"A": large.pk, "B": large.pk})
    with pytest.raises(InvalidValue, match="the maximum per lease is 65,536"):
        sim.request_lease(kestrel, offering(), secrets={"A": large.pk, "B": large.pk, "C": large.pk})


def test_a_secret_and_a_plain_variable_of_one_name_are_refused(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(ProblemError, match="set both as a plain variable and from a secret"):
        sim.request_lease(kestrel, offering(), secrets={"TOKEN": save_secret(kestrel).pk}, env={"TOKEN": "x"})


def test_a_lease_without_a_readable_secret_ends_with_the_reason(
    sim: Simulation, kestrel: TenantContext, settings: LazySettings
) -> None:
    lease = sim.request_lease(kestrel, offering(), secrets={"TOKEN": save_secret(kestrel).pk})
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    sim.run(30)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason) == (LeaseState.RELEASED, EndReason.SPEC_REFUSED)
    assert ended.active_at is None
    with tenant_scope(kestrel.tenant.pk):
        causes = Transition.objects.filter(lease_id=lease.pk).values_list("cause", flat=True)
        assert any(cause.startswith("the secret of TOKEN cannot be read") for cause in causes)


def test_a_lease_whose_secret_is_gone_ends_with_the_reason(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering(), secrets={"TOKEN": save_secret(kestrel).pk})
    with tenant_scope(kestrel.tenant.pk):
        SecretVersion.objects.all().delete()
    sim.run(30)
    assert reload_lease(lease).end_reason == EndReason.SPEC_REFUSED


def test_an_active_lease_survives_a_missing_key(
    sim: Simulation, kestrel: TenantContext, settings: LazySettings
) -> None:
    lease = sim.create_lease(kestrel, offering(), secrets={"TOKEN": save_secret(kestrel).pk})
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    sim.run(600)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert load_spec(lease).secret_fault == (
        "the secret of TOKEN cannot be read: none of the encryption keys of this installation can decrypt it"
    )


def test_a_value_moved_to_another_secrets_row_is_not_read(sim: Simulation, kestrel: TenantContext) -> None:
    first, second = save_secret(kestrel, "FIRST", "one"), save_secret(kestrel, "SECOND", "two")
    lease = sim.request_lease(kestrel, offering(), secrets={"A": first.pk})
    with tenant_scope(kestrel.tenant.pk):
        moved = SecretVersion.objects.get(secret=second).sealed
        SecretVersion.objects.filter(secret=first).update(sealed=moved)
    spec = load_spec(lease)
    assert spec.secrets[0].value is None
    assert "belongs to another secret" in spec.secret_fault


def test_a_deleted_secret_cannot_be_chosen(sim: Simulation, kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    delete_secret(kestrel, secret)
    with pytest.raises(ObjectNotFound):
        sim.request_lease(kestrel, offering(), secrets={"TOKEN": secret.pk})


def test_a_lease_chooses_at_most_50_secrets(sim: Simulation, kestrel: TenantContext) -> None:
    secret = save_secret(kestrel)
    with pytest.raises(InvalidValue, match="51 secrets were chosen; the maximum is 50"):
        sim.request_lease(kestrel, offering(), secrets={f"V{number}": secret.pk for number in range(51)})
