"""GPU models, and draft offerings derived from the inventory."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from broker.domain.geometry.cpu_blocks import CPU_MODEL, VCPUS_PER_UNIT
from broker.domain.geometry.gpu_models import GpuModelSpec, load_models, model_entry
from broker.domain.geometry.profiles import Profile
from broker.domain.geometry.quota_units import quota_milli_units
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.models import Allocation, Gpu, GpuModel, LayoutPolicy, Offering
from broker.provisioners.kubernetes.drivers.driver_registry import dynamic_isolations
from broker.services.inventory.node_supplies import derived_resources, load_node_supplies
from tenants.services.rls import system_scope

GEOMETRY_FILE = Path(__file__).resolve().parents[2] / "mig_geometry.json"


@cache
def gpu_model_specs() -> dict[str, GpuModelSpec]:
    """Return every listed model by name, from the geometry file and the setting, and CPU.

    Raises ImproperlyConfigured when the setting is invalid.
    """
    try:
        listed = load_models(GEOMETRY_FILE.read_text(), settings.EXTRA_GPU_MODELS)
        return {spec.name: spec for spec in (*listed, CPU_MODEL)}
    except ValueError as error:
        raise ImproperlyConfigured(f"GPUBROKER_EXTRA_GPU_MODELS: {error}") from error


def gpu_model_spec(model: str) -> GpuModelSpec:
    """Return a listed or discovered GPU model's spec; KeyError if unknown."""
    return gpu_model_specs().get(model) or _discovered_spec(model)


@cache
def _discovered_spec(model: str) -> GpuModelSpec:
    row = GpuModel.objects.filter(pk=model, discovered=True).first()
    if row is None:
        raise KeyError(f"unknown GPU model {model!r}; known models: {', '.join(gpu_model_specs())}")
    (spec,) = load_models(json.dumps({"models": [row.spec]}))
    return spec


def add_discovered_models(specs: Iterable[GpuModelSpec]) -> None:
    """Add the models that drivers made for GPUs that no list names."""
    new = [spec for spec in specs if spec.name not in gpu_model_specs()]
    GpuModel.objects.bulk_create([_model_row(spec, discovered=True) for spec in new], ignore_conflicts=True)


def _model_row(spec: GpuModelSpec, *, discovered: bool) -> GpuModel:
    return GpuModel(
        name=spec.name,
        memory_gb=spec.memory_gb,
        memory_grid=spec.grid,
        compute_slices=spec.compute,
        spec=model_entry(spec),
        discovered=discovered,
    )


@cache
def profile_named(model: str, profile: str, isolation: str) -> Profile:
    """Return the domain profile that a row names; raise ValueError if it is unknown.

    This is the only conversion from rows to the domain's profiles.
    """
    return gpu_model_spec(model).profile(profile, Isolation(isolation))


def profile_of(offering: Offering) -> Profile:
    """Return the profile an offering sells."""
    return profile_named(offering.model, offering.profile, offering.isolation)


def load_gpu_models() -> int:
    """Write all listed GPU models as rows, delete unlisted ones, and return the count.

    Models that were discovered in clusters stay.

    Raises ImproperlyConfigured when a model still used by GPUs or offerings is no longer known, or when its
    memory grid changed while leases hold its GPUs.
    """
    for row in GpuModel.objects.all():
        _check_model_unchanged(row)
    GpuModel.objects.bulk_create(
        [_model_row(spec, discovered=False) for spec in gpu_model_specs().values()],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["memory_gb", "memory_grid", "compute_slices", "spec", "discovered"],
    )
    GpuModel.objects.exclude(pk__in=gpu_model_specs()).exclude(discovered=True).delete()
    return len(gpu_model_specs())


def _check_model_unchanged(row: GpuModel) -> None:
    spec = gpu_model_specs().get(row.name)
    if spec is None and not row.discovered and (row.gpu_set.exists() or row.offering_set.exists()):
        raise ImproperlyConfigured(
            f"GPUBROKER_EXTRA_GPU_MODELS no longer contains {row.name}, which GPUs or offerings use. Add it again."
        )
    if spec and spec.grid != row.memory_grid:
        with system_scope():
            held = Allocation.objects.filter(gpu__gpu_model=row, released_at=None).exists()
        if held:
            raise ImproperlyConfigured(
                f"GPUBROKER_EXTRA_GPU_MODELS counts {row.name} in {spec.grid} units, but active leases use"
                f" {row.memory_grid}. Change it after they have ended."
            )


