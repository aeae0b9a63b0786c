"""State of the simulated clusters, as etcd holds that of a real one.

Only the simulated provisioner reads or writes it.
"""

from django.db import models


class SimulatedPod(models.Model):
    name = models.CharField(primary_key=True, max_length=80)
    nodes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    slow = models.BooleanField(default=False)  # is slow to be deleted, too
    refused = models.CharField(max_length=200, blank=True, default="")
    last_command = models.CharField(max_length=2000, blank=True, default="", db_default="")  # run beside its program
    last_command_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)  # set when its deletion is requested: slow deletions end in the future

    def __str__(self) -> str:
        return self.name


class SimulatedVolume(models.Model):
    """A volume in a simulated cluster, with the provision spec that used it last."""

    name = models.CharField(primary_key=True, max_length=80)
    size_gib = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    last_used_by = models.CharField(max_length=80, blank=True, default="")
    gone_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class SimulatedNode(models.Model):
    """Partitioning state of a simulated node, with the faults to inject next."""

    node = models.CharField(primary_key=True, max_length=40)
    config = models.CharField(max_length=63, blank=True, default="")
    configured_at = models.DateTimeField(null=True)  # null: idle
    version = models.PositiveIntegerField(default=1)
    tainted = models.BooleanField(default=False)
    known = models.JSONField(default=dict)  # layouts by name: GPU index to profile counts
    cuts = models.JSONField(default=dict)  # its present partitioning
    pending_faults = models.JSONField(default=list)  # "dawdles", "wedges" or "fails" for each coming attempt; "": none
    fault = models.CharField(max_length=10, blank=True, default="")  # fault of the present attempt

    def __str__(self) -> str:
        return self.node
