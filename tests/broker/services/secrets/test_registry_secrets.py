"""Logins of private registries: stored encrypted, pinned by leases, never a variable."""

import base64
import json

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.domain.workloads.registry_logins import RegistryLogin, docker_config
from broker.models import Lease, Secret, SecretVersion
from broker.provisioners.base import ProvisionSpec
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.secrets import registry_secrets
from broker.services.secrets.secret_errors import SecretInUse
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import PASSWORD, save_login
from tests.broker.services.secrets.saved_secrets import delete_secret, replace_value, save_secret, stored_versions
from tests.simulation import NOW, Simulation, TenantContext, create_tenant, offering, reload_lease

IMAGE = "ghcr.io/acme/solver:1"


def load_spec(lease: Lease, *, with_secrets: bool = True) -> ProvisionSpec:
    with tenant_scope(lease.tenant_id):
        return load_provision_spec(reload_lease(lease), with_secrets=with_secrets)


def replace_login(owner: TenantContext, secret: Secret, password: str) -> None:
    with tenant_scope(owner.tenant.pk):
        registry_secrets.replace_login(secret, username="acme", password=password, actor=owner.actor, now=NOW)


def test_a_lease_pins_a_login_that_only_its_provisioner_reads(sim: Simulation, kestrel: TenantContext) -> None:
    login = save_login(kestrel)
    lease = sim.create_lease(kestrel, offering(), image=IMAGE, pull_secret=login.pk)
    assert lease.pull_secret == {"secret": login.pk, "version": 1}
    assert load_spec(lease).pull_secret == RegistryLogin(login.pk, 1, "ghcr.io", "acme", PASSWORD)
    assert load_spec(lease, with_secrets=False).pull_secret == RegistryLogin(login.pk, 1)
    assert PASSWORD not in repr(load_spec(lease))
    with tenant_scope(kestrel.tenant.pk):
        assert PASSWORD.encode() not in bytes(SecretVersion.objects.get().sealed)


def test_a_replaced_login_is_used_from_the_next_start(sim: Simulation, kestrel: TenantContext) -> None:
    login, volume = save_login(kestrel), sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering(), image=IMAGE, pull_secret=login.pk, volume=volume.pk)
    replace_login(kestrel, login, "new")
    found = load_spec(lease).pull_secret
    assert found is not None
    assert found.password == PASSWORD
    sim.stop_lease(lease, kestrel)
    sim.run(30)
    sim.start_lease(lease, kestrel)
    sim.run(30)
    found = load_spec(lease).pull_secret
    assert found is not None
    assert found.password == "new"


def test_an_old_login_is_deleted_with_the_last_lease_that_uses_it(sim: Simulation, kestrel: TenantContext) -> None:
    login = save_login(kestrel)
    lease = sim.create_lease(kestrel, offering(), image=IMAGE, pull_secret=login.pk)
    replace_login(kestrel, login, "new")
    assert stored_versions(kestrel, login) == [1, 2]
    with pytest.raises(SecretInUse, match="uses GHCR"):
        delete_secret(kestrel, login)
    sim.release_lease(lease)
    sim.run(60)
    assert stored_versions(kestrel, login) == [2]
    delete_secret(kestrel, login)


def test_a_login_is_of_no_use_for_another_registry(sim: Simulation, kestrel: TenantContext) -> None:
    login, hub = save_login(kestrel), save_login(kestrel, "HUB", registry="https://index.docker.io/v1/")
    with pytest.raises(InvalidValue, match=r"pulled from quay.io, but the login is for ghcr.io"):
        sim.request_lease(kestrel, offering(), image="quay.io/acme/solver", pull_secret=login.pk)
    lease = sim.request_lease(kestrel, offering(), image="acme/solver", pull_secret=hub.pk)
    assert (hub.registry, lease.pull_secret["secret"]) == ("docker.io", hub.pk)


