"""Shapes of leases and what they are made of, on the wire: nothing but shape."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from broker.domain.placement.topology import ASKED
from broker.domain.states import EndReason, LeaseState
from broker.domain.vetting import LONGEST_KEY, LONGEST_VALUE, MOST_KEYS, MOST_VARIABLES
from broker.domain.workloads import TEMPLATES
from broker.models import Allocation, Lease, Transition
from tenants.api.fields import Name, Strict, Tags
from tenants.domain.text import has_control

BIGGEST = 2**31 - 1
STATES = [state.value for state in LeaseState]
REASONS = [reason.value for reason in EndReason]


class Line(serializers.CharField):
    """Text for a machine, such as an image or a command: no control characters but tab and newline."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text = str(super().to_internal_value(data))
        if has_control(text.replace("\n", " ").replace("\t", " ")):
            raise serializers.ValidationError("May hold no control or invisible characters.", "control")
        return text


class Variables(serializers.DictField):
    """A map of words to text, such as `{"MODE": "train"}`: what may stand in it is a service's word."""

    def __init__(self, **options: Any) -> None:
        text = serializers.CharField(
            max_length=LONGEST_VALUE, allow_blank=True, trim_whitespace=False, allow_null=False
        )
        super().__init__(child=text, **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > MOST_VARIABLES:
            raise serializers.ValidationError(f"May hold at most {MOST_VARIABLES} variables.", "too_many")
        found: dict[str, Any] = super().to_internal_value(data)
        return found


class LeaseWanted(Strict):
    """What a lease is asked for with."""

    name = Name()
    project = serializers.CharField(max_length=40)
    offering = serializers.CharField(max_length=40)
    quantity = serializers.IntegerField(min_value=1, max_value=BIGGEST, default=1)
    same_node = serializers.BooleanField(default=False)
    topology = serializers.ChoiceField(
        choices=list(ASKED),
        allow_blank=True,
        default="",
        help_text="How near whole cards of one node are to each other: `nvlink`, or `numa` for one processor.",
    )
    max_duration_s = serializers.IntegerField(min_value=1, max_value=BIGGEST)
    end_date = serializers.DateTimeField(allow_null=True, default=None)
    image = Line(max_length=300, allow_blank=True, default="")
    command = Line(max_length=2000, allow_blank=True, default="")
    workload = serializers.ChoiceField(choices=list(TEMPLATES), allow_blank=True, default="")
    env = Variables(default=dict)
    ssh_keys = serializers.ListField(child=Line(max_length=LONGEST_KEY), max_length=MOST_KEYS, default=list)
    volume = serializers.CharField(
        max_length=40,
        allow_blank=True,
        default="",
        help_text="The id of a volume of the project that no lease has.",
    )
    movable = serializers.BooleanField(
        default=False,
        help_text="Whether we may stop it and start it on another card, after notice: its volume stays, and the"
        " time in between is not charged. Refused for several together and for shares of cards: they stay.",
    )
    tags = Tags(default=dict)
    quote = serializers.CharField(
        max_length=1000,
        allow_blank=True,
        default="",
        help_text="The `quote` of an answer of `POST /quotes`: it is charged at that price for its whole life.",
    )


class LeaseChange(Strict):
    name = Name(required=False)
    movable = serializers.BooleanField(required=False)
    tags = Tags(required=False)


class Extension(Strict):
    more_s = serializers.IntegerField(min_value=1, max_value=BIGGEST)


class Spec(serializers.Serializer[Lease]):
    """What was asked for."""

    offering = serializers.CharField()
    project = serializers.CharField()
    quantity = serializers.IntegerField()
    same_node = serializers.BooleanField()
    topology = serializers.CharField()
    max_duration_s = serializers.IntegerField()
    end_date = serializers.DateTimeField(allow_null=True)
    image = serializers.CharField()
    command = serializers.CharField()
    workload = serializers.CharField()
    env_names = serializers.ListField(child=serializers.CharField())
    ssh_keys = serializers.ListField(child=serializers.CharField())
    volume = serializers.CharField(allow_null=True)
    movable = serializers.BooleanField()
    tags = serializers.DictField(child=serializers.CharField())
    quote = serializers.CharField(allow_null=True)


class ConditionOut(serializers.Serializer[Any]):
    type = serializers.CharField()
    status = serializers.BooleanField()
    message = serializers.CharField()


class Progress(serializers.Serializer[Any]):
    text = serializers.CharField()
    percent = serializers.IntegerField(allow_null=True)


class MoveAhead(serializers.Serializer[Any]):
    """A move to another card that its tenant was told of: `noticed`, `moving`, or `returning` where it was."""

    state = serializers.CharField()
    not_before = serializers.DateTimeField(allow_null=True)


class Status(serializers.Serializer[Lease]):
    """Where it stands; nothing of it can be written."""

    state = serializers.ChoiceField(choices=STATES)
    conditions = ConditionOut(many=True)
    waits_for = serializers.CharField()
    queue_position = serializers.IntegerField(allow_null=True)
    progress = Progress(allow_null=True)
    move = MoveAhead(allow_null=True)
    end_reason = serializers.ChoiceField(choices=REASONS)
    generation = serializers.IntegerField()


class Who(serializers.Serializer[Any]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF's own is set per instance


class LeaseOut(serializers.Serializer[Lease]):
    """A lease: what was asked for, where it stands, when what happened."""

    id = serializers.CharField()
    name = serializers.CharField()
    spec = Spec()
    status = Status()
    requested_by = Who()
    created_at = serializers.DateTimeField()
    active_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField()

    def to_representation(self, lease: Lease) -> dict[str, Any]:
        """Written by hand: the fields above are its description, and this costs a tenth of walking them."""
        places = self.context.get("places", {})
        place = places.get(lease.pk)
        move = self.context.get("moves", {}).get(lease.pk) if lease.movable else None
        return {
            "id": lease.pk,
            "name": lease.name,
            "spec": {
                "offering": lease.offering_id,
                "project": lease.project_id,
                "quantity": lease.quantity,
                "same_node": lease.same_node,
                "topology": lease.topology,
                "max_duration_s": lease.max_duration_s,
                "end_date": lease.end_date,
                "image": lease.image,
                "command": lease.command,
                "workload": lease.workload,
                "env_names": sorted(lease.env),
                "ssh_keys": lease.ssh_keys,
                "volume": lease.volume_id,
                "movable": lease.movable,
                "tags": lease.tags,
                "quote": lease.quote_id or None,
            },
            "status": {
                "state": str(lease.state),
                "conditions": [
                    {"type": kind, "status": True, "message": message}
                    for kind, message in lease.conditions.items()
                ],
                "waits_for": lease.waits_for,
                "queue_position": place.place if place else None,
                "progress": lease.progress or None,
                "move": {"state": move.state, "not_before": move.not_before} if move else None,
                "end_reason": lease.end_reason,
                "generation": lease.generation,
            },
            "requested_by": {"id": lease.requested_by, "label": lease.requested_by_label},
            "created_at": lease.created_at,
            "active_at": lease.active_at,
            "ends_at": lease.ends_at,
            "ended_at": lease.ended_at,
            "version": lease.version,
        }


class TransitionOut(serializers.ModelSerializer[Transition]):
    actor = serializers.SerializerMethodField()

    class Meta:
        model = Transition
        fields = ("seq", "at", "before", "after", "reason", "cause", "generation", "actor")

    def get_actor(self, step: Transition) -> dict[str, str]:
        """Tell who; of an operator only that it was one."""
        if step.actor_kind == "staff":
            return {"kind": "operator", "label": "an operator"}
        return {"kind": step.actor_kind, "label": step.actor_label}


class AllocationOut(serializers.ModelSerializer[Allocation]):
    placement = serializers.SerializerMethodField()
    gpu_model = serializers.CharField(source="gpu.gpu_model_id")
    card = serializers.IntegerField(source="gpu.index")
    node = serializers.CharField(source="gpu.node.name")
    cluster = serializers.CharField(source="gpu.node.cluster.name")

    class Meta:
        model = Allocation
        fields = (
            "id",
            "generation",
            "profile",
            "isolation",
            "gpu_model",
            "cluster",
            "node",
            "card",
            "placement",
            "for_move",
            "held_at",
            "released_at",
        )
        extra_kwargs = {"for_move": {"help_text": "Held beside the present place while the lease moves."}}

    def get_placement(self, allocation: Allocation) -> dict[str, int]:
        """Return the run of memory slices on the card."""
        return {
            "start": allocation.placement.lower,
            "size": allocation.placement.upper - allocation.placement.lower,
        }


class QueueEntryOut(serializers.Serializer[Lease]):
    """One request that waits."""

    lease = serializers.CharField(source="pk")
    name = serializers.CharField()
    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    quantity = serializers.IntegerField()
    since = serializers.DateTimeField(source="queues_since")
    position = serializers.SerializerMethodField()
    waiting = serializers.SerializerMethodField()
    waits_for = serializers.CharField()

    def get_position(self, lease: Lease) -> int | None:
        """Return its place among all who wait for the model in the region."""
        place = self.context["places"].get(lease.pk)
        return place.place if place else None

    def get_waiting(self, lease: Lease) -> int | None:
        """Return how many wait there."""
        place = self.context["places"].get(lease.pk)
        return place.of if place else None


class EventOut(serializers.Serializer[Any]):
    """One step of a lease, as the live stream has it; its id is a cursor."""

    id = serializers.CharField()
    type = serializers.CharField()
    at = serializers.DateTimeField()
    lease = serializers.CharField()
    name = serializers.CharField()
    seq = serializers.IntegerField()
    generation = serializers.IntegerField()
    project = serializers.CharField()
    offering = serializers.CharField()
    before = serializers.ChoiceField(choices=STATES, allow_null=True)
    after = serializers.ChoiceField(choices=STATES)
    end_reason = serializers.ChoiceField(choices=REASONS, allow_null=True)
    cause = serializers.CharField()
    actor = serializers.CharField()


class Whole(serializers.Serializer[Any]):
    """A list that is always complete, in the shape of a page."""

    next_cursor = serializers.CharField(allow_null=True)
    total_estimate = serializers.IntegerField()


class Transitions(serializers.Serializer[Any]):
    next_cursor = serializers.CharField(allow_null=True)
    total_estimate = serializers.IntegerField()
    items = TransitionOut(many=True)


class Allocations(Whole):
    items = AllocationOut(many=True)


class ConnectionOut(serializers.Serializer[Any]):
    label = serializers.CharField(help_text="What it leads to: SSH, JupyterLab.")  # type: ignore[assignment]
    line = serializers.CharField(help_text="A command for a shell, or an address.")
    is_link = serializers.BooleanField(help_text="Whether the line is an address for a browser.")
    secret = serializers.CharField(allow_blank=True, help_text="What opens it; empty where a key does.")


class Connections(Whole):
    items = ConnectionOut(many=True)


@extend_schema_serializer(many=False)
class EventPage(serializers.Serializer[Any]):
    items = EventOut(many=True)
    next_cursor = serializers.CharField(allow_null=True)
