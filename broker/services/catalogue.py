"""GPU models as rows and as the domain knows them, and offerings derived from what stands in the racks."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from broker.domain.gpu_models import GpuModelSpec, load_models
from broker.domain.profiles import Profile
from broker.domain.states import Isolation, PriceClass
from broker.domain.units import milli_units
from broker.models import Allocation, Gpu, GpuModel, LayoutPolicy, Offering
from broker.provisioners.kubernetes.drivers.choosing import sold_uncut
from tenants.services.walls import as_sweep

GEOMETRY = Path(__file__).resolve().parent.parent / "mig_geometry.json"


@cache
def specs() -> dict[str, GpuModelSpec]:
    """Return every GPU model that the project's own geometry file or the operator's setting knows, by name.

    Raises ImproperlyConfigured where the setting cannot be taken.
    """
    try:
        return {spec.name: spec for spec in load_models(GEOMETRY.read_text(), settings.GPU_MODELS)}
    except ValueError as error:
        raise ImproperlyConfigured(f"GPUBROKER_GPU_MODELS: {error}") from error


def spec_of(model: str) -> GpuModelSpec:
    """Return one model's spec; raises KeyError for one that is not known."""
    if model not in specs():
        raise KeyError(f"no GPU model {model!r}; known are: {', '.join(specs())}")
    return specs()[model]


@cache
def shape(model: str, profile: str, isolation: str) -> Profile:
    """Return the profile that a row names: the one conversion to the domain's; raises ValueError for an unknown one."""
    return spec_of(model).profile(profile, Isolation(isolation))


def profile_of(offering: Offering) -> Profile:
    """Return the shape an offering sells."""
    return shape(offering.model, offering.profile, offering.isolation)


def load_gpu_models() -> int:
    """Write all models that are known as rows, and forget those that are not; return how many there are.

    Raises ImproperlyConfigured where a model that cards or offerings are of is known no longer, or is counted in other
    units while leases lie on its cards.
    """
    files = [GEOMETRY.read_text(), *filter(None, [settings.GPU_MODELS])]
    entries = {entry["name"]: entry for file in files for entry in json.loads(file)["models"]}
    for row in GpuModel.objects.all():
        _must_be_as_known(row)
    GpuModel.objects.bulk_create(
        [
            GpuModel(
                name=spec.name,
                memory_gb=spec.memory_gb,
                memory_grid=spec.grid,
                compute_slices=spec.compute,
                spec=entries[spec.name],
            )
            for spec in specs().values()
        ],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["memory_gb", "memory_grid", "compute_slices", "spec"],
    )
    GpuModel.objects.exclude(pk__in=entries).delete()
    return len(entries)


def _must_be_as_known(row: GpuModel) -> None:
    spec = specs().get(row.name)
    if spec is None and (row.gpu_set.exists() or row.offering_set.exists()):
        raise ImproperlyConfigured(
            f"GPUBROKER_GPU_MODELS does not name {row.name} any longer, of which there are cards or offerings: name it"
            " again."
        )
    if spec and spec.grid != row.memory_grid:
        with as_sweep():
            held = Allocation.objects.filter(gpu__gpu_model=row, released_at=None).exists()
        if held:
            raise ImproperlyConfigured(
                f"GPUBROKER_GPU_MODELS counts {row.name} in {spec.grid} units, and leases lie on such cards that are"
                f" counted in {row.memory_grid}: set it when they have ended."
            )


