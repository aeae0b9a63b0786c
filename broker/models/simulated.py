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
