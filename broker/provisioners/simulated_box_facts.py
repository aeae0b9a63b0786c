"""Facts of the simulated box behind a lease, from its provision spec."""

import hashlib

from broker.domain.lifecycle.states import Isolation
from broker.domain.simulated_box.box_facts import BoxFacts, BoxGpu
from broker.domain.workloads.templates import TEMPLATES
from broker.models import GpuModel
from broker.provisioners.base import ProvisionSlice, ProvisionSpec

MEBIBYTES_PER_GIB = 1024
HOST_LETTERS = 8  # of the lease's id


def load_box_facts(spec: ProvisionSpec) -> BoxFacts:
    """Return the facts of a lease's box; one query.

    Values of secrets are in its environment only if the spec was loaded with them.
    """
    label = GpuModel.objects.filter(pk=spec.gpu_model).values_list("spec__label", flat=True).first()
    template = TEMPLATES.get(spec.workload)
    env = dict(template.env) if template else {}
    env |= dict(spec.env)
    env |= {each.name: each.value for each in spec.secrets if each.value is not None}
    if template and template.token_env:
        env.setdefault(template.token_env, spec.access_token)
    host = spec.resources.times(max(len(spec.slices), 1))
    return BoxFacts(
        gpus=tuple(_box_gpu(spec, each, f"NVIDIA {label or spec.gpu_model}") for each in spec.slices),
        hostname=f"lease-{spec.lease_id[-HOST_LETTERS:]}",
        env=tuple(sorted(env.items())),
        cpu_milli=host.cpu_milli,
        memory_mib=host.memory_mib,
        scratch_mib=host.scratch_mib,
        volume_gib=spec.volume.size_gib if spec.volume else 0,
    )


def _box_gpu(spec: ProvisionSpec, held: ProvisionSlice, name: str) -> BoxGpu:
    whole_mib = held.memory_gb * MEBIBYTES_PER_GIB
    slice_mib = whole_mib * held.size // held.grid if held.grid else whole_mib
    if spec.isolation != Isolation.HARDWARE:
        return BoxGpu(name, held.uuid, slice_mib)
    return BoxGpu(name, held.uuid, slice_mib, whole_mib, held.profile, _mig_uuid(spec, held))


def _mig_uuid(spec: ProvisionSpec, held: ProvisionSlice) -> str:
    """Return a UUID for a MIG device; the same for the same generation of a lease."""
    digest = hashlib.sha256(f"{spec.name} {held.uuid} {held.start}".encode()).hexdigest()
    return f"MIG-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
