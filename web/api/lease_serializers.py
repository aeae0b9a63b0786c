"""Serializers of leases, allocations, events and connections; they check format only."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from broker.domain.lifecycle.command_retries import MAX_RETRIES
from broker.domain.lifecycle.states import EndReason, LeaseState, PriceClass
from broker.domain.placement.gangs.topology import LINK_LIMITS
from broker.domain.workloads.secret_variables import MAX_VARIABLES
from broker.domain.workloads.templates import TEMPLATES
from broker.domain.workloads.validation import LONGEST_VALUE, MOST_KEYS, MOST_VARIABLES
from broker.models import Allocation, Lease, LeaseAttempt, LeaseNotice, Transition
from tenants.domain.single_line_text import has_control
from tenants.domain.ssh_keys import LONGEST_KEY
from web.api.serializer_fields import NameField, StrictSerializer, TagsField

MAX_INTEGER = 2**31 - 1
LEASE_STATES = [state.value for state in LeaseState]
TEMPLATE_FIELDS = ("id", "version", "name")
END_REASONS = [reason.value for reason in EndReason]


class PlainTextField(serializers.CharField):
    """Text for a machine, such as an image or command.

    It has no control characters but tab and newline.
    """

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text = str(super().to_internal_value(data))
        if has_control(text.replace("\n", " ").replace("\t", " ")):
            raise serializers.ValidationError("Must not contain control or invisible characters.", "control")
        return text


class EnvironmentField(serializers.DictField):
    """Map of environment variables, such as `{"MODE": "train"}`.

    Which names and values are allowed is decided by a service.
    """

    def __init__(self, **options: Any) -> None:
        text = serializers.CharField(
            max_length=LONGEST_VALUE, allow_blank=True, trim_whitespace=False, allow_null=False
        )
        super().__init__(child=text, **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > MOST_VARIABLES:
            raise serializers.ValidationError(f"Must have at most {MOST_VARIABLES} variables.", "too_many")
        found: dict[str, Any] = super().to_internal_value(data)
        return found


class SecretChoiceField(serializers.DictField):
    """Map of environment variables to ids of saved secrets, such as `{"HF_TOKEN": "sec_…"}`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=serializers.CharField(max_length=40), **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > MAX_VARIABLES:
            raise serializers.ValidationError(f"Must have at most {MAX_VARIABLES} secrets.", "too_many")
        found: dict[str, Any] = super().to_internal_value(data)
        return found


