"""Telemetry: places whose use is measured, batches of samples, and what was measured.

Samples, minutes and hours are partitioned by day; `broker/migrations/sql/telemetry.sql` creates them.
"""

from django.contrib.postgres.fields import IntegerRangeField
from django.db import models
from django.db.models import Q

from broker.models.inventory import Gpu, Node


class GpuSlot(models.Model):
    """A whole GPU or one place for a MIG device on it, whoever holds it."""

    id = models.AutoField(primary_key=True)
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="slots", db_index=False)
    placement = IntegerRangeField()  # memory slices, as an allocation's; a whole GPU covers the grid

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gpu", "placement"], name="slot_once_per_gpu")]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.placement}"


class SampleBatch(models.Model):
    """Samples that one node sent together; sending them again changes nothing."""

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="+", db_index=False)
    boot_id = models.CharField(max_length=64)  # of the node's system, so that numbers may begin again
    seq = models.BigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    received_at = models.DateTimeField()
    samples = models.PositiveIntegerField()
    rolled_up = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "boot_id", "seq"], name="batch_once")]
        indexes = [models.Index(fields=["last_at"], name="batch_not_rolled_up", condition=Q(rolled_up=False))]

    def __str__(self) -> str:
        return f"{self.node_id} {self.seq}"


class _Measured(models.Model):
    pk = models.CompositePrimaryKey("slot_id", "at")
    slot = models.ForeignKey(GpuSlot, on_delete=models.DO_NOTHING, related_name="+")
    at = models.DateTimeField()  # for a minute or hour, its start
    energy_mj = models.BigIntegerField(null=True)
    memory_used_mib = models.IntegerField(null=True)
    power_dw = models.IntegerField(null=True)
    throttle_reasons = models.IntegerField(null=True)
    engine_active = models.SmallIntegerField(null=True)
    sm_active = models.SmallIntegerField(null=True)
    tensor_active = models.SmallIntegerField(null=True)
    dram_active = models.SmallIntegerField(null=True)
    temperature_c = models.SmallIntegerField(null=True)

    class Meta:
        abstract = True
        managed = False


class GpuSample(_Measured):
    """What a slot did in the ten seconds before `at`; null is unknown."""

    pcie_rx_kib = models.IntegerField(null=True)
    pcie_tx_kib = models.IntegerField(null=True)
    sm_clock_mhz = models.SmallIntegerField(null=True)

    class Meta(_Measured.Meta):
        abstract = False
        db_table = "broker_gpusample"

    def __str__(self) -> str:
        return f"{self.slot_id} {self.at}"


class GpuMinute(_Measured):
    """Means, maxima and sums of a minute; `samples` tells how much of it is known."""

    memory_max_mib = models.IntegerField(null=True)
    engine_max = models.SmallIntegerField(null=True)
    samples = models.SmallIntegerField()
    throttled_samples = models.SmallIntegerField()

    class Meta(_Measured.Meta):
        abstract = False
        db_table = "broker_gpuminute"

    def __str__(self) -> str:
        return f"{self.slot_id} {self.at}"


class GpuHour(_Measured):
    """As a minute, for an hour."""

    memory_max_mib = models.IntegerField(null=True)
    engine_max = models.SmallIntegerField(null=True)
    samples = models.SmallIntegerField()
    throttled_samples = models.SmallIntegerField()

    class Meta(_Measured.Meta):
        abstract = False
        db_table = "broker_gpuhour"

    def __str__(self) -> str:
        return f"{self.slot_id} {self.at}"
