"""Connection of a terminal to the box of its lease, simulated or in a cluster."""

from asgiref.sync import sync_to_async

from broker.domain.simulated_box.box_facts import BoxFacts
from broker.provisioners.base import ProvisionSpec
from broker.provisioners.kubernetes.pod_terminal import open_pod_terminal
from broker.provisioners.simulated_programs import box_facts
from broker.provisioners.simulated_terminal import SimulatedTerminal
from broker.provisioners.terminals import Terminal, TerminalSize
from broker.services.leases.lease_terminals import TerminalTarget, load_terminal_spec
from tenants.services.rls import tenant_scope


async def connect_terminal(target: TerminalTarget, size: TerminalSize) -> Terminal:
    """Open a terminal in a lease; raise TerminalUnavailable with the reason."""
    if target.is_simulated:
        return SimulatedTerminal(await sync_to_async(_load_facts, thread_sensitive=False)(target))
    return await open_pod_terminal(await sync_to_async(_load_spec, thread_sensitive=False)(target), size)


def _load_facts(target: TerminalTarget) -> BoxFacts:
    with tenant_scope(target.lease.tenant_id):
        return box_facts(load_terminal_spec(target))


def _load_spec(target: TerminalTarget) -> ProvisionSpec:
    with tenant_scope(target.lease.tenant_id):
        return load_terminal_spec(target)
