"""Lease requests: validated, passed by every lease gate and queued in one transaction.

The setting LEASE_GATES lists the gates in order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Protocol, cast

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import Jsonb
from django.utils.module_loading import import_string

from broker.domain.geometry.profiles import ProfileKind
from broker.domain.lifecycle.automatic_extension import AutomaticExtension
from broker.domain.lifecycle.command_retries import MAX_RETRIES, MIN_LEFT_S
from broker.domain.lifecycle.relocation_states import why_not_relocatable
from broker.domain.lifecycle.spot_terms import SpotTerms
from broker.domain.lifecycle.states import Isolation, LeaseState, PriceClass
from broker.domain.placement.gangs.topology import LINK_LIMITS
from broker.domain.workloads.registry_logins import image_login_fault
from broker.domain.workloads.secret_variables import SecretVariable
from broker.domain.workloads.template_contents import base_name, workload_template
from broker.domain.workloads.templates import BATCH, VLLM, Workload, WorkloadShape, template_name_for
from broker.domain.workloads.validation import find_workload_faults
from broker.models import Lease, LeaseArray, Offering, OfferingState, SavedTemplate
from broker.models.transitions import log_transition
from broker.services.inventory import spot_offerings
from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.launch_templates import template_choice
from broker.services.launch_templates.template_errors import refuse_faults
from broker.services.leases.extension_limits import check_automatic_extension
from broker.services.placement import available_capacity
from broker.services.placement.slot_search import TOPOLOGY_WORDS
from broker.services.quotas import block_new_quotas
from broker.services.secrets import lease_secrets, registry_secrets, variable_encryption
from broker.services.volumes import volume_mounts
from ports import outbox
from ports.postgres import sql_statements
from tenants.domain.single_line_text import is_name
from tenants.models import Project
from tenants.services import audit, projects, ssh_keys
from tenants.services.actors import Actor
from tenants.services.errors import Fix, InvalidValue, ObjectNotFound, ProblemError

MAX_QUANTITY = 512
MIN_DURATION_S = 60
MAX_START_AHEAD = timedelta(days=30)  # a quote fixes the price from the request on
MAX_END_DATE_AHEAD = timedelta(days=5 * 365)  # a later fixed end is a typing error, and might exceed the date range
OfferingReader = Callable[[], Offering | None]
GateResult = Callable[[], None]
# Columns of a new lease that are written as they are.
PLAIN_COLUMNS = (
    *("id", "tenant_id", "project_id", "offering_id", "volume_id", "quote_id", "name", "quantity", "same_node"),
    *("cpu_milli", "host_memory_mib", "scratch_mib"),
    *("topology", "image", "command", "workload", "relocatable", "state_since", "created_at", "max_duration_s"),
    *("spot_notice_s", "spot_min_runtime_s", "requeue_when_preempted", "checkpoint_command"),
    *("end_date", "requested_by", "requested_by_label", "extend_by_s", "extend_limit_s"),
    *("extend_with_token", "notify_on_end"),
    *("starts_at", "requeued_at", "retries", "attempt_limit_s", "array_id", "array_index", "pending_reason"),
)
JSON_COLUMNS = ("tags", "env", "secrets", "pull_secret", "launch_template", "ssh_keys", "quota_uses")


NEVER_RECLAIMED = SpotTerms(0, 0)


class PlacementImpossible(ProblemError):
    code, status, title = "placement-impossible", 422, "No cluster can ever fit this request"


class OfferingRetired(ProblemError):
    code, status, title = "offering-retired", 409, "This offering is no longer available"


@dataclass(frozen=True)
class LeaseRequest:
    """A tenant's lease request; times in seconds, dates aware."""

    offering_id: str
    name: str
    max_duration_s: int
    quantity: int = 1
    same_node: bool = False
    topology: str = ""  # how closely its GPUs are linked: a key of `topology.ASKED`, which implies one node
    end_date: datetime | None = None
    image: str = ""
    command: str = ""
    workload: str = ""  # a built-in template's name; empty: chosen by its image
    template_id: str = ""  # of a saved template, instead
    template: SavedTemplate | None = None  # that template, once it was found
    pull_secret: str = ""  # id of the secret with the login of the image's registry
    env: dict[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)  # variable: id of a secret of the project
    ssh_keys: Sequence[str] = ()
    ssh_key_ids: Sequence[str] = ()  # saved keys of whoever requests it
    volume: str = ""  # id of a volume no other lease uses; empty: its files are lost at its end
    relocatable: bool = False  # we may stop it and start it on another GPU, after notice
    requeue_when_preempted: bool = False  # a spot lease is queued again for the rest of its duration
    checkpoint_command: str = ""  # run in a spot lease when it gets notice
    tags: dict[str, str] = field(default_factory=dict)
    extend_by_s: int = 0  # automatic extension: seconds at a time; zero: off
    extend_limit_s: int = 0  # and the total duration that it never exceeds
    notify_on_end: bool = False  # by e-mail
    retries: int = 0  # how often a failed batch command is run again
    attempt_limit_s: int = 0  # of one run of a batch command; zero: as long as the lease
    starts_at: datetime | None = None  # not placed before; empty: as soon as capacity is free
    quote: str = ""  # token of a quote, read by the gate that issued it
    approval: str = ""  # id of the approved request that it comes from; only services set it
    array: LeaseArray | None = None  # set by the array's own request, with the index
    array_index: int | None = None


