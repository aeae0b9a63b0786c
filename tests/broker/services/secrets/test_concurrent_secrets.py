"""Concurrent changes of secrets and launches that choose them."""

from broker.models import Lease, Secret
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.secrets import secret_store
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import replace_value, save_secret, stored_versions
from tests.broker.services.volumes.test_volume_lifecycle import run_concurrently
from tests.database import OwnDatabase
from tests.simulation import NOW, create_gpus, create_tenant, offering, simulate


def test_a_secret_is_never_deleted_under_a_lease_that_chose_it(own_database: OwnDatabase) -> None:
    with simulate():
        create_gpus(8)
        kestrel, what = create_tenant("Kestrel"), offering()
        for attempt in range(4):
            secret = save_secret(kestrel, f"TOKEN_{attempt}")

            def act(number: int, secret: Secret = secret) -> Lease | None:
                with tenant_scope(kestrel.tenant.pk):
                    if number % 2:
                        return secret_store.delete_secret(secret, actor=kestrel.actor, now=NOW)
                    wanted = LeaseRequest(what.pk, f"race-{number}", 3600, secrets={"TOKEN": secret.pk})
                    return request_lease(wanted, project=kestrel.project, actor=kestrel.actor, now=NOW)

            outcomes = run_concurrently(2, act)
            assert outcomes in (["Lease", "secret-in-use"], ["NoneType", "not-found"])


def test_concurrent_changes_and_launches_keep_every_pinned_value(own_database: OwnDatabase) -> None:
    with simulate():
        create_gpus(8)
        kestrel, what = create_tenant("Kestrel"), offering()
        secret = save_secret(kestrel)

        def act(number: int) -> Lease | Secret:
            if number % 2:
                return replace_value(kestrel, secret, f"value {number}")
            with tenant_scope(kestrel.tenant.pk):
                wanted = LeaseRequest(what.pk, f"race-{number}", 3600, secrets={"TOKEN": secret.pk})
                return request_lease(wanted, project=kestrel.project, actor=kestrel.actor, now=NOW)

        assert run_concurrently(8, act) == ["Lease"] * 4 + ["Secret"] * 4
        with tenant_scope(kestrel.tenant.pk):
            pinned = {lease.secrets["TOKEN"]["version"] for lease in Lease.objects.all()}
        assert pinned <= set(stored_versions(kestrel, secret))
