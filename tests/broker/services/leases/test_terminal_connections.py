"""Connection of a terminal to the box of its lease."""

from typing import Any

import pytest

from broker.models import Cluster, Lease
from broker.provisioners.base import ProvisionSpec
from broker.provisioners.simulated_terminal import SimulatedTerminal
from broker.provisioners.terminals import TerminalSize
from broker.services.leases import terminal_connections
from broker.services.leases.lease_terminals import TerminalTarget, find_terminal_target
from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.services.authentication import Visitor
from tenants.services.rls import tenant_scope
from tests.database import OwnDatabase
from tests.simulation import TenantContext, create_gpus, create_tenant, offering, simulate
from tests.web.http.test_event_stream import run


def target_of(owner: TenantContext, lease: Lease) -> TerminalTarget:
    visitor = Visitor(owner.tenant, owner.actor, RoleGrants((RoleGrant(Role.MEMBER),)))
    with tenant_scope(owner.tenant.pk):
        return find_terminal_target(visitor, lease.pk)


@pytest.mark.parametrize("provisioner", ["simulated", "kubernetes"])
def test_the_terminal_is_that_of_the_leases_cluster(
    provisioner: str, own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[ProvisionSpec, TerminalSize]] = []

    async def open_pod(spec: ProvisionSpec, size: TerminalSize) -> Any:
        opened.append((spec, size))

    monkeypatch.setattr(terminal_connections, "open_pod_terminal", open_pod)
    with simulate() as sim:
        create_gpus(1)
        owner = create_tenant()
        lease = sim.create_lease(owner, offering())
        Cluster.objects.update(provisioner=provisioner)
        found: list[object] = []

        async def connect() -> None:
            found.append(await terminal_connections.connect_terminal(target_of_lease, TerminalSize(90, 20)))

        target_of_lease = target_of(owner, lease)
        run(connect())
    assert isinstance(found[0], SimulatedTerminal) == (provisioner == "simulated")
    assert [(spec.lease_id, size) for spec, size in opened] == (
        [] if provisioner == "simulated" else [(lease.pk, TerminalSize(90, 20))]
    )
