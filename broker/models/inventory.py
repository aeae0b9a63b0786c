"""Inventory: clusters, nodes and GPUs. Not tenant data; operators and workers write it."""

from django.db import models
from django.db.models import Q

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, device_name
from broker.domain.geometry.host_resources import HostResources
from broker.models.keys import ID_LENGTH, cluster_id, gpu_id, node_id


class LayoutPolicy(models.TextChoices):
    FIXED = "fixed"  # only existing slices are sold
    DYNAMIC = "dynamic"  # slices are created for each lease


class NodeState(models.TextChoices):
    READY = "ready"
    CORDONED = "cordoned"  # nothing new is placed here
    DRAINING = "draining"  # nothing new is placed here, and leases are being ended or awaited
    LOST = "lost"


class GpuHealth(models.TextChoices):
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"


class GpuModel(models.Model):
    """A GPU model, from `broker/mig_geometry.json`, the setting, or a cluster's report.

    `broker.domain.geometry.gpu_models` reads its spec.
    """

    name = models.CharField(primary_key=True, max_length=60)
    memory_gb = models.PositiveIntegerField()
    memory_grid = models.PositiveSmallIntegerField()  # memory slices; 0: unknown until NVML answers
    compute_slices = models.PositiveSmallIntegerField()
    spec = models.JSONField()  # as an entry of that file
    discovered = models.BooleanField(default=False, db_default=False)  # made from what a node reported

    def __str__(self) -> str:
        return self.name

    @property
    def has_gpu(self) -> bool:
        """Return whether it is a GPU, not a block of CPUs."""
        return self.name != CPU_MODEL_NAME