def derive_offerings(*, now: datetime, any_share: bool = False) -> int:
    """Draft an offering for every shape the inventory could sell and nobody has described; return how many.

    Shapes: the whole card and every plain MIG slice (no media or graphics variants), but for what no card that there is
    publishes, and the shares that cards are divided into or that their cluster's driver divides them into for each
    lease, for on-demand and spot. A simulated cluster divides its cards into whatever is sold: shares of it are drafted
    only when asked for. Staff then edit and publish them.
    """
    sold = [
        *_walled_there(),
        *_shares_there(),
        *_shares_for_each_lease(any_share),
    ]
    rows = [
        Offering(
            gpu_model_id=model,
            profile=profile.name,
            isolation=profile.isolation,
            price_class=price_class,
            region=region,
            label=label_of(spec_of(model), profile),
            milli_units=milli_units(profile, spec_of(model)),
            memory_gb=memory_of(spec_of(model), profile),
            created_at=now,
        )
        for model, region, profile in sorted(sold, key=lambda each: each[:2])
        for price_class in (PriceClass.ON_DEMAND, PriceClass.SPOT)
    ]
    before = Offering.objects.count()
    Offering.objects.bulk_create(rows, ignore_conflicts=True)
    return Offering.objects.count() - before


def _walled_there() -> list[tuple[str, str, Profile]]:
    """Return what cards can be cut into, or may once be, by model and region."""
    published = defaultdict[tuple[str, str], list[dict[str, list[int]] | None]](list)
    for model, region, told in Gpu.objects.values_list(
        "gpu_model", "node__cluster__region", "published"
    ).distinct():
        published[model, region].append(told)
    return [
        (model, region, profile)
        for (model, region), its in published.items()
        for profile in plain_profiles(spec_of(model))
        if any(told is None or told.get(profile.name) for told in its)
    ]


def _shares_there() -> list[tuple[str, str, Profile]]:
    """Return the shares that nodes divide their cards into by themselves, by model and region."""
    unwalled = Isolation.SOFT.value, Isolation.NONE.value
    cut = Gpu.objects.filter(layout_policy=LayoutPolicy.FIXED, fixed_layout__0__isolation__in=unwalled)
    columns = (
        "gpu_model",
        "node__cluster__region",
        "fixed_layout__0__profile",
        "fixed_layout__0__isolation",
    )
    found = sorted(set(cut.values_list(*columns)))
    return [(model, region, shape(model, name, how)) for model, region, name, how in found]


def _shares_for_each_lease(any_share: bool) -> Iterator[tuple[str, str, Profile]]:
    """Yield the shares that whole cards can be divided into when a lease comes, by model and region."""
    whole = Gpu.objects.filter(layout_policy=LayoutPolicy.DYNAMIC)
    columns = "gpu_model", "node__cluster__region", "node__cluster__driver"
    able = set[tuple[str, str, Isolation]]()
    for model, region, driver in set(whole.values_list(*columns)):
        if driver or any_share:
            able |= {
                (model, region, how) for how in (Isolation.SOFT, Isolation.NONE) if how in sold_uncut(driver)
            }
    for model, region, how in sorted(able):
        for profile in spec_of(model).sold_as(how):
            yield model, region, profile


def plain_profiles(spec: GpuModelSpec) -> list[Profile]:
    """Return the shapes worth a row of their own: the whole card, then slices from large to small."""
    slices = [p for p in spec.sold_as(Isolation.HARDWARE) if "+" not in p.name and "-" not in p.name]
    slices.sort(key=lambda p: (-p.memory, -p.compute))
    return [spec.whole, *slices]


def memory_of(spec: GpuModelSpec, profile: Profile) -> int:
    """Return a shape's memory in GB: what its name says, else its share of the card."""
    if profile.isolation is Isolation.HARDWARE:
        return int(profile.name.partition("g.")[2].partition("gb")[0])
    return spec.memory_gb * profile.memory // spec.grid


def short_name(model: str) -> str:
    """Return the model as people say it: H200 for H200-141GB."""
    return model.partition("-")[0]


def label_of(spec: GpuModelSpec, profile: Profile) -> str:
    """Return what the catalogue calls it: `H200 whole card`, `H200 3g.71gb`, `H200 half, time-sliced`."""
    suffix = {Isolation.SOFT: ", memory capped", Isolation.NONE: ", time-sliced"}.get(profile.isolation, "")
    shape = "whole card" if profile.isolation is Isolation.DEVICE else profile.name
    return f"{short_name(spec.name)} {shape}{suffix}"
