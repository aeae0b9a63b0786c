"""The simulated cluster's memory: what a real one would keep in etcd. Only its provisioner reads or writes it."""

from django.db import models


class SimulatedPod(models.Model):
    name = models.CharField(primary_key=True, max_length=80)
    nodes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    slow = models.BooleanField(default=False)  # takes its time to go, too
    refused = models.CharField(max_length=200, blank=True, default="")
    gone_at = models.DateTimeField(null=True)  # set when asked to go: slow deletes end in the future

    def __str__(self) -> str:
        return self.name


class SimulatedVolume(models.Model):
    """What a simulated cluster keeps of a volume, and which order wrote to it last."""

    name = models.CharField(primary_key=True, max_length=80)
    size_gib = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    last_used_by = models.CharField(max_length=80, blank=True, default="")
    gone_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class SimulatedNode(models.Model):
    """How a node is cut, what it was last told to become, and what its next attempts will suffer from."""

    node = models.CharField(primary_key=True, max_length=40)
    config = models.CharField(max_length=63, blank=True, default="")
    told_at = models.DateTimeField(null=True)  # None: at rest
    version = models.PositiveIntegerField(default=1)
    tainted = models.BooleanField(default=False)
    known = models.JSONField(default=dict)  # layouts by their name: card to counts
    cuts = models.JSONField(default=dict)  # what it is cut into now
    ills = models.JSONField(default=list)  # of the attempts to come: dawdles, wedges or fails, else it obeys
    ill = models.CharField(max_length=10, blank=True, default="")  # of the present attempt

    def __str__(self) -> str:
        return self.node
