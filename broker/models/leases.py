"""The tenant's right to capacity. Its state has one writer: `move`."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection, models
from django.db.models import Q

from broker.domain.lifecycle import ENDS, HOLDS_CAPACITY, NEXT, SETTLED
from broker.domain.moves import stays
from broker.domain.states import EndReason, Isolation, LeaseState
from broker.models.keys import ID_LENGTH, lease_id
from broker.models.moving import move
from broker.models.offerings import Offering
from broker.models.telling import tell
from broker.models.transitions import Transition
from broker.models.volumes import Volume
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned
from tenants.services.actors import SYSTEM, Actor


class StaleLease(Exception):
    """Somebody was faster: the row is no longer in the state, or on the terms, it was read in."""


class LeaseQuerySet(models.QuerySet["Lease"]):
    def for_tenant(self, tenant: Tenant) -> "LeaseQuerySet":
        return self.filter(tenant=tenant)

    def holding(self) -> "LeaseQuerySet":
        """Leases that occupy capacity now."""
        return self.filter(state__in=[s.value for s in HOLDS_CAPACITY])

    def live(self) -> "LeaseQuerySet":
        """Everything that is not over."""
        return self.exclude(state__in=[LeaseState.RELEASED.value])


class Lease(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lease_id)
    # No indexes of their own: `lease_newest_first` and `lease_of_project` begin with them.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT)
    name = models.CharField(max_length=120)
    quantity = models.PositiveIntegerField(default=1)  # slices; more than one is a gang, all or nothing
    same_node = models.BooleanField(default=False)
    topology = (
        models.CharField(  # how near its cards are to each other, as `placement.topology.ASKED` calls it
            max_length=10, blank=True, default="", db_default=""
        )
    )
    image = models.CharField(max_length=300, blank=True, default="")
    command = models.CharField(max_length=2000, blank=True, default="")
    workload = models.CharField(max_length=20, blank=True, default="", db_default="")  # empty: by its image
    env = models.JSONField(default=dict, db_default={})  # may hold secrets: only names of it are shown
    ssh_keys = models.JSONField(default=list, db_default=[])
    # Mounted at its home; the lease has it, stopped or not, until it is over.
    volume = models.ForeignKey(
        Volume, on_delete=models.PROTECT, null=True, db_index=False, related_name="leases"
    )
    movable = models.BooleanField(
        default=False, db_default=False
    )  # we may stop it and start it on another card
    tags = models.JSONField(default=dict)
    # The promise of its price that it cites; what stands in it is known to the gate that took it.
    quote_id = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")

    state = models.CharField(max_length=12, default=LeaseState.REQUESTED.value)
    seq = models.PositiveIntegerField(default=0)  # its newest Transition
    at = models.DateTimeField()  # that Transition's moment
    generation = models.PositiveIntegerField(default=1)  # rises on every placement: the fence
    conditions = models.JSONField(default=dict)  # {"degraded": "since …, because …"}
    ill_since = models.DateTimeField(null=True)  # since when it is seen to be degraded, without a break
    progress = models.JSONField(default=dict)  # what the provisioner is at: {"text": …, "percent": …}
    waits_for = models.CharField(max_length=300, blank=True, default="")  # why it queues, in one sentence

    created_at = models.DateTimeField()
    waits_since = models.DateTimeField(null=True)  # in the queue, when that is not since it was asked for
    active_at = models.DateTimeField(null=True)  # since when, if it is; once it is over, the last time
    spent_s = models.PositiveIntegerField(
        default=0, db_default=0
    )  # of being active before it was last stopped
    seen_at = models.DateTimeField(null=True)  # the last proof that it was there: nothing later is charged
    ended_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=20, default=EndReason.NONE.value)
    max_duration_s = models.PositiveIntegerField()  # of being active
    end_date = models.DateTimeField(null=True)  # a fixed end, whichever comes first
    ends_at = models.DateTimeField(null=True)  # set when it becomes active

    # {kind: {"amount": …, "parts": [[quota id, amount, window], …]}}: given back when it ends
    quota_uses = models.JSONField(default=dict)
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)

    # When a worker should look again; None: at rest, or queued, whose pool is served as a whole.
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)  # claims in a row that nobody lived to finish
    version = models.PositiveIntegerField(default=1)  # every visible change, for ETags

    objects = LeaseQuerySet.as_manager()
    asked_with = ""  # no column: the token with which somebody asks, while gates judge what is asked for
    cites = ""  # no column: the text of a quote, until a gate takes it at its word and names it in `quote_id`

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=[s.value for s in LeaseState]), name="lease_state_known"
            ),
            models.CheckConstraint(condition=Q(quantity__gte=1), name="lease_wants_something"),
            models.UniqueConstraint(
                fields=["tenant", "volume"],
                condition=~Q(state=LeaseState.RELEASED.value) & Q(volume__isnull=False),
                name="volume_of_one_lease",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="lease_newest_first"),
            models.Index(fields=["project", "-id"], name="lease_of_project"),
            models.Index(fields=["due_at"], name="lease_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["offering", "id"], name="lease_queue", condition=Q(state="queued")),
            models.Index(
                fields=["ended_at"], name="lease_ended"
            ),  # live ones are the nulls: what matters lately
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def settled(self) -> bool:
        return LeaseState(self.state) in SETTLED

    @property
    def stays(self) -> str:
        """Why one like it is never moved to another card; empty where it may be."""
        return stays(Isolation(self.offering.isolation), self.quantity)

    @property
    def queues_since(self) -> datetime:
        return self.waits_since or self.created_at

    @property
    def ever_active(self) -> bool:
        return self.active_at is not None or self.spent_s > 0

    def move(
        self,
        *states: LeaseState,
        now: datetime,
        actor: Actor = SYSTEM,
        reason: EndReason = EndReason.NONE,
        cause: str = "",
        **changes: object,
    ) -> None:
        """Take one or more steps of the lifecycle, written in the ledger with the row's own change.

        `changes` are other columns of the row that belong to the step. Raises StaleLease when the row
        has moved since it was read, ValueError for a step that is not in the state table or for an end
        without its reason; both before anything is written. Needs a transaction around it, which is the
        tenant's wall anyway.
        """
        if not connection.in_atomic_block:
            raise RuntimeError("a lease moves inside its tenant's transaction")
        at = max(now.replace(microsecond=0), self.at)  # the chain never runs backwards
        steps = list(self._steps(states, at=at, actor=actor, reason=reason, cause=cause))
        fields = {"state": steps[-1].after, "seq": steps[-1].seq, "at": at, **changes}
        if not move(self, fields, steps, seen=(self.pk, self.state, self.seq, self.max_duration_s)):
            raise StaleLease(self.pk)
        for name, value in fields.items():
            setattr(self, name, value)
        self.version += 1
        why = "" if reason == EndReason.NONE else reason
        for step in steps:
            tell(self.pk, self.tenant_id, before=step.before, after=step.after, reason=why)

    def _steps(
        self, states: Sequence[LeaseState], *, at: datetime, actor: Actor, reason: EndReason, cause: str
    ) -> Iterator[Transition]:
        before, seq, prev_at = LeaseState(self.state), self.seq, self.at
        for after in states:
            if after not in NEXT[before]:
                raise ValueError(f"{before} cannot become {after}")
            if after in ENDS and reason == EndReason.NONE:
                raise ValueError(f"{after} needs an EndReason")
            yield self.step(
                seq + 1,
                before=before,
                after=after,
                actor=actor,
                cause=cause,
                reason=reason,
                at=at,
                prev_at=prev_at,
            )
            before, seq, prev_at = after, seq + 1, at

    def step(
        self,
        seq: int,
        *,
        before: LeaseState | None,
        after: LeaseState,
        actor: Actor,
        cause: str,
        reason: EndReason = EndReason.NONE,
        at: datetime | None = None,
        prev_at: datetime | None = None,
    ) -> Transition:
        """Build one row of the ledger, unsaved, bound to the one before it (none before seq 0)."""
        return Transition(
            lease_id=self.pk,
            seq=seq,
            tenant_id=self.tenant_id,
            at=at or self.at,
            prev_seq=seq - 1 if seq else None,
            prev_at=(prev_at or self.at) if seq else None,
            before=before or "",
            after=after,
            reason=reason,
            cause=cause[:200],
            offering_id=self.offering_id,
            project_id=self.project_id,
            quantity=self.quantity,
            price_class=self.offering.price_class,
            generation=self.generation,
            actor_kind=actor.kind,
            actor_id=actor.id,
            actor_label=actor.label,
        )
