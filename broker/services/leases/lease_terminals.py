"""Terminals of leases: who may open one, what it connects to, and its audit events."""

from dataclasses import dataclass
from datetime import datetime

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.provisioners.base import ProvisionSpec
from broker.services.leases.lease_connections import is_simulated
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services import audit
from tenants.services.authentication import Visitor, require, require_not_suspended
from tenants.services.errors import Fix, ObjectNotFound, ProblemError

TERMINAL_ACTION = "leases.write"  # who may launch and end leases may use them


class LeaseNotActive(ProblemError):
    code, status, title = "lease-not-active", 409, "The lease is not active"


@dataclass(frozen=True)
class TerminalTarget:
    """The lease that a terminal is opened in, as it was then."""

    lease: Lease
    generation: int
    visitor: Visitor
    is_simulated: bool


def find_terminal_target(visitor: Visitor, lease_id: str, *, generation: int | None = None) -> TerminalTarget:
    """Return the lease if the visitor may open a terminal; else raise ProblemError.

    With `generation` also unless the lease has been started again since.
    """
    lease = Lease.objects.filter(tenant=visitor.tenant, pk=lease_id).select_related("offering", "project").first()
    if lease is None or not visitor.grants.may("leases.read", lease.project.path):
        raise ObjectNotFound("This lease does not exist.", fix=Fix("List your leases.", "GET", "/api/v1/leases"))
    require(visitor.grants, TERMINAL_ACTION, lease.project.path)
    require_not_suspended(visitor.tenant)
    if generation not in (None, lease.generation):
        raise LeaseNotActive(f"{lease.name} was started again or moved.", fix="Open a new terminal.")
    if lease.state != LeaseState.ACTIVE:
        raise LeaseNotActive(
            f"{lease.name} is {lease.state}; a terminal needs an active lease.",
            fix="Wait until it is active, or launch a new one.",
        )
    return TerminalTarget(lease, lease.generation, visitor, is_simulated(lease))


def load_terminal_spec(target: TerminalTarget) -> ProvisionSpec:
    """Return the provision spec; for a simulated cluster with secret values."""
    return load_provision_spec(target.lease, generation=target.generation, with_secrets=target.is_simulated)


def record_terminal_start(target: TerminalTarget, *, now: datetime) -> None:
    """Record that a terminal was opened."""
    audit.record("lease.terminal_open", target.lease, actor=target.visitor.actor, now=now)


def record_terminal_end(target: TerminalTarget, *, started: datetime, now: datetime, why: str) -> None:
    """Record that a terminal was closed, and how long it was open."""
    duration_s = max(int((now - started).total_seconds()), 0)
    audit.record(
        "lease.terminal_close", target.lease, actor=target.visitor.actor, now=now, duration_s=duration_s, why=why[:200]
    )