def derive_offerings(*, now: datetime, any_share: bool = False) -> int:
    """Draft an offering for every profile the inventory can sell; return how many are new.

    Profiles are the whole GPU and every plain MIG slice (no media or graphics variants) that at least one
    GPU publishes, and the shares that nodes or their cluster's driver offer, for on-demand and spot. A
    simulated cluster can share its GPUs in any way, so its shares are drafted only with `any_share`. CPU,
    memory and scratch are the smallest share that a node of the model and region has. Staff then edit and
    publish the offerings.
    """
    supplies = load_node_supplies()
    sold = [*_dedicated_profiles_available(), *_configured_shares(), *_on_demand_shares(any_share)]
    rows = [
        Offering(
            gpu_model_id=model,
            profile=profile.name,
            isolation=profile.isolation,
            price_class=price_class,
            region=region,
            label=label_of(gpu_model_spec(model), profile),
            milli_units=quota_milli_units(profile, gpu_model_spec(model)),
            memory_gb=memory_of(gpu_model_spec(model), profile),
            cpu_milli=resources.cpu_milli,
            host_memory_mib=resources.memory_mib,
            scratch_mib=resources.scratch_mib,
            created_at=now,
        )
        for model, region, profile in sorted(sold, key=lambda each: each[:2])
        for grid in [gpu_model_spec(model).grid]
        for resources in [derived_resources(supplies[model, region], profile.memory, grid, model=model)]
        for price_class in (PriceClass.ON_DEMAND, PriceClass.SPOT)
    ]
    before = Offering.objects.count()
    Offering.objects.bulk_create(rows, ignore_conflicts=True)
    return Offering.objects.count() - before


def _dedicated_profiles_available() -> list[tuple[str, str, Profile]]:
    """Return (model, region, profile) of whole GPUs and MIG slices the inventory supports."""
    published = defaultdict[tuple[str, str], list[dict[str, list[int]] | None]](list)
    for model, region, offered in Gpu.objects.values_list("gpu_model", "node__cluster__region", "published").distinct():
        published[model, region].append(offered)
    return [
        (model, region, profile)
        for (model, region), its in published.items()
        for profile in plain_profiles(gpu_model_spec(model))
        if any(offered is None or offered.get(profile.name) for offered in its)
    ]


def _configured_shares() -> list[tuple[str, str, Profile]]:
    """Return (model, region, profile) of shares that nodes are configured to offer."""
    unwalled = Isolation.SOFT.value, Isolation.NONE.value
    cut = Gpu.objects.filter(layout_policy=LayoutPolicy.FIXED, fixed_layout__0__isolation__in=unwalled)
    columns = ("gpu_model", "node__cluster__region", "fixed_layout__0__profile", "fixed_layout__0__isolation")
    found = sorted(set(cut.values_list(*columns)))
    return [(model, region, profile_named(model, name, how)) for model, region, name, how in found]


def _on_demand_shares(any_share: bool) -> Iterator[tuple[str, str, Profile]]:
    """Yield (model, region, profile) of shares created on demand from whole GPUs."""
    whole = Gpu.objects.filter(layout_policy=LayoutPolicy.DYNAMIC)
    columns = "gpu_model", "node__cluster__region", "driver", "node__cluster__driver"
    able = set[tuple[str, str, Isolation]]()
    for model, region, own_driver, cluster_driver in set(whole.values_list(*columns)):
        driver = own_driver or cluster_driver
        if driver or any_share:
            able |= {
                (model, region, how) for how in (Isolation.SOFT, Isolation.NONE) if how in dynamic_isolations(driver)
            }
    for model, region, how in sorted(able):
        for profile in gpu_model_spec(model).profiles_with(how):
            yield model, region, profile


def plain_profiles(spec: GpuModelSpec) -> list[Profile]:
    """Return the profiles worth an offering: the whole GPU, then slices by size.

    Slices come from large to small.
    """
    slices = [p for p in spec.profiles_with(Isolation.HARDWARE) if "+" not in p.name and "-" not in p.name]
    slices.sort(key=lambda p: (-p.memory, -p.compute))
    return [*spec.profiles_with(Isolation.DEVICE), *slices]


def memory_of(spec: GpuModelSpec, profile: Profile) -> int:
    """Return a profile's GPU memory in GB, from its name or fraction."""
    if spec.has_gpu and profile.isolation is Isolation.HARDWARE:
        return int(profile.name.partition("g.")[2].partition("gb")[0])
    return spec.memory_gb * profile.memory // spec.grid


def model_label(model: str) -> str:
    """Return a model's full name for people: H100 PCIe 80GB."""
    return gpu_model_spec(model).label


def label_of(spec: GpuModelSpec, profile: Profile) -> str:
    """Return the catalogue label of a profile.

    Examples: `H200 SXM 141GB whole GPU`, `H200 SXM 141GB 3g.71gb`, `T4 16GB half, time-sliced`, `CPU 4 vCPU`.
    """
    if not spec.has_gpu:
        return f"{spec.label} {profile.compute * VCPUS_PER_UNIT} vCPU"
    suffix = {Isolation.SOFT: ", memory capped", Isolation.NONE: ", time-sliced"}.get(profile.isolation, "")
    shape = "whole GPU" if profile.isolation is Isolation.DEVICE else profile.name
    return f"{spec.label} {shape}{suffix}"