class LeaseGate(Protocol):
    """A check inside the transaction that queues or extends a lease.

    It returns, or raises ProblemError to undo everything. A gate takes what the lease still lacks: called again
    after an extension it takes only the difference. No network access. A gate that queries the database may
    return a function that reads the result: all gates then send their queries before the first result is
    awaited.
    """

    def __call__(self, lease: Lease, *, now: datetime) -> GateResult | None: ...


def build_lease(
    wanted: LeaseRequest, *, project: Project, actor: Actor, now: datetime, found: OfferingReader | None = None
) -> Lease:
    """Validate a request and return an unsaved lease, or raise ProblemError."""
    offering = (found or send_offering_query(wanted.offering_id))()
    if offering is None or offering.state == OfferingState.DRAFT:
        raise ObjectNotFound(f"Offering {wanted.offering_id!r} does not exist.", fix=_catalogue_fix())
    if offering.state == OfferingState.RETIRED:
        raise OfferingRetired(f"{offering.label} accepts no new leases; running leases continue.", fix=_catalogue_fix())
    wanted = apply_template(wanted, project)
    _check_request(wanted, now)
    wanted = _with_saved_keys(wanted, actor)
    check_workload(wanted)
    if VLLM.name == (wanted.workload or template_name_for(wanted.image)) and offering.is_cpu_only:
        raise InvalidValue(
            "workload",
            f"{VLLM.label} needs a GPU, and {offering.label} has none.",
            fix="Choose an offering with a GPU, or another template.",
        )
    secrets = lease_secrets.pin_secrets(wanted.secrets, project=project) if wanted.secrets else {}
    pull_secret = {}
    if wanted.pull_secret:
        pull_secret = registry_secrets.pin_pull_secret(wanted.pull_secret, project=project, image=wanted.image)
    if wanted.topology:
        wanted = _checked_topology(wanted, offering)
    if wanted.quantity > 1:
        _check_gang(wanted, offering)
    if wanted.relocatable and (why := never_relocated_reason(offering, wanted.quantity)):
        raise not_relocatable_error(why)
    spot_terms = _checked_spot_terms(wanted, offering)
    volume = None
    if wanted.volume:
        volume = volume_mounts.get_mountable(
            wanted.volume, project=project, offering=offering, quantity=wanted.quantity, same_node=wanted.same_node
        )
    lease = Lease(
        tenant_id=project.tenant_id,
        project=project,
        offering=offering,
        name=wanted.name.strip(),
        quantity=wanted.quantity,
        cpu_milli=offering.cpu_milli,
        host_memory_mib=offering.host_memory_mib,
        scratch_mib=offering.scratch_mib,
        same_node=wanted.same_node,
        topology=wanted.topology,
        image=wanted.image,
        command=wanted.command,
        workload=wanted.workload,
        secrets=secrets,
        pull_secret=pull_secret,
        ssh_keys=list(wanted.ssh_keys),
        volume=volume,
        relocatable=wanted.relocatable,
        spot_notice_s=spot_terms.notice_s,
        spot_min_runtime_s=spot_terms.min_runtime_s,
        requeue_when_preempted=wanted.requeue_when_preempted,
        checkpoint_command=wanted.checkpoint_command.strip(),
        tags=wanted.tags,
        max_duration_s=wanted.max_duration_s,
        end_date=wanted.end_date,
        extend_by_s=wanted.extend_by_s,
        extend_limit_s=wanted.extend_limit_s,
        notify_on_end=wanted.notify_on_end,
        extend_with_token=actor.token if wanted.extend_by_s else "",
        retries=wanted.retries,
        array=wanted.array,
        array_index=wanted.array_index,
        attempt_limit_s=wanted.attempt_limit_s,
        starts_at=wanted.starts_at,
        requeued_at=wanted.starts_at,  # it waits since then, not since its request
        pending_reason=_describe_start(wanted.starts_at),
        created_at=now,
        state_since=now.replace(microsecond=0),
        requested_by=actor.id,
        requested_by_label=actor.label,
    )
    if wanted.env:
        lease.env = variable_encryption.encrypt_variables(wanted.env, owner_id=lease.pk)
    if wanted.template:
        lease.launch_template = template_choice.template_copy(wanted.template, lease_id=lease.pk)
    lease.quote_token, lease.requested_with_token = wanted.quote, actor.token
    lease.approval_id = wanted.approval
    return lease


