"""Provision specs: a lease as its provisioner needs it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.utils.crypto import salted_hmac

from broker.domain.geometry.gpu_models import NOTIONAL_GRID
from broker.domain.lifecycle.states import LeaseCondition, LeaseState
from broker.domain.placement.warm_slices import PartitioningEffort
from broker.domain.workloads.templates import WorkloadTemplate
from broker.models import LayoutPolicy, Lease
from broker.provisioners.base import ProvisionSlice, ProvisionSpec, VolumeRef, spec_name
from broker.provisioners.kubernetes.observe.pod_observation import UNHEALTHY_DEVICE
from broker.services.inventory.device_losses import EXAMINED_REASONS
from broker.services.inventory.gpu_catalogue import gpu_model_specs
from broker.services.inventory.offering_resources import lease_resources
from broker.services.leases.lifecycle import extension
from broker.services.placement.leftover_slices import required_cut_efforts
from broker.services.secrets import variable_encryption
from broker.services.secrets.lease_secrets import read_secrets, unread_secrets
from broker.services.secrets.registry_secrets import read_login, unread_login
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql

TOKEN_LENGTH = 40
ATTEMPT_VARIABLE = "GPUBROKER_ATTEMPT"
ARRAY_INDEX_VARIABLE, ARRAY_SIZE_VARIABLE = "GPUBROKER_ARRAY_INDEX", "GPUBROKER_ARRAY_SIZE"
RUN_LIMIT_MARGIN = timedelta(minutes=1)  # the broker ends an overlong run first, and says why
SIMULATED = "simulated"  # the provisioner that simulates repartition times


class _HeldPlacement(NamedTuple):
    """The columns of one held placement that a provision spec needs."""

    gpu_id: str
    profile: str
    start: int
    end: int
    uuid: str
    grid: int
    memory_gb: int
    resource_name: str
    node_id: str
    host: str
    lost_since: datetime | None
    fault: str  # why its GPU or its slice is not healthy
    health_since: datetime
    cluster: str
    domain: str
    ingress: str
    tolerations: str
    frozen: str
    provisioner: str
    policy: str
    driver: str


def load_provision_spec(lease: Lease, *, generation: int | None = None, with_secrets: bool = False) -> ProvisionSpec:
    """Load the provision spec of a lease's generation; one query.

    Without `generation` that is the present one. `with_secrets` also reads the values of its secrets, which
    only who creates or repairs its objects needs.
    """
    generation = generation or lease.generation
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/leases/held_placements"), [lease.pk, generation])
        held = [_HeldPlacement(*row) for row in cursor.fetchall()]
    place = held[0] if held else None
    cuts = _cut_efforts(lease, held)
    secrets, secret_fault = read_secrets(lease) if with_secrets else (unread_secrets(lease), "")
    env, env_fault = _read_variables(lease, lease.env)
    template, template_fault = _read_template(lease)
    login, login_fault = read_login(lease) if with_secrets else (unread_login(lease), "")
    lost = min(((each.lost_since, each.fault) for each in held if each.lost_since), default=(None, ""))
    doubts = [(each.health_since, each.fault) for each in held if each.fault in EXAMINED_REASONS]
    doubted_since, doubt = min(doubts, default=(None, ""))
    soon = timedelta(seconds=settings.PROVISION_TIMEOUT_S)  # its duration counts from when it is active
    return ProvisionSpec(
        name=spec_name(lease.pk, generation),
        lease_id=lease.pk,
        generation=generation,
        placed_at=lease.state_since,
        image=lease.image,
        command=lease.command,
        workload=lease.workload,
        template=template,
        pull_secret=login,
        env=tuple(sorted((env | _run_variables(lease)).items())),
        secrets=secrets,
        pull_always=lease.pull_always,
        secret_fault=secret_fault or login_fault or env_fault or template_fault,
        ssh_keys=tuple(lease.ssh_keys),
        access_token=access_token(lease.pk),
        slices=tuple(_slice(each, how) for each, how in zip(held, cuts, strict=True)),
        cluster=place.cluster if place else "",
        domain=place.domain if place else "",
        ingress=place.ingress if place else "",
        tolerations=place.tolerations if place else "",
        frozen=place.frozen if place else "",
        gpu_lost_since=lost[0],
        gpu_fault=lost[1],
        device_doubt=doubt,
        device_doubted_since=doubted_since,
        provisioner=place.provisioner if place else "",
        tenant_id=lease.tenant_id,
        project_id=lease.project_id,
        gpu_model=lease.offering.model,
        gpu_label=_gpu_label(lease.offering.model),
        profile=lease.offering.profile,
        isolation=lease.offering.isolation,
        price_class=lease.offering.price_class,
        resources=lease_resources(lease),
        volume=_volume_spec(lease),
        paid_until=_paid_until(lease) or extension.end_when_active_from(lease, lease.state_since + soon),
        device_failed=lease.conditions.get(LeaseCondition.UNREACHABLE, "").startswith(UNHEALTHY_DEVICE),
        doubted=LeaseCondition.UNREACHABLE in lease.conditions,
    )


def _read_variables(lease: Lease, stored: dict[str, str]) -> tuple[dict[str, str], str]:
    """Return variables that a lease stores, and why they cannot be read."""
    try:
        return variable_encryption.decrypt_variables(stored, owner_id=lease.pk), ""
    except variable_encryption.VariableUnreadable as error:
        return dict.fromkeys(stored, ""), str(error)


def _read_template(lease: Lease) -> tuple[WorkloadTemplate | None, str]:
    """Return a lease's template with its variables, or why they are unreadable."""
    template = lease.saved_template
    if template is None:
        return None, ""
    env, fault = _read_variables(lease, lease.template_env)
    return replace(template, env=tuple(sorted(env.items()))), fault