class LeaseCreate(StrictSerializer):
    """Request body of a lease."""

    name = NameField()
    project = serializers.CharField(max_length=40)
    offering = serializers.CharField(max_length=40)
    quantity = serializers.IntegerField(min_value=1, max_value=MAX_INTEGER, default=1)
    same_node = serializers.BooleanField(default=False)
    topology = serializers.ChoiceField(
        choices=list(LINK_LIMITS),
        allow_blank=True,
        default="",
        help_text="Required topology of whole GPUs on one node: `nvlink`, or `numa` for one CPU socket.",
    )
    max_duration_s = serializers.IntegerField(min_value=1, max_value=MAX_INTEGER)
    end_date = serializers.DateTimeField(allow_null=True, default=None)
    image = PlainTextField(max_length=300, allow_blank=True, default="")
    command = PlainTextField(max_length=2000, allow_blank=True, default="")
    workload = serializers.ChoiceField(choices=list(TEMPLATES), allow_blank=True, default="")
    template_id = serializers.CharField(
        max_length=40,
        allow_blank=True,
        default="",
        help_text="ID of a saved template, instead of `workload`; the lease keeps what it says now.",
    )
    pull_secret = serializers.CharField(
        max_length=40,
        allow_blank=True,
        default="",
        help_text="ID of the secret with the login of the image's private registry.",
    )
    env = EnvironmentField(default=dict)
    ssh_keys = serializers.ListField(child=PlainTextField(max_length=LONGEST_KEY), max_length=MOST_KEYS, default=list)
    ssh_key_ids = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=MOST_KEYS,
        default=list,
        help_text="IDs of your saved SSH keys, in addition to `ssh_keys`.",
    )
    secrets = SecretChoiceField(
        default=dict,
        help_text="Environment variables whose values come from secrets of the project: `{variable: secret id}`.",
    )
    volume = serializers.CharField(
        max_length=40,
        allow_blank=True,
        default="",
        help_text="ID of a volume of the project that is not attached to a lease.",
    )
    relocatable = serializers.BooleanField(
        default=False,
        help_text="Whether we may stop the lease and restart it on another GPU after notice. The volume is kept and"
        " downtime is free. Not allowed for quantity > 1 or shared GPUs.",
    )
    requeue_when_preempted = serializers.BooleanField(
        default=False,
        help_text="Whether a spot lease is queued again, for the rest of its duration, after it was preempted.",
    )
    checkpoint_command = PlainTextField(
        max_length=2000,
        allow_blank=True,
        default="",
        help_text="Shell command that is run in a spot lease when it gets notice, such as "
        "`kill -USR1 $GPUBROKER_PROGRAM_PID`.",
    )
    tags = TagsField(default=dict)
    starts_at = serializers.DateTimeField(
        allow_null=True, default=None, help_text="Not placed before this time, at most 30 days ahead; null: at once."
    )
    extend_by_s = serializers.IntegerField(
        min_value=0,
        max_value=MAX_INTEGER,
        default=0,
        help_text="Extend automatically by so many seconds at a time, as far as quotas and budgets allow; 0: never.",
    )
    extend_limit_s = serializers.IntegerField(
        min_value=0,
        max_value=MAX_INTEGER,
        default=0,
        help_text="Total duration that automatic extension never exceeds.",
    )
    notify_on_end = serializers.BooleanField(default=False, help_text="E-mail the requester when the lease has ended.")
    retries = serializers.IntegerField(
        min_value=0,
        max_value=MAX_RETRIES,
        default=0,
        help_text="How often a failed batch command is run again, after 30 s, doubled each time up to 1 h.",
    )
    attempt_limit_s = serializers.IntegerField(
        min_value=0,
        max_value=MAX_INTEGER,
        default=0,
        help_text="Time limit of one run of a batch command; a longer run counts as failed. 0: none.",
    )
    quote = serializers.CharField(
        max_length=1000,
        allow_blank=True,
        default="",
        help_text="The `quote` from `POST /quotes`; the lease never pays more than its price.",
    )


class LeaseChange(StrictSerializer):
    name = NameField(required=False)
    relocatable = serializers.BooleanField(required=False)
    tags = TagsField(required=False)
    extend_by_s = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER, required=False)
    extend_limit_s = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER, required=False)
    notify_on_end = serializers.BooleanField(required=False)


class LeaseExtension(StrictSerializer):
    more_s = serializers.IntegerField(min_value=1, max_value=MAX_INTEGER)


class LeaseTemplateOut(serializers.Serializer[Any]):
    """The saved template of a lease, as it was at the request."""

    id = serializers.CharField()
    version = serializers.IntegerField()
    name = serializers.CharField()


