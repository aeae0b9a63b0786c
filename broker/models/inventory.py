"""What there is to sell: clusters, their nodes, their cards. Not tenant data; staff and workers write it."""

from django.db import models
from django.db.models import Q

from broker.models.keys import ID_LENGTH, cluster_id, gpu_id, node_id


class LayoutPolicy(models.TextChoices):
    FIXED = "fixed"  # only the slices cut already are sold
    DYNAMIC = "dynamic"  # slices are cut for the lease


class NodeState(models.TextChoices):
    READY = "ready"
    CORDONED = "cordoned"  # nothing new is placed here
    DRAINING = "draining"  # nothing new, and leases are being ended or waited for
    LOST = "lost"


class Health(models.TextChoices):
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"


class GpuModel(models.Model):
    """A kind of card, of `broker/mig_geometry.json` or the setting; `broker.domain.gpu_models` reads its spec."""

    name = models.CharField(primary_key=True, max_length=60)
    memory_gb = models.PositiveIntegerField()
    memory_grid = models.PositiveSmallIntegerField()  # memory slices; 0: not cut before NVML answers
    compute_slices = models.PositiveSmallIntegerField()
    spec = models.JSONField()  # its entry there

    def __str__(self) -> str:
        return self.name


class Cluster(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=cluster_id)
    name = models.CharField(max_length=60, unique=True)
    region = models.CharField(max_length=60)
    provisioner = models.CharField(max_length=20, default="simulated")  # a key of settings.PROVISIONERS
    driver = models.CharField(max_length=20, blank=True, default="")  # how its pods ask for slices
    driver_options = models.JSONField(default=dict)  # how that driver is set up there
    address = models.CharField(max_length=300, blank=True, default="")  # its API's, for people to see
    # How people come in: a name below which each lease has its own, what routes it (`ingress/<class>` or
    # `gateway/<namespace>/<name>`), and the host that lets SSH through. Empty: not at all.
    domain = models.CharField(max_length=200, blank=True, default="")
    door = models.CharField(max_length=200, blank=True, default="")
    bastion = models.CharField(max_length=200, blank=True, default="")
    # The namespaces that what routes them runs in; empty: as far as the above tells.
    entrances = models.CharField(max_length=300, blank=True, default="", db_default="")
    uid = models.CharField(
        max_length=40, blank=True, default=""
    )  # of its kube-system, when it was first reached
    silent_since = models.DateTimeField(null=True)  # nothing new is placed in a cluster that does not answer
    silent_why = models.CharField(max_length=200, blank=True, default="")
    # Another cluster or an old state of it answers in its place: until a person speaks nothing it says is believed.
    frozen = models.CharField(max_length=200, blank=True, default="")
    halted = models.CharField(max_length=200, blank=True, default="")  # why its inventory waits for a person
    believes = models.BooleanField(default=False)  # a person said that what is missing from it is really gone
    # Whether its owner lets two tenants share one card of class soft or none.
    shares_soft_cards = models.BooleanField(default=False)
    # Whether nodes whose cut is fixed are cut anew for what is asked for, without anybody's yes to each plan.
    recuts = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=node_id)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=253)
    state = models.CharField(max_length=10, choices=NodeState, default=NodeState.READY)
    state_since = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_once_per_cluster"),
            models.CheckConstraint(condition=Q(state__in=NodeState.values), name="node_state_known"),
        ]

    def __str__(self) -> str:
        return self.name


class GpuQuerySet(models.QuerySet["Gpu"]):
    def sellable(self) -> "GpuQuerySet":
        """Cards on which something new may be placed."""
        return self.filter(
            health=Health.HEALTHY,
            node__state=NodeState.READY,
            closed_since=None,
            node__cluster__silent_since=None,
            node__cluster__frozen="",
        )


class Gpu(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=gpu_id)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="gpus")
    index = models.PositiveSmallIntegerField()
    gpu_model = models.ForeignKey(GpuModel, on_delete=models.PROTECT)
    uuid = models.CharField(max_length=300, unique=True)
    layout_policy = models.CharField(max_length=8, choices=LayoutPolicy, default=LayoutPolicy.DYNAMIC)
    fixed_layout = models.JSONField(default=list)  # [{"profile", "start", "size"}] when the policy is fixed
    # What it says can be cut from it, `{profile: [first units]}`; null: nobody told, or all that its model can.
    published = models.JSONField(null=True)
    # How it reaches the others of its node: cards of one fabric by NVLink, cards of one numa below one processor.
    fabric = models.CharField(max_length=64, blank=True, default="", db_default="")
    numa = models.CharField(max_length=64, blank=True, default="", db_default="")
    health = models.CharField(max_length=10, choices=Health, default=Health.HEALTHY)
    health_reason = models.CharField(max_length=200, blank=True, default="")
    health_since = models.DateTimeField()
    # While its node is cut anew. It stands here and not on the node, so that a placer that waits for the card's lock
    # reads it again.
    closed_since = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    objects = GpuQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "index"], name="gpu_once_per_node"),
            models.CheckConstraint(condition=Q(health__in=Health.values), name="gpu_health_known"),
        ]

    def __str__(self) -> str:
        return f"card {self.index}"


class InventoryChange(models.Model):
    """One append-only row per change of a card's health or a node's state: what was out of service, and when."""

    at = models.DateTimeField()
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="+")
    gpu = models.ForeignKey(Gpu, null=True, on_delete=models.PROTECT, related_name="+")  # None: the node
    before = models.CharField(max_length=10)
    after = models.CharField(max_length=10)  # a NodeState or a Health
    reason = models.CharField(max_length=200, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["gpu", "at"], name="change_of_card")]

    def __str__(self) -> str:
        return f"{self.before} to {self.after}"