def _run_variables(lease: Lease) -> dict[str, str]:
    """Return the variables that tell a batch command which run of which index it is."""
    found = {}
    if lease.retries:
        found[ATTEMPT_VARIABLE] = str(lease.attempt)
    if lease.array is not None:
        found[ARRAY_INDEX_VARIABLE], found[ARRAY_SIZE_VARIABLE] = str(lease.array_index), str(lease.array.size)
    return found


def _paid_until(lease: Lease) -> datetime | None:
    """Return when its pods end by themselves, even if the broker is dead."""
    if lease.ends_at is None or lease.run_ends_at is None:
        return lease.ends_at
    return min(lease.ends_at, lease.run_ends_at + RUN_LIMIT_MARGIN)


def _gpu_label(model: str) -> str:
    """Return the full name of a listed model; empty for others."""
    spec = gpu_model_specs().get(model)
    return spec.label if spec else ""


def _volume_spec(lease: Lease) -> VolumeRef | None:
    if lease.volume is None:
        return None
    return VolumeRef(lease.volume.pk, lease.volume.size_gib, lease.tenant_id, lease.project_id)


def _cut_efforts(lease: Lease, held: Sequence[_HeldPlacement]) -> Sequence[PartitioningEffort | None]:
    """Return per slice what a simulated cluster must repartition.

    Only for leases that were not observed yet.
    """
    if lease.offering.is_cpu_only:
        return [None] * len(held)
    new = lease.state == LeaseState.PROVISIONING and not lease.progress
    takes_time = settings.SIMULATED_PARTITION_S or settings.SIMULATED_DESTROY_S
    left = all(each.provisioner == SIMULATED and each.policy == LayoutPolicy.DYNAMIC for each in held)
    if not (new and takes_time and left and held):
        return [None] * len(held)
    places = [(each.gpu_id, each.start) for each in held]
    return required_cut_efforts(places, lease.offering.profile, lease.offering.isolation)


def _slice(held: _HeldPlacement, cutting: PartitioningEffort | None) -> ProvisionSlice:
    return ProvisionSlice(
        held.node_id,
        held.gpu_id,
        held.profile,
        held.start,
        held.end - held.start,
        host=held.host,
        uuid=held.uuid,
        grid=held.grid or NOTIONAL_GRID,
        memory_gb=held.memory_gb,
        resource_name=held.resource_name,
        driver=held.driver,
        cutting=cutting,
    )


def access_token(lease_id: str) -> str:
    """Return the secret that opens a lease's page; derived, so that it is not stored."""
    return salted_hmac("gpubroker.lease.access", lease_id, algorithm="sha256").hexdigest()[:TOKEN_LENGTH]
