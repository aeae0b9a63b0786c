"""Offerings: what is sold, as GPU profile, isolation, price class and region."""

from django.db import models
from django.db.models import Q

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, HostResources
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.models.inventory import GpuModel
from broker.models.keys import ID_LENGTH, offering_id


class OfferingState(models.TextChoices):
    DRAFT = "draft"
    PUBLISHED = "published"
    RETIRED = "retired"  # no new leases; running ones continue
    METERED = "metered"  # a storage offering: the price of volumes, never leased


class OfferingQuerySet(models.QuerySet["Offering"]):
    def published(self) -> "OfferingQuerySet":
        return self.filter(state=OfferingState.PUBLISHED)

    def storage(self) -> "OfferingQuerySet":
        """Return the storage offerings, which price volumes; one per region."""
        return self.filter(state=OfferingState.METERED)


class Offering(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=offering_id)
    gpu_model = models.ForeignKey(GpuModel, on_delete=models.PROTECT, null=True)  # null: a storage offering
    profile = models.CharField(max_length=30)  # name of the profile; "whole-gpu" for the whole device
    isolation = models.CharField(max_length=10)
    price_class = models.CharField(max_length=10)
    region = models.CharField(max_length=60)
    label = models.CharField(max_length=120)
    milli_units = models.PositiveIntegerField()  # thousandths of a quota unit that one slice uses
    memory_gb = models.PositiveIntegerField()
    # What one slice brings of its node; zero for storage.
    cpu_milli = models.PositiveIntegerField(default=DEFAULT_OF_A_GPU.cpu_milli, db_default=DEFAULT_OF_A_GPU.cpu_milli)
    host_memory_mib = models.PositiveIntegerField(
        default=DEFAULT_OF_A_GPU.memory_mib, db_default=DEFAULT_OF_A_GPU.memory_mib
    )
    scratch_mib = models.PositiveIntegerField(
        default=DEFAULT_OF_A_GPU.scratch_mib, db_default=DEFAULT_OF_A_GPU.scratch_mib
    )
    # Terms of a spot offering; null: as in the settings.
    spot_notice_s = models.PositiveIntegerField(null=True)
    spot_min_runtime_s = models.PositiveIntegerField(null=True)
    state = models.CharField(max_length=10, choices=OfferingState, default=OfferingState.DRAFT)
    created_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    objects = OfferingQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["gpu_model", "profile", "isolation", "price_class", "region"], name="offering_once"
            ),
            models.CheckConstraint(
                condition=Q(isolation__in=[i.value for i in Isolation]), name="offering_isolation_known"
            ),
            models.CheckConstraint(
                condition=Q(price_class__in=[p.value for p in PriceClass]), name="offering_class_known"
            ),
            models.CheckConstraint(condition=Q(state__in=OfferingState.values), name="offering_state_known"),
            models.CheckConstraint(
                condition=Q(gpu_model__isnull=True, state="metered")
                | Q(Q(gpu_model__isnull=False), ~Q(state="metered")),
                name="offering_of_gpus_or_storage",
            ),
            models.UniqueConstraint(fields=["region"], condition=Q(state="metered"), name="storage_once_a_region"),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def is_storage(self) -> bool:
        return self.gpu_model_id is None

    @property
    def is_cpu_only(self) -> bool:
        """Return whether it sells CPUs without a GPU."""
        return self.gpu_model_id == CPU_MODEL_NAME

    @property
    def has_gpu(self) -> bool:
        return self.gpu_model_id not in (None, CPU_MODEL_NAME)

    @property
    def host_resources(self) -> HostResources:
        """Return what one slice brings of its node."""
        return HostResources(self.cpu_milli, self.host_memory_mib, self.scratch_mib)

    @property
    def model(self) -> str:
        """Return the id of the GPU model, such as `H100-80`.

        Raises ValueError for a storage offering, which is never leased.
        """
        if self.gpu_model_id is None:
            raise ValueError(f"{self.label} is storage, not part of a GPU")
        return self.gpu_model_id
