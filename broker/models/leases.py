"""Leases: a tenant's right to capacity. Only `Lease.move` writes the state."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import connection, models
from django.db.models import Q

from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.automatic_extension import AutomaticExtension
from broker.domain.lifecycle.lease_transitions import ENDING_STATES, HOLDS_CAPACITY, NEXT_STATES, SETTLED_STATES
from broker.domain.lifecycle.relocation_states import why_not_relocatable
from broker.domain.lifecycle.spot_terms import SpotTerms
from broker.domain.lifecycle.states import EndReason, Isolation, LeaseCondition, LeaseState
from broker.domain.workloads.template_contents import contents_from_json, workload_template
from broker.domain.workloads.templates import TEMPLATES, WorkloadTemplate
from broker.models.keys import ID_LENGTH, lease_id
from broker.models.offerings import Offering
from broker.models.transitions import TICK_CAUSE, Transition, log_transition, write_transition
from broker.models.volumes import Volume
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned
from tenants.services.actors import SYSTEM, Actor


class StaleLease(Exception):
    """Raised when the row changed state or terms since it was read."""


class LeaseQuerySet(models.QuerySet["Lease"]):
    def holding(self) -> "LeaseQuerySet":
        """Return leases that occupy capacity now."""
        return self.filter(state__in=[s.value for s in HOLDS_CAPACITY])

    def live(self) -> "LeaseQuerySet":
        """Return leases that are not over."""
        return self.exclude(state__in=[LeaseState.RELEASED.value])


class Lease(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lease_id)
    # No indexes of their own: `lease_newest_first` and `lease_of_project` begin with them.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT)
    name = models.CharField(max_length=120)
    quantity = models.PositiveIntegerField(default=1)  # slices; more than one is a gang, all or nothing
    # What each of its slices brings of its node, as offered when it was requested; zero: requested before that
    # was recorded.
    cpu_milli = models.PositiveIntegerField(default=0, db_default=0)
    host_memory_mib = models.PositiveIntegerField(default=0, db_default=0)
    scratch_mib = models.PositiveIntegerField(default=0, db_default=0)
    same_node = models.BooleanField(default=False)
    topology = models.CharField(  # how closely its GPUs are linked, a key of `placement.topology.ASKED`
        max_length=10, blank=True, default="", db_default=""
    )
    image = models.CharField(max_length=300, blank=True, default="")
    command = models.CharField(max_length=2000, blank=True, default="")
    workload = models.CharField(max_length=20, blank=True, default="", db_default="")  # empty: chosen by its image
    env = models.JSONField(default=dict, db_default={})  # may hold secrets: only its names are shown
    # Variables from saved secrets: {"HF_TOKEN": {"secret": "sec_…", "version": 2}}; their values are not stored here.
    secrets = models.JSONField(default=dict, db_default={})
    # Login of a private registry, pinned like a secret: {"secret": "sec_…", "version": 1}.
    pull_secret = models.JSONField(default=dict, db_default={})
    # A saved template as it was at the request: {"id": …, "version": …, "name": …, "contents": …}; built-in: empty.
    launch_template = models.JSONField(default=dict, db_default={})
    ssh_keys = models.JSONField(default=list, db_default=[])
    # Mounted at the home directory; the lease keeps it, even while stopped, until it is over.
    volume = models.ForeignKey(Volume, on_delete=models.PROTECT, null=True, db_index=False, related_name="leases")
    # Whether its node asks the registry before each start, so that nobody starts from another's private image. Leases
    # of before do not: their pods would be restarted.
    pull_always = models.BooleanField(default=True, db_default=True)
    relocatable = models.BooleanField(default=False, db_default=False)  # we may stop it and start it on another GPU
    # Extended by so many seconds at a time until its duration reaches the limit; zero: never.
    extend_by_s = models.PositiveIntegerField(default=0, db_default=0)
    extend_limit_s = models.PositiveIntegerField(default=0, db_default=0)
    extend_with_token = models.CharField(  # the token that allowed it, whose cap applies
        max_length=ID_LENGTH, blank=True, default="", db_default=""
    )
    notify_on_end = models.BooleanField(default=False, db_default=False)  # e-mail whoever requested it when it is over
    starts_at = models.DateTimeField(null=True)  # not placed before; null: as soon as capacity is free
    retries = models.PositiveSmallIntegerField(default=0, db_default=0)  # how often a failed command is run again
    attempt_limit_s = models.PositiveIntegerField(default=0, db_default=0)  # of one run; zero: as long as the lease
    attempt = models.PositiveSmallIntegerField(default=1, db_default=1)  # the current run of its command
    array = models.ForeignKey("LeaseArray", on_delete=models.PROTECT, null=True, db_index=False, related_name="leases")
    array_index = models.PositiveSmallIntegerField(null=True)
    # What a spot lease was promised, and what it asked for at its end; zero for other leases.
    spot_notice_s = models.PositiveIntegerField(default=0, db_default=300)
    spot_min_runtime_s = models.PositiveIntegerField(default=0, db_default=600)
    requeue_when_preempted = models.BooleanField(default=False, db_default=False)
    checkpoint_command = models.CharField(max_length=2000, blank=True, default="", db_default="")  # run at the notice
    tags = models.JSONField(default=dict)
    # The quote that it cites; only the gate that accepted it reads its contents.
    quote_id = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")

    state = models.CharField(max_length=12, default=LeaseState.REQUESTED.value)
    seq = models.PositiveIntegerField(default=0)  # of its newest Transition
    state_since = models.DateTimeField()  # time of that Transition
    generation = models.PositiveIntegerField(default=1)  # rises with every placement; fences off older workers
    conditions = models.JSONField(default=dict)  # {"degraded": "since …, because …"}
    degraded_since = models.DateTimeField(null=True)  # since when it has been degraded without interruption
    progress = models.JSONField(default=dict)  # what the provisioner is doing: {"text": …, "percent": …}
    pending_reason = models.CharField(max_length=300, blank=True, default="")  # why it is queued, in one sentence

    created_at = models.DateTimeField()
    requeued_at = models.DateTimeField(null=True)  # queued since, if that differs from created_at
    active_at = models.DateTimeField(null=True)  # since when it is active; after its end, since when it last was
    active_seconds = models.PositiveIntegerField(default=0, db_default=0)  # active seconds before it was last stopped
    seen_at = models.DateTimeField(null=True)  # the last proof that it ran: nothing later is charged
    ended_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=20, default=EndReason.NONE.value)
    exit_code = models.IntegerField(null=True)  # of its command, once that has ended
    max_duration_s = models.PositiveIntegerField()  # of active time
    end_date = models.DateTimeField(null=True)  # a fixed end; the earlier of both applies
    ends_at = models.DateTimeField(null=True)  # set when it becomes active
    reclaim_at = models.DateTimeField(null=True)  # end of the notice of a spot lease: it is preempted then

    # {kind: {"amount": …, "parts": [[quota id, amount, window], …]}}: returned when it ends
    quota_uses = models.JSONField(default=dict)
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)

    # When a worker should check it again; null: nothing to do, or queued (its pool's queue is run as a whole).
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    unfinished_claims = models.PositiveSmallIntegerField(default=0)  # consecutive claims whose workers died
    version = models.PositiveIntegerField(default=1)  # rises with every visible change, for ETags

    objects = LeaseQuerySet.as_manager()
    requested_with_token = ""  # not a column: the API token of the request, for the gates
    approval_id = ""  # not a column: the approved request of a new lease, for the gates
    quote_token = ""  # not a column: the quote's token, until a gate accepts it and sets `quote_id`

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=[s.value for s in LeaseState]), name="lease_state_known"),
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
            models.Index(fields=["tenant", "id"], name="lease_live", condition=~Q(state=LeaseState.RELEASED.value)),
            models.Index(fields=["offering", "id"], name="lease_queue", condition=Q(state="queued")),
            models.Index(fields=["ended_at"], name="lease_ended"),  # live leases have null here
            models.Index(fields=["ended_at"], name="lease_end_to_report", condition=Q(notify_on_end=True)),
            models.Index(fields=["ends_at"], name="lease_end_known", condition=Q(state="active")),
            models.Index(fields=["array", "array_index"], name="lease_of_array", condition=Q(array__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def secret_ids(self) -> dict[str, str]:
        """Return the id of the secret behind each environment variable."""
        return {name: pinned["secret"] for name, pinned in sorted(self.secrets.items())}

    @property
    def used_secret_ids(self) -> set[str]:
        """Return the ids of all saved secrets it uses, its registry's included."""
        pull = {self.pull_secret["secret"]} if self.pull_secret else set()
        return {each["secret"] for each in self.secrets.values()} | pull

    @property
    def template_env(self) -> dict[str, str]:
        """Return the variables of its saved template as they are stored."""
        return dict(self.launch_template["contents"]["env"]) if self.launch_template else {}

    @property
    def saved_template(self) -> WorkloadTemplate | None:
        """Return the saved template it was launched with; None with a built-in one."""
        copy = self.launch_template
        if not copy:
            return None
        return workload_template(copy["id"], copy["name"], contents_from_json(copy["contents"]))

    @property
    def workload_template(self) -> WorkloadTemplate | None:
        """Return its saved or built-in template; None if it named none."""
        return self.saved_template or TEMPLATES.get(self.workload)

    @property
    def settled(self) -> bool:
        return LeaseState(self.state) in SETTLED_STATES

    @property
    def stays(self) -> str:
        """Return why a lease like this is never relocated; empty where it may be."""
        has_gpu = not self.offering.is_cpu_only
        return why_not_relocatable(Isolation(self.offering.isolation), self.quantity, has_gpu=has_gpu)

    @property
    def recorded_resources(self) -> HostResources:
        """Return what each of its slices brings of its node; unknown for an old lease."""
        return HostResources(self.cpu_milli, self.host_memory_mib, self.scratch_mib)

    @property
    def automatic_extension(self) -> AutomaticExtension:
        return AutomaticExtension(self.extend_by_s, self.extend_limit_s)

    @property
    def spot_terms(self) -> SpotTerms:
        """Return what it was promised as a spot lease; zero for any other."""
        return SpotTerms(self.spot_notice_s, self.spot_min_runtime_s)

    @property
    def must_end_at(self) -> datetime | None:
        """Return when an active lease must end, by its term or its notice."""
        return min(filter(None, (self.ends_at, self.reclaim_at)), default=None)

    @property
    def queues_since(self) -> datetime:
        return self.requeued_at or self.created_at

    @property
    def run_ends_at(self) -> datetime | None:
        """Return when the time limit of the present run is reached; None without one."""
        if not self.attempt_limit_s or self.active_at is None:
            return None
        return self.active_at + timedelta(seconds=self.attempt_limit_s)

    def is_scheduled(self, now: datetime) -> bool:
        """Return whether it is queued and not to be placed yet."""
        return self.state == LeaseState.QUEUED and self.queues_since > now

    @property
    def ever_active(self) -> bool:
        return self.active_at is not None or self.active_seconds > 0

    def transition(
        self,
        *states: LeaseState,
        now: datetime,
        actor: Actor = SYSTEM,
        reason: EndReason = EndReason.NONE,
        cause: str = "",
        **changes: object,
    ) -> None:
        """Make one or more state transitions and write them to the ledger atomically.

        `changes` are other columns of the row that belong to the transition. Raises StaleLease when the row
        has changed since it was read, ValueError for a transition that is not in the state table or for an end
        without its reason; both before anything is written. Needs a transaction, which the tenant's row-level
        security scope opens anyway.
        """
        if not connection.in_atomic_block:
            raise RuntimeError("a lease changes state inside its tenant's transaction only")
        at = max(now.replace(microsecond=0), self.state_since)  # times in the ledger never decrease
        steps = list(self._steps(states, at=at, actor=actor, reason=reason, cause=cause))
        fields = {"state": steps[-1].after, "seq": steps[-1].seq, "state_since": at, **changes}
        if not write_transition(self, fields, steps, expected=(self.pk, self.state, self.seq, self.max_duration_s)):
            raise StaleLease(self.pk)
        for name, value in fields.items():
            setattr(self, name, value)
        self.version += 1
        why = "" if reason == EndReason.NONE else reason
        for step in steps:
            log_transition(self.pk, self.tenant_id, before=step.before, after=step.after, reason=why)

    def add_metering_tick(self, *, at: datetime) -> bool:
        """Split the open interval of an active lease at `at`; return whether it did.

        What lies after its end, or after the last observation, is not certain to be charged: a lease that nobody
        has observed since is left to the reconciler, which may find that it was lost before.
        """
        certain = min(at, self.must_end_at or at)
        if (
            self.state != LeaseState.ACTIVE
            or self.state_since >= certain
            or LeaseCondition.UNREACHABLE in self.conditions
        ):
            return False
        if self.seen_at is None or self.seen_at < certain:
            return False
        try:
            self.transition(LeaseState.ACTIVE, now=certain, cause=TICK_CAUSE)
        except StaleLease:
            return False
        return True

    def _steps(
        self, states: Sequence[LeaseState], *, at: datetime, actor: Actor, reason: EndReason, cause: str
    ) -> Iterator[Transition]:
        before, seq, prev_at = LeaseState(self.state), self.seq, self.state_since
        for after in states:
            if after not in NEXT_STATES[before]:
                raise ValueError(f"{before} cannot become {after}")
            if after in ENDING_STATES and reason == EndReason.NONE:
                raise ValueError(f"{after} needs an EndReason")
            yield self.build_transition(
                seq + 1, before=before, after=after, actor=actor, cause=cause, reason=reason, at=at, prev_at=prev_at
            )
            before, seq, prev_at = after, seq + 1, at

    def build_transition(
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
        """Build one unsaved ledger row, chained to the row before it (none before seq 0)."""
        return Transition(
            lease_id=self.pk,
            seq=seq,
            tenant_id=self.tenant_id,
            at=at or self.state_since,
            prev_seq=seq - 1 if seq else None,
            prev_at=(prev_at or self.state_since) if seq else None,
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