def _checked_spot_terms(wanted: LeaseRequest, offering: Offering) -> SpotTerms:
    """Return the lease's spot terms; raise InvalidValue for wishes of other classes."""
    if offering.price_class == PriceClass.SPOT:
        return spot_offerings.spot_terms_of(offering) or NEVER_RECLAIMED
    for field_name in ("requeue_when_preempted", "checkpoint_command"):
        if getattr(wanted, field_name):
            raise InvalidValue(
                field_name,
                f"{offering.label} is not a spot offering; its leases are never preempted.",
                fix="Leave it out, or choose a spot offering.",
            )
    return NEVER_RECLAIMED


@transaction.atomic
def request_lease(wanted: LeaseRequest, *, project: Project, actor: Actor, now: datetime) -> Lease:
    """Queue a lease if every gate lets it pass; otherwise raise ProblemError and write nothing."""
    return queue_lease(wanted, project=project, actor=actor, now=now)


def queue_lease(
    wanted: LeaseRequest, *, project: Project, actor: Actor, now: datetime, found: OfferingReader | None = None
) -> Lease:
    """Queue a lease in the caller's transaction, which must roll back on ProblemError.

    `found` reads the offering when the query was sent already.
    """
    if wanted.volume:
        volume_mounts.lock_volume(wanted.volume)
    wanted = apply_template(wanted, project)
    if wanted.secrets or wanted.pull_secret:
        lease_secrets.lock_secrets({*wanted.secrets.values(), wanted.pull_secret})
    lease = build_lease(wanted, project=project, actor=actor, now=now, found=found)
    projects.require_open(project)
    block_new_quotas(lease.tenant_id)
    run_gates(lease, now=now)
    if lease.quote_token and not lease.quote_id:  # otherwise it would be charged a price other than the quoted one
        raise InvalidValue("quote", "This installation does not support quotes.", fix="Leave it out.")
    _insert_queued_lease(lease, actor=actor)
    if wanted.ssh_key_ids:
        ssh_keys.record_use(wanted.ssh_key_ids, actor=actor, now=now)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)
    audit.record(
        "lease.request",
        lease,
        lease.name,
        actor=actor,
        now=now,
        offering=lease.offering.label,
        quantity=lease.quantity,
        max_duration_s=lease.max_duration_s,
    )
    return lease


@cache
def _load_cached(names: tuple[str, ...]) -> tuple[LeaseGate, ...]:
    return tuple(cast(LeaseGate, import_string(name)) for name in names)


def load_gates() -> tuple[LeaseGate, ...]:
    """Return all gates of settings.LEASE_GATES; raise ImportError for an invalid name."""
    return _load_cached(tuple(settings.LEASE_GATES))


def run_gates(lease: Lease, *, now: datetime) -> None:
    """Call every gate of settings.LEASE_GATES; the first ProblemError stops it."""
    for answer in [gate(lease, now=now) for gate in load_gates()]:
        if answer is not None:
            answer()


def _insert_queued_lease(lease: Lease, *, actor: Actor) -> None:
    """Insert a new lease with its first two transitions.

    The ORM would take three times as long.
    """
    lease.state, lease.seq, lease.due_at = LeaseState.QUEUED.value, 1, lease.end_date
    row = {name: getattr(lease, name) for name in PLAIN_COLUMNS}
    row |= {name: Jsonb(getattr(lease, name)) for name in JSON_COLUMNS}
    row |= {"actor_kind": actor.kind, "price_class": lease.offering.price_class}
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(sql_statements.load_sql("broker/leases/insert_lease"), row)
    lease._state.adding, lease._state.db = False, "default"
    log_transition(lease.pk, lease.tenant_id, before="", after=lease.state)