def test_a_login_of_another_tenant_does_not_exist(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(ObjectNotFound):
        sim.request_lease(kestrel, offering(), image=IMAGE, pull_secret=save_login(create_tenant("Swift")).pk)


def test_a_login_and_a_variable_are_not_mixed_up(sim: Simulation, kestrel: TenantContext) -> None:
    login, variable = save_login(kestrel), save_secret(kestrel)
    with pytest.raises(InvalidValue, match="a variable cannot hold it"):
        sim.request_lease(kestrel, offering(), secrets={"TOKEN": login.pk})
    with pytest.raises(InvalidValue, match="HF_TOKEN is not the login of a registry"):
        sim.request_lease(kestrel, offering(), image=IMAGE, pull_secret=variable.pk)
    with pytest.raises(InvalidValue, match="is the login of a registry"):
        replace_value(kestrel, login, "x")
    with pytest.raises(InvalidValue, match="is not the login of a registry"):
        replace_login(kestrel, variable, "x")


@pytest.mark.parametrize("registry", ["", "localhost:5000", "10.0.0.1", "ghcr.io/acme", "registry", "ghcr.io:99999"])
def test_an_impossible_registry_is_refused(registry: str, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue):
        save_login(kestrel, registry=registry)


@pytest.mark.parametrize(
    ("registry", "host"),
    [
        ("ghcr.io/org", "ghcr.io"),
        ("https://europe-docker.pkg.dev/p/r/", "europe-docker.pkg.dev"),
        ("registry.example:5000/team", "registry.example:5000"),
        ("hub.docker.com", "docker.io"),
        ("https://hub.docker.com/r/acme/app", "docker.io"),
        ("github.com/acme", "ghcr.io"),
        ("gitlab.com", "registry.gitlab.com"),
        ("catalog.ngc.nvidia.com", "nvcr.io"),
    ],
)
def test_an_address_of_more_than_a_registry_is_refused_with_the_right_host(
    registry: str, host: str, kestrel: TenantContext
) -> None:
    with pytest.raises(InvalidValue) as refused:
        save_login(kestrel, registry=registry)
    assert refused.value.fix.text.startswith(f"Use {host}.")
    assert save_login(kestrel, registry=host).registry == host


@pytest.mark.parametrize(
    ("registry", "host"),
    [
        ("http://nvcr.io", "nvcr.io"),
        ("HTTPS://GHCR.io/", "ghcr.io"),
        ("https://index.docker.io/v2/", "docker.io"),
        ("europe-docker.pkg.dev", "europe-docker.pkg.dev"),
    ],
)
def test_a_registry_is_stored_as_images_name_it(registry: str, host: str, kestrel: TenantContext) -> None:
    assert save_login(kestrel, registry=registry).registry == host


JSON_KEY = json.dumps({"type": "service_account", "private_key": "-----BEGIN KEY-----\nMII\n-----END"}, indent=2)
IN_BASE64 = base64.encodebytes(JSON_KEY.encode()).decode()


@pytest.mark.parametrize(
    ("username", "password", "stored"),
    [
        ("_json_key", JSON_KEY, JSON_KEY),
        ("_json_key", JSON_KEY.replace("\n", "\r\n"), JSON_KEY.replace("\n", "\r\n")),
        ("_json_key_base64", IN_BASE64, IN_BASE64.replace("\n", "")),
    ],
)
def test_the_key_of_a_google_service_account_is_a_login(
    username: str, password: str, stored: str, sim: Simulation, kestrel: TenantContext
) -> None:
    image, secret = "europe-docker.pkg.dev/p/r/app:1", save_login(kestrel, registry="europe-docker.pkg.dev")
    with tenant_scope(kestrel.tenant.pk):
        registry_secrets.replace_login(secret, username=username, password=password, actor=kestrel.actor, now=NOW)
    login = load_spec(sim.create_lease(kestrel, offering(), image=image, pull_secret=secret.pk)).pull_secret
    assert login is not None
    assert (login.username, login.password) == (username, stored)
    (entry,) = json.loads(docker_config(login))["auths"].values()
    assert base64.b64decode(entry["auth"]).decode() == f"{username}:{stored}"


@pytest.mark.parametrize(
    ("username", "password", "fix"),
    [
        ("_json_key", IN_BASE64, "_json_key_base64"),
        ("_json_key", "", "whole key file"),
        ("_json_key", "[" * 9000, "whole key file"),
        ("_json_key", '{"type": "service_account",', "whole key file"),
        ("_json_key", "{" + " " * 17_000 + "}", "key file"),
        ("_json_key_base64", JSON_KEY, "_json_key."),
        ("_json_key_base64", "e3", "base64 key.json"),
        ("oauth2accesstoken", JSON_KEY, "_json_key"),
        ("acme", "x\ny", "docker login"),
    ],
)
def test_a_wrong_key_file_is_refused_with_what_to_do(
    username: str, password: str, fix: str, kestrel: TenantContext
) -> None:
    secret = save_login(kestrel)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(InvalidValue) as refused:
        registry_secrets.replace_login(secret, username=username, password=password, actor=kestrel.actor, now=NOW)
    assert refused.value.field == "password"
    assert fix in refused.value.fix.text
    assert "service_account" not in refused.value.detail


@pytest.mark.parametrize(("username", "password"), [("", "x"), ("a:b", "x"), ("a", ""), ("a", "x\ny")])
def test_an_impossible_login_is_refused(username: str, password: str, kestrel: TenantContext) -> None:
    secret = save_login(kestrel)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(InvalidValue):
        registry_secrets.replace_login(secret, username=username, password=password, actor=kestrel.actor, now=NOW)


def test_a_lease_whose_login_is_gone_ends_with_the_reason(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering(), image=IMAGE, pull_secret=save_login(kestrel).pk)
    with tenant_scope(kestrel.tenant.pk):
        SecretVersion.objects.all().delete()
    sim.run(30)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason) == (LeaseState.RELEASED, EndReason.SPEC_REFUSED)
    assert load_spec(lease).secret_fault == "the login of its registry was deleted"
