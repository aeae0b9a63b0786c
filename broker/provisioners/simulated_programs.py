"""Programs of simulated leases: what they print, and when a batch command ends.

Nothing is executed: `domain/simulated_box` imitates the commands it knows.
"""

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.lifecycle.states import Isolation
from broker.domain.logs.log_lines import LineSource, LogLine
from broker.domain.simulated_box.box_facts import BoxFacts, BoxGpu
from broker.domain.simulated_box.command_runs import SimulatedRun, plan_run
from broker.domain.workloads.templates import BATCH, TEMPLATES
from broker.provisioners.base import ProvisionSlice, ProvisionSpec

MIB_PER_GB = 1024
HOST_NAME_LETTERS = 8  # of the lease's id


def batch_run(spec: ProvisionSpec, *, started: datetime) -> SimulatedRun | None:
    """Return the run of a batch lease's command; None for other workloads."""
    if spec.workload != BATCH.name:
        return None
    return plan_run(spec.command, box_facts(spec), started=started)


def batch_end(spec: ProvisionSpec, *, started: datetime) -> tuple[datetime, int] | None:
    """Return the end and exit code of a batch command, or None."""
    run = batch_run(spec, started=started)
    if run is None or run.duration_s is None or run.exit_code is None:
        return None
    return started + timedelta(seconds=run.duration_s), run.exit_code


def program_lines(spec: ProvisionSpec, *, started: datetime, until: datetime) -> Iterator[LogLine]:
    """Yield the lines that a lease's program has written by a moment."""
    yield LogLine(started, box_facts(spec).notice, LineSource.PLATFORM)
    run = batch_run(spec, started=started)
    if run is not None:
        for line in run.lines_until((until - started).total_seconds()):
            yield LogLine(started + timedelta(seconds=line.offset_s), line.text)
        return
    template = spec.template or TEMPLATES.get(spec.workload)
    for port in template.ports if template else ():
        yield LogLine(started, f"{template.label if template else ''} listens on port {port.number} (simulated).")


def box_facts(spec: ProvisionSpec) -> BoxFacts:
    """Return what the programs of a simulated lease know of their box."""
    template = spec.template or TEMPLATES.get(spec.workload)
    count = max(len(spec.slices), 1)
    return BoxFacts(
        gpus=()
        if spec.gpu_model == CPU_MODEL_NAME
        else tuple(_box_gpu(spec, place, number) for number, place in enumerate(spec.slices)),
        hostname=f"lease-{spec.lease_id[-HOST_NAME_LETTERS:]}",
        home=template.home if template else BATCH.home,
        env=(
            *(template.env if template else ()),
            *(((template.token_env, spec.access_token),) if template and template.token_env else ()),
            *spec.env,
            *((each.name, each.value) for each in spec.secrets if each.value is not None),
        ),
        cpu_milli=spec.resources.cpu_milli * count,
        memory_mib=spec.resources.memory_mib * count,
        scratch_mib=spec.resources.scratch_mib * count,
        volume_gib=spec.volume.size_gib if spec.volume else 0,
    )


def _box_gpu(spec: ProvisionSpec, place: ProvisionSlice, number: int) -> BoxGpu:
    total = place.memory_gb * MIB_PER_GB
    is_mig = spec.isolation == Isolation.HARDWARE
    return BoxGpu(
        name=f"NVIDIA {(spec.gpu_label or spec.gpu_model).removeprefix('NVIDIA ')}",
        uuid=place.uuid or f"GPU-{_made_up_uuid(place.gpu)}",
        memory_mib=total * place.size // place.grid if place.grid else total,
        gpu_memory_mib=total,
        profile=place.profile if is_mig else "",
        mig_uuid=f"MIG-{_made_up_uuid(f'{spec.name}/{number}')}" if is_mig else "",
    )


def _made_up_uuid(name: str) -> str:
    """Return a UUID that depends on a name alone."""
    digits = hashlib.sha256(name.encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
