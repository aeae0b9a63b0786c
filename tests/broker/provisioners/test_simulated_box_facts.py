"""Facts of the simulated box of a lease."""

import pytest

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.simulated_box.box_facts import BoxFacts
from broker.domain.simulated_box.command_runs import plan_run
from broker.models import Lease
from broker.provisioners.simulated_programs import box_facts
from broker.services.leases.provision_specs import access_token, load_provision_spec
from broker.services.secrets import secret_store
from tenants.services.rls import tenant_scope
from tests.simulation import (
    Simulation,
    TenantContext,
    create_cpu_nodes,
    create_gpus,
    create_tenant,
    offering,
    reload_lease,
    soft_offering,
)

pytestmark = pytest.mark.django_db
NO_GPU_NOTICE = "Simulated box without a GPU: commands are imitated, nothing is executed."


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def facts(lease: Lease, *, with_secrets: bool = False) -> BoxFacts:
    with tenant_scope(lease.tenant_id):
        return box_facts(load_provision_spec(reload_lease(lease), with_secrets=with_secrets))


def test_a_slice_is_a_mig_device_with_its_share_of_the_memory(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("3g.40gb"))
    found = facts(lease)
    (gpu,) = found.gpus
    assert (gpu.name, gpu.profile, gpu.memory_mib, gpu.total_mib) == ("NVIDIA H100 SXM 80GB", "3g.40gb", 40_960, 81_920)
    assert gpu.mig_uuid.startswith("MIG-")
    assert gpu == facts(lease).gpus[0]
    assert found.hostname == f"lease-{lease.pk[-8:]}"
    assert (found.cpu_milli, found.memory_mib) == (lease.cpu_milli, lease.host_memory_mib)


def test_whole_gpus_and_shares_are_no_mig_devices(sim: Simulation, kestrel: TenantContext) -> None:
    whole = facts(sim.create_lease(kestrel, offering("whole-gpu")))
    assert [(gpu.memory_mib, gpu.mig_uuid, gpu.profile) for gpu in whole.gpus] == [(81_920, "", "")]
    (share,) = facts(sim.create_lease(kestrel, soft_offering("quarter"))).gpus
    assert (share.memory_mib, share.mig_uuid) == (20_480, "")


def test_a_gang_has_all_its_slices_and_resources(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"), quantity=2)
    found = facts(lease)
    assert len({gpu.uuid for gpu in found.gpus}) == 2
    assert found.cpu_milli == 2 * lease.cpu_milli


def test_the_environment_has_variables_secrets_and_the_access_token(sim: Simulation, kestrel: TenantContext) -> None:
    with tenant_scope(kestrel.tenant.pk):
        secret = secret_store.create_secret(
            project=kestrel.project, name="HF_TOKEN", value="hf_123", actor=kestrel.actor, now=sim.now
        )
    lease = sim.create_lease(
        kestrel, offering(), workload="jupyter", env={"MODE": "fast"}, secrets={"HF_TOKEN": secret.pk}
    )
    env = dict(facts(lease, with_secrets=True).env)
    assert (env["MODE"], env["HF_TOKEN"], env["JUPYTER_TOKEN"]) == ("fast", "hf_123", access_token(lease.pk))
    assert "HF_TOKEN" not in dict(facts(lease).env)


def test_a_volume_is_mounted_at_home(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel, size_gib=50)
    assert facts(sim.create_lease(kestrel, offering(), volume=volume.pk)).volume_gib == 50


@pytest.fixture
def cpu_facts(sim: Simulation) -> BoxFacts:
    create_cpu_nodes()
    lease = sim.create_lease(create_tenant("Kestrel"), offering("4vcpu", model=CPU_MODEL_NAME), quantity=2)
    return facts(lease)


def test_the_box_of_a_cpu_lease_has_the_amounts_of_its_offering(cpu_facts: BoxFacts) -> None:
    assert (cpu_facts.cpus, cpu_facts.memory_mib) == (8, 2 * 16_384)


def test_the_box_of_a_cpu_lease_has_no_gpu_and_no_variable_of_one(cpu_facts: BoxFacts) -> None:
    assert cpu_facts.gpus == ()
    assert [name for name in cpu_facts.environment() if "NVIDIA" in name or "CUDA" in name] == []


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("nproc", ["8"]),
        ("nvidia-smi -L; echo $?", ["bash: nvidia-smi: command not found", "127"]),
        ("which nvidia-smi; echo $?", ["1"]),
        ("help | grep -v nproc | grep Simulated", [NO_GPU_NOTICE]),
        ("cat /etc/os-release | head -1", ['NAME="Simulated box without a GPU"']),
        ("free | tail -1", ["Mem:             32G           0         32G"]),
    ],
)
def test_programs_of_a_cpu_lease_know_no_gpu(
    cpu_facts: BoxFacts, command: str, lines: list[str], sim: Simulation
) -> None:
    assert [each.text for each in plan_run(command, cpu_facts, started=sim.now).lines] == lines