def send_offering_query(offering_id: str) -> OfferingReader:
    """Send the query for an offering; return a function that reads the result."""
    return sql_statements.send_row_query(Offering, "id = %s", [offering_id])


def _check_request(wanted: LeaseRequest, now: datetime) -> None:
    if not is_name(wanted.name.strip()):
        raise InvalidValue(
            "name",
            "A name must have 1 to 120 characters without control or invisible characters.",
            fix="Enter another name.",
        )
    if not 1 <= wanted.quantity <= MAX_QUANTITY:
        raise InvalidValue(
            "quantity", f"The quantity must be from 1 to {MAX_QUANTITY}.", fix="Launch several leases instead."
        )
    longest = settings.MAX_LEASE_HOURS * 3600
    if not MIN_DURATION_S <= wanted.max_duration_s <= longest:
        raise InvalidValue(
            "max_duration_s",
            f"The duration must be {MIN_DURATION_S} s to {settings.MAX_LEASE_HOURS} h.",
            fix=f"Choose at most {settings.MAX_LEASE_HOURS} h and extend later.",
        )
    _check_start(wanted, now)
    _check_retries(wanted)
    starts = wanted.starts_at or now
    if wanted.end_date is not None and wanted.end_date <= starts + timedelta(seconds=MIN_DURATION_S):
        raise InvalidValue(
            "end_date",
            "The end date is too early for the lease to start.",
            fix="Choose an end at least one minute after the start, or leave it out.",
        )
    if wanted.end_date is not None and wanted.end_date > now + MAX_END_DATE_AHEAD:
        raise InvalidValue(
            "end_date", "The end date must be within five years.", fix="Choose an earlier end, or leave it out."
        )
    if wanted.extend_by_s or wanted.extend_limit_s:
        check_automatic_extension(
            AutomaticExtension(wanted.extend_by_s, wanted.extend_limit_s),
            max_duration_s=wanted.max_duration_s,
            end_date=wanted.end_date,
        )


def _check_start(wanted: LeaseRequest, now: datetime) -> None:
    if wanted.starts_at is not None and not now < wanted.starts_at <= now + MAX_START_AHEAD:
        raise InvalidValue(
            "starts_at",
            f"A start must be in the future, at most {MAX_START_AHEAD.days} days ahead.",
            fix="Choose another time, or leave it out to start as soon as capacity is free.",
        )


def _check_retries(wanted: LeaseRequest) -> None:
    if not (wanted.retries or wanted.attempt_limit_s):
        return
    if wanted.workload != BATCH.name:
        field = "retries" if wanted.retries else "attempt_limit_s"
        raise InvalidValue(field, "Only a batch command is run again.", fix="Set workload to batch, or leave it out.")
    if not 0 <= wanted.retries <= MAX_RETRIES:
        raise InvalidValue("retries", f"Retries must be 0 to {MAX_RETRIES}.", fix=f"Choose at most {MAX_RETRIES}.")
    if wanted.attempt_limit_s and not MIN_LEFT_S <= wanted.attempt_limit_s <= wanted.max_duration_s:
        raise InvalidValue(
            "attempt_limit_s",
            f"The time limit of a run must be {MIN_LEFT_S} s or more, and at most the duration of the lease.",
            fix="Choose a value between them, or leave it out.",
        )


def _describe_start(starts_at: datetime | None) -> str:
    return f"Starts at {starts_at:%Y-%m-%d %H:%M} UTC, as requested." if starts_at else ""


def apply_template(wanted: LeaseRequest, project: Project) -> LeaseRequest:
    """Return the request completed by the saved template it names, or raise ProblemError."""
    if not wanted.template_id or wanted.template is not None:
        return wanted
    if wanted.workload:
        raise InvalidValue(
            "template_id", "Both a workload and a saved template were chosen.", fix="Leave out one of the two."
        )
    template = template_choice.find_template(wanted.template_id, project=project)
    contents = template.contents
    if contents.needs_volume and not wanted.volume:
        raise InvalidValue(
            "volume", f"{template.name} keeps its files on a volume; none was chosen.", fix="Choose a volume."
        )
    image = wanted.image or contents.image
    login = getattr(template, "pull_secret", None)
    fits = login is not None and not image_login_fault(image, login.registry)
    return replace(
        wanted,
        template=template,
        workload=base_name(contents),
        image=image,
        command=wanted.command or (contents.command if contents.shape is WorkloadShape.BATCH else ""),
        pull_secret=wanted.pull_secret or (login.pk if login is not None and fits else ""),
    )