class LeaseSpecOut(serializers.Serializer[Lease]):
    """What was requested."""

    offering = serializers.CharField()
    project = serializers.CharField()
    quantity = serializers.IntegerField()
    cpu_milli = serializers.IntegerField(
        help_text="Of each slice, as promised at the request; 0 for a lease of an earlier version."
    )
    host_memory_mib = serializers.IntegerField(help_text="Of each slice.")
    scratch_mib = serializers.IntegerField(help_text="Of each slice.")
    same_node = serializers.BooleanField()
    topology = serializers.CharField()
    max_duration_s = serializers.IntegerField()
    end_date = serializers.DateTimeField(allow_null=True)
    image = serializers.CharField()
    command = serializers.CharField()
    workload = serializers.CharField()
    template = LeaseTemplateOut(allow_null=True)
    pull_secret = serializers.CharField(allow_null=True)
    env_names = serializers.ListField(child=serializers.CharField())
    secrets = serializers.DictField(child=serializers.CharField(), help_text="Secret id of each variable.")
    ssh_keys = serializers.ListField(child=serializers.CharField())
    volume = serializers.CharField(allow_null=True)
    relocatable = serializers.BooleanField()
    spot_notice_s = serializers.IntegerField(
        allow_null=True, help_text="Seconds between the notice to a spot lease and its end; null for other leases."
    )
    spot_min_runtime_s = serializers.IntegerField(
        allow_null=True, help_text="Seconds for which a spot lease is active before it may get notice."
    )
    requeue_when_preempted = serializers.BooleanField()
    checkpoint_command = serializers.CharField()
    tags = serializers.DictField(child=serializers.CharField())
    starts_at = serializers.DateTimeField(allow_null=True)
    extend_by_s = serializers.IntegerField()
    extend_limit_s = serializers.IntegerField()
    notify_on_end = serializers.BooleanField()
    retries = serializers.IntegerField()
    attempt_limit_s = serializers.IntegerField()
    array = serializers.CharField(allow_null=True)
    array_index = serializers.IntegerField(allow_null=True)
    quote = serializers.CharField(allow_null=True)


class ConditionOut(serializers.Serializer[Any]):
    type = serializers.CharField()
    status = serializers.BooleanField()
    message = serializers.CharField()


class ProgressOut(serializers.Serializer[Any]):
    text = serializers.CharField()
    percent_done = serializers.IntegerField(allow_null=True)


