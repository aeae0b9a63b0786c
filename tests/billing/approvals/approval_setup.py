"""Test helpers: limits, requests for approval and decisions."""

from dataclasses import dataclass
from typing import Any

from billing.domain.approvals import Approver, LaunchLimits
from billing.models import ApprovalRequest
from billing.services.approvals import approval_decisions, approval_limits, approval_requests
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from tenants.domain.roles import Role
from tenants.models import User
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, LONG_AGO, OPERATOR, set_price
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering

HOUR = 3600


@dataclass
class Workplace:
    """A tenant with a member who launches and an owner who approves."""

    sim: Simulation
    context: TenantContext
    member: Actor
    owner: Actor

    @property
    def id(self) -> str:
        return self.context.tenant.pk

    def set_limits(
        self,
        *,
        cents: int | None = None,
        milli_gpus: int | None = None,
        seconds: int | None = None,
        by: Approver = Approver.TENANT,
    ) -> None:
        wanted = LaunchLimits(by, cents, milli_gpus, seconds)
        actor = self.owner if by is Approver.TENANT else OPERATOR
        with tenant_scope(self.id):
            approval_limits.set_limits(self.context.tenant, wanted, actor=actor, now=self.sim.now)

    def wanted(self, *, hours: float = 1, **more: Any) -> LeaseRequest:
        values = {"name": "fold", "image": "ubuntu", **more}
        values.setdefault("offering_id", offering().pk)
        return LeaseRequest(max_duration_s=int(hours * HOUR), **values)

    def launch(self, *, hours: float = 1, **more: Any) -> Lease:
        with tenant_scope(self.id):
            return request_lease(
                self.wanted(hours=hours, **more), project=self.context.project, actor=self.member, now=self.sim.now
            )

    def ask(self, *, hours: float = 1, array_size: int = 1, **more: Any) -> ApprovalRequest:
        with tenant_scope(self.id):
            return approval_requests.request_launch(
                self.wanted(hours=hours, **more),
                project=self.context.project,
                actor=self.member,
                now=self.sim.now,
                array_size=array_size,
            )

    def approve(
        self, request: ApprovalRequest, *, by: Approver = Approver.TENANT, actor: Actor | None = None
    ) -> ApprovalRequest:
        who = actor or (self.owner if by is Approver.TENANT else OPERATOR)
        with tenant_scope(self.id):
            return approval_decisions.approve(request, approver=by, actor=who, now=self.sim.now)

    def reload(self, request: ApprovalRequest) -> ApprovalRequest:
        with tenant_scope(self.id):
            return ApprovalRequest.objects.get(pk=request.pk)

    def leases(self) -> list[Lease]:
        with tenant_scope(self.id):
            return list(Lease.objects.order_by("created_at", "pk"))


def actor_of(user: User) -> Actor:
    return Actor("user", user.pk, user.email)


def create_workplace(sim: Simulation) -> Workplace:
    """Create a tenant on four GPUs; the smallest slice costs a euro an hour."""
    create_gpus(4)
    set_price(offering(), EURO, since=LONG_AGO)
    made = create_tenant("Kestrel")
    member, owner = (actor_of(made.create_member(role)) for role in (Role.MEMBER, Role.OWNER))
    return Workplace(sim, TenantContext(made.tenant, made.project, member), member, owner)