def _with_saved_keys(wanted: LeaseRequest, actor: Actor) -> LeaseRequest:
    """Return the request with the text of the saved keys it names, each key once."""
    if not wanted.ssh_key_ids:
        return wanted
    saved = ssh_keys.chosen_keys(wanted.ssh_key_ids, actor=actor)
    lines = dict.fromkeys([*wanted.ssh_keys, *(each.public_key for each in saved)])
    return replace(wanted, ssh_keys=list(lines))


def check_workload(wanted: LeaseRequest) -> None:
    """Refuse a workload that could never run, or must not, with all its faults."""
    template = wanted.workload or template_name_for(wanted.image)
    workload = Workload(
        template=template,
        image=wanted.image,
        command=wanted.command,
        env=tuple(wanted.env.items()),
        secrets=tuple(SecretVariable(name) for name in wanted.secrets),
        ssh_keys=tuple(wanted.ssh_keys),
        custom=workload_template(wanted.template.pk, wanted.template.name, wanted.template.contents)
        if wanted.template
        else None,
    )
    faults = find_workload_faults(workload)
    if not wanted.workload and not wanted.ssh_keys:  # without a chosen template nobody asked for SSH access
        faults = tuple(fault for fault in faults if fault.field != "ssh_keys")
    if faults:
        refuse_faults(faults)


def _checked_topology(wanted: LeaseRequest, offering: Offering) -> LeaseRequest:
    """Return the request completed for its topology; raise InvalidValue if impossible."""
    if wanted.topology not in LINK_LIMITS:
        raise InvalidValue(
            "topology",
            f"{wanted.topology!r} is not a valid GPU interconnect.",
            fix=f"Use {' or '.join(LINK_LIMITS)}, or nothing.",
        )
    if offering.is_cpu_only:
        raise InvalidValue(
            "topology", f"{offering.label} has no GPU, so there is no interconnect.", fix="Leave it out."
        )
    if wanted.quantity == 1:
        raise InvalidValue(
            "topology", "A single GPU has no interconnect.", fix="Request several GPUs, or leave it out."
        )
    if profile_of(offering).kind is not ProfileKind.WHOLE_GPU:
        raise InvalidValue(
            "topology",
            f"{offering.label} is part of a GPU; only whole GPUs have an interconnect.",
            fix="Request whole GPUs, or leave it out.",
        )
    return replace(wanted, same_node=True)


def _check_gang(wanted: LeaseRequest, offering: Offering) -> None:
    if profile_of(offering).kind is ProfileKind.SHARE:  # two replicas of a GPU are not twice its compute
        raise InvalidValue(
            "quantity",
            f"{offering.label} is a share of a GPU: the quantity must be 1; two shares are not twice the compute.",
            fix="Choose a larger slice, or launch several leases.",
        )
    most = available_capacity.max_when_empty(
        offering, quantity=wanted.quantity, same_node=wanted.same_node, topology=wanted.topology
    )
    if most < wanted.quantity:
        where = "one node" if wanted.same_node else "one cluster of the region"
        where += TOPOLOGY_WORDS[wanted.topology]
        raise PlacementImpossible(
            f"{wanted.quantity} × {offering.label} ({profile_of(offering).name}) were requested together; {where}"
            f" holds at most {most}, even when empty.",
            fix=Fix(
                f"Request at most {most}, or allow {_alternative(wanted)}."
                if wanted.same_node
                else f"Request at most {most}.",
                "GET",
                "/api/v1/offerings",
            ),
            most=most,
        )


def never_relocated_reason(offering: Offering, quantity: int) -> str:
    """Return why a lease of an offering is never relocated; empty where it may be."""
    return why_not_relocatable(Isolation(offering.isolation), quantity, has_gpu=not offering.is_cpu_only)


def not_relocatable_error(why: str) -> InvalidValue:
    """Return the error for a lease that can never be relocated."""
    return InvalidValue("relocatable", f"{why[0].upper()}{why[1:]}.", fix="Leave out `relocatable`.")


def _alternative(wanted: LeaseRequest) -> str:
    return "other interconnects" if wanted.topology else "several nodes"


def _catalogue_fix() -> Fix:
    return Fix("Choose one from the catalogue.", "GET", "/api/v1/offerings")