class Cluster(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=cluster_id)
    name = models.CharField(max_length=60, unique=True)
    region = models.CharField(max_length=60)
    provisioner = models.CharField(max_length=20, default="simulated")  # a key of settings.PROVISIONERS
    driver = models.CharField(max_length=20, blank=True, default="")  # how its pods request slices
    driver_options = models.JSONField(default=dict)  # options of that driver
    address = models.CharField(max_length=300, blank=True, default="")  # of its API server, for display
    # Ingress: the domain below which each lease has a host name, what routes it (`ingress/<class>` or
    # `gateway/<namespace>/<name>`), and the SSH bastion. Empty: no access of that kind.
    domain = models.CharField(max_length=200, blank=True, default="")
    ingress = models.CharField(max_length=200, blank=True, default="")
    bastion = models.CharField(max_length=200, blank=True, default="")
    # Namespaces of the ingress controller and bastion; empty: derived from the fields above.
    allowed_namespaces = models.CharField(max_length=300, blank=True, default="", db_default="")
    tolerations = models.CharField(max_length=500, blank=True, default="", db_default="")  # sku=gpu:NoSchedule …
    uid = models.CharField(max_length=40, blank=True, default="")  # of its kube-system namespace at the first contact
    unreachable_since = models.DateTimeField(null=True)  # since when it is unreachable: nothing new is placed there
    unreachable_reason = models.CharField(max_length=200, blank=True, default="")
    # Reason if it was replaced or restored to an older state: ignored until an operator accepts it.
    frozen = models.CharField(max_length=200, blank=True, default="")
    # Why its inventory update waits for approval.
    inventory_paused_reason = models.CharField(max_length=200, blank=True, default="")
    accept_next_inventory = models.BooleanField(default=False)  # an operator said that the missing GPUs are really gone
    # Whether its owner lets two tenants share one GPU of isolation soft or none.
    allow_shared_gpus = models.BooleanField(default=False)
    # Whether nodes with a fixed layout are repartitioned on demand, without approval of each plan.
    auto_repartition = models.BooleanField(default=False)
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
    # Why its cluster places no new pods there (cordoned, not ready, tainted); empty: it does.
    unschedulable_reason = models.CharField(max_length=300, blank=True, default="", db_default="")
    # Set while it is closed because it did not accept a lease's pod, although its cluster says it is fine.
    refused_until = models.DateTimeField(null=True)
    refused_reason = models.CharField(max_length=300, blank=True, default="", db_default="")
    # What of it is not sold.
    inventory_problem = models.CharField(max_length=500, blank=True, default="", db_default="")
    # What it has for leases, after a margin for the system; zero: not reported.
    cpu_milli = models.PositiveIntegerField(default=0, db_default=0)
    memory_mib = models.PositiveIntegerField(default=0, db_default=0)
    scratch_mib = models.PositiveIntegerField(default=0, db_default=0)
    # Which published offering promises more than it has; empty: none does.
    resource_shortage = models.CharField(max_length=300, blank=True, default="", db_default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_once_per_cluster"),
            models.CheckConstraint(condition=Q(state__in=NodeState.values), name="node_state_known"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def unsold_reason(self) -> str:
        """Return why nothing is placed there, else what of it is not sold."""
        refused = self.refused_reason if self.refused_until else ""
        return self.unschedulable_reason or refused or self.resource_shortage or self.inventory_problem

    @property
    def host_resources(self) -> HostResources:
        """Return what it has for leases."""
        return HostResources(self.cpu_milli, self.memory_mib, self.scratch_mib)


class GpuQuerySet(models.QuerySet["Gpu"]):
    def without_cpu_blocks(self) -> "GpuQuerySet":
        """Return the GPUs alone, without blocks of CPUs."""
        return self.exclude(gpu_model=CPU_MODEL_NAME)

    def sellable(self) -> "GpuQuerySet":
        """Return the GPUs on which something new may be placed."""
        return self.filter(
            health=GpuHealth.HEALTHY,
            node__state=NodeState.READY,
            node__unschedulable_reason="",
            node__refused_until=None,
            node__resource_shortage="",
            out_of_service_since=None,
            foreign_holder="",
            node__cluster__unreachable_since=None,
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
    # Profiles it reports, `{profile: [first units]}`; null: not reported, or all that its model supports.
    published = models.JSONField(null=True)
    # How pods request its slices; empty: as in all of its cluster.
    driver = models.CharField(max_length=20, blank=True, default="", db_default="")
    # Pod or claim outside the broker that holds it or a slice of it, as namespace/name.
    foreign_holder = models.CharField(max_length=200, blank=True, default="", db_default="")
    # Links to other GPUs of its node: NVLink within one fabric, one CPU socket within one numa.
    fabric = models.CharField(max_length=64, blank=True, default="", db_default="")
    numa = models.CharField(max_length=64, blank=True, default="", db_default="")
    health = models.CharField(max_length=10, choices=GpuHealth, default=GpuHealth.HEALTHY)
    health_reason = models.CharField(max_length=200, blank=True, default="")
    health_since = models.DateTimeField()
    # Since when its node says that nothing can run on it: a fatal fault, or it is gone. Its leases are lost.
    lost_since = models.DateTimeField(null=True)
    # Set while its node is repartitioned. Stored here and not on the node, so that a placer that waits for the
    # GPU's lock reads it again.
    out_of_service_since = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    objects = GpuQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "index"], name="gpu_once_per_node"),
            models.CheckConstraint(condition=Q(health__in=GpuHealth.values), name="gpu_health_known"),
        ]

    def __str__(self) -> str:
        return device_name(self.gpu_model_id, self.index)

    @property
    def has_gpu(self) -> bool:
        """Return whether it is a GPU, not a block of CPUs."""
        return self.gpu_model_id != CPU_MODEL_NAME


class InventoryChange(models.Model):
    """Append-only record of a change to a GPU's health or a node's state.

    It tells what was out of service, and when.
    """

    at = models.DateTimeField()
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="+")
    gpu = models.ForeignKey(Gpu, null=True, on_delete=models.PROTECT, related_name="+")  # null: the node itself
    before = models.CharField(max_length=10)
    after = models.CharField(max_length=10)  # a NodeState or a Health
    reason = models.CharField(max_length=200, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["gpu", "at"], name="change_of_gpu")]

    def __str__(self) -> str:
        return f"{self.before} to {self.after}"