def progress_out(stored: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the provisioner is doing; None if nothing is stored."""
    return {"text": stored["text"], "percent_done": stored.get("percent")} if stored else None


class AnnouncedRelocationOut(serializers.Serializer[Any]):
    """Announced relocation to another GPU: `noticed`, `moving`, or `returning` to its former place."""

    state = serializers.CharField()
    not_before = serializers.DateTimeField(allow_null=True)


class LeaseStatusOut(serializers.Serializer[Lease]):
    """Current status; read-only."""

    state = serializers.ChoiceField(choices=LEASE_STATES)
    conditions = ConditionOut(many=True)
    pending_reason = serializers.CharField()
    queue_position = serializers.IntegerField(allow_null=True)
    progress = ProgressOut(allow_null=True)
    relocation = AnnouncedRelocationOut(allow_null=True)
    reclaim_at = serializers.DateTimeField(
        allow_null=True, help_text="End of the notice of a spot lease: it is preempted then."
    )
    end_reason = serializers.ChoiceField(choices=END_REASONS)
    exit_code = serializers.IntegerField(allow_null=True, help_text="Of its command, once that has ended by itself.")
    generation = serializers.IntegerField()
    attempt = serializers.IntegerField(help_text="The current run of its command; 1 is the first.")


class RequesterOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance


class LeaseOut(serializers.Serializer[Lease]):
    """A lease: what was requested, its status, and its dates."""

    id = serializers.CharField()
    name = serializers.CharField()
    spec = LeaseSpecOut()
    status = LeaseStatusOut()
    requested_by = RequesterOut()
    created_at = serializers.DateTimeField()
    active_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField()

    def to_representation(self, lease: Lease) -> dict[str, Any]:
        """Render the lease by hand.

        The fields above only describe it; this takes a tenth of the time of walking them.
        """
        places = self.context.get("places", {})
        place = places.get(lease.pk)
        move = self.context.get("moves", {}).get(lease.pk) if lease.relocatable else None
        is_spot = lease.offering.price_class == PriceClass.SPOT
        return {
            "id": lease.pk,
            "name": lease.name,
            "spec": {
                "offering": lease.offering_id,
                "project": lease.project_id,
                "quantity": lease.quantity,
                "cpu_milli": lease.cpu_milli,
                "host_memory_mib": lease.host_memory_mib,
                "scratch_mib": lease.scratch_mib,
                "same_node": lease.same_node,
                "topology": lease.topology,
                "max_duration_s": lease.max_duration_s,
                "end_date": lease.end_date,
                "image": lease.image,
                "command": lease.command,
                "workload": lease.workload,
                "template": {name: lease.launch_template[name] for name in TEMPLATE_FIELDS}
                if lease.launch_template
                else None,
                "pull_secret": lease.pull_secret.get("secret"),
                "env_names": sorted(lease.env),
                "secrets": lease.secret_ids if lease.secrets else {},
                "ssh_keys": lease.ssh_keys,
                "volume": lease.volume_id,
                "relocatable": lease.relocatable,
                "spot_notice_s": lease.spot_notice_s if is_spot else None,
                "spot_min_runtime_s": lease.spot_min_runtime_s if is_spot else None,
                "requeue_when_preempted": lease.requeue_when_preempted,
                "checkpoint_command": lease.checkpoint_command,
                "tags": lease.tags,
                "starts_at": lease.starts_at,
                "extend_by_s": lease.extend_by_s,
                "extend_limit_s": lease.extend_limit_s,
                "notify_on_end": lease.notify_on_end,
                "retries": lease.retries,
                "attempt_limit_s": lease.attempt_limit_s,
                "array": lease.array_id,
                "array_index": lease.array_index,
                "quote": lease.quote_id or None,
            },
            "status": {
                "state": str(lease.state),
                "conditions": [
                    {"type": kind, "status": True, "message": message} for kind, message in lease.conditions.items()
                ],
                "pending_reason": lease.pending_reason,
                "queue_position": place.place if place else None,
                "progress": progress_out(lease.progress),
                "relocation": {"state": move.state, "not_before": move.not_before} if move else None,
                "reclaim_at": lease.reclaim_at,
                "end_reason": lease.end_reason,
                "exit_code": lease.exit_code,
                "generation": lease.generation,
                "attempt": lease.attempt,
            },
            "requested_by": {"id": lease.requested_by, "label": lease.requested_by_label},
            "created_at": lease.created_at,
            "active_at": lease.active_at,
            "ends_at": lease.ends_at,
            "ended_at": lease.ended_at,
            "version": lease.version,
        }


class TransitionActorOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance


class TransitionOut(serializers.ModelSerializer[Transition]):
    actor = serializers.SerializerMethodField()

    class Meta:
        model = Transition
        fields = ("seq", "at", "before", "after", "reason", "cause", "generation", "actor")

    @extend_schema_field(TransitionActorOut)
    def get_actor(self, step: Transition) -> dict[str, str]:
        """Return the actor; an operator is not named."""
        if step.actor_kind == "staff":
            return {"kind": "operator", "label": "an operator"}
        return {"kind": step.actor_kind, "label": step.actor_label}


class AllocationOut(serializers.ModelSerializer[Allocation]):
    placement = serializers.SerializerMethodField()
    gpu_model = serializers.CharField(source="gpu.gpu_model_id")
    gpu_index = serializers.IntegerField(source="gpu.index")
    node = serializers.CharField(source="gpu.node.name")
    cluster = serializers.CharField(source="gpu.node.cluster.name")

    class Meta:
        model = Allocation
        fields = ("id", "generation", "profile", "isolation", "gpu_model", "cluster", "node", "gpu_index", "placement",
                  "is_relocation", "held_at", "released_at")  # fmt: skip
        extra_kwargs = {"is_relocation": {"help_text": "Second allocation during a relocation."}}

    def get_placement(self, allocation: Allocation) -> dict[str, int]:
        """Return its range of memory slices on the GPU."""
        return {"start": allocation.placement.lower, "size": allocation.placement.upper - allocation.placement.lower}


class LeaseNoticeOut(serializers.ModelSerializer[LeaseNotice]):
    """A notice about the end of a lease."""

    created_at = serializers.DateTimeField(source="made_at")

    class Meta:
        model = LeaseNotice
        fields = ("id", "kind", "lead_s", "ends_at", "text", "created_at")
        extra_kwargs = {
            "lead_s": {"help_text": "Of `ends_soon`: how many seconds before the end."},
            "text": {"help_text": "Of `extension_refused`: why."},
        }


class LeaseAttemptOut(serializers.ModelSerializer[LeaseAttempt]):
    """A run of a batch command that is over."""

    attempt = serializers.IntegerField(source="number", help_text="Its number; 1 is the first.")

    class Meta:
        model = LeaseAttempt
        fields = ("id", "attempt", "generation", "started_at", "ended_at", "exit_code", "text", "counted", "retry_at")
        extra_kwargs = {
            "exit_code": {"help_text": "Null where the command left none."},
            "counted": {"help_text": "False: lost by the provider or preempted, so no retry was used."},
            "retry_at": {"help_text": "When the command is run again; null: it is not."},
        }


class QueueEntryOut(serializers.Serializer[Lease]):
    """A queued lease."""

    lease = serializers.CharField(source="pk")
    name = serializers.CharField()
    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    quantity = serializers.IntegerField()
    queued_since = serializers.DateTimeField(source="queues_since")
    queue_position = serializers.SerializerMethodField()
    queue_length = serializers.SerializerMethodField()
    pending_reason = serializers.CharField()

    def get_queue_position(self, lease: Lease) -> int | None:
        """Return its position among leases waiting for the same GPU model and region."""
        place = self.context["places"].get(lease.pk)
        return place.place if place else None

    def get_queue_length(self, lease: Lease) -> int | None:
        """Return how many leases wait there."""
        place = self.context["places"].get(lease.pk)
        return place.of if place else None


class EventOut(serializers.Serializer[Any]):
    """A transition of a lease, as in the live stream; its id is a cursor."""

    id = serializers.CharField()
    type = serializers.CharField()
    at = serializers.DateTimeField()
    lease = serializers.CharField()
    name = serializers.CharField()
    seq = serializers.IntegerField()
    generation = serializers.IntegerField()
    project = serializers.CharField()
    offering = serializers.CharField()
    before = serializers.ChoiceField(choices=LEASE_STATES, allow_null=True)
    after = serializers.ChoiceField(choices=LEASE_STATES)
    end_reason = serializers.ChoiceField(choices=END_REASONS, allow_null=True)
    cause = serializers.CharField()
    actor_label = serializers.CharField()


class CompletePage(serializers.Serializer[Any]):
    """Complete list, in the format of a page."""

    next_cursor = serializers.CharField(allow_null=True)
    total_estimate = serializers.IntegerField()


def page_of(row: type[serializers.Serializer[Any]], name: str) -> type[CompletePage]:
    """Return the serializer of a complete list of these rows."""
    page = type(name, (CompletePage,), {"items": row(many=True)})
    return extend_schema_serializer(many=False)(page)


class ConnectionOut(serializers.Serializer[Any]):
    label = serializers.CharField(help_text="Target, for example SSH or JupyterLab.")  # type: ignore[assignment]
    text = serializers.CharField(source="line", help_text="A command for a shell, or an address.")
    is_link = serializers.BooleanField(help_text="Whether the text is an address for a browser.")
    secret = serializers.CharField(allow_blank=True, help_text="Access token or password; empty if an SSH key is used.")
    sign_in_url = serializers.CharField(
        allow_blank=True, help_text="Address that opens the link signed in; empty: the text itself, with the secret."
    )
    is_open = serializers.BooleanField(
        help_text="Whether whoever knows the address can use it: the program asks for no token."
    )


@extend_schema_serializer(many=False)
class EventPage(serializers.Serializer[Any]):
    items = EventOut(many=True)
    next_cursor = serializers.CharField(allow_null=True)
