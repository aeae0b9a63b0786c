"""Batch commands of simulated leases: their output, exit codes and ends."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.logs import log_collection
from tests.broker.services.logs.played_output import program_texts, stored_lines
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def run_batch(sim: Simulation, owner: TenantContext, command: str, *, seconds: float = 60, **wanted: object) -> Lease:
    lease = sim.request_lease(owner, offering(), workload="batch", command=command, **wanted)
    sim.run()
    sim.run(seconds)
    log_collection.collect_log(lease.pk, lease.tenant_id, now=sim.now)
    return reload_lease(lease)


def test_the_output_of_a_batch_command_is_readable_after_its_end(sim: Simulation, kestrel: TenantContext) -> None:
    lease = run_batch(sim, kestrel, "echo hi")
    assert (lease.state, lease.end_reason, lease.exit_code) == (LeaseState.RELEASED, EndReason.BY_TENANT, 0)
    assert program_texts(lease) == ["hi"]
    assert "Simulated GPU box: commands are imitated, nothing is executed." in [
        each.line.text for each in stored_lines(lease)
    ]


def test_a_failed_command_has_its_exit_code(sim: Simulation, kestrel: TenantContext) -> None:
    lease = run_batch(sim, kestrel, "echo trying; sleep 5; exit 3")
    assert (lease.state, lease.exit_code) == (LeaseState.RELEASED, 3)
    assert "exit code 3" in [each.line.text for each in stored_lines(lease)][-2]


def test_a_command_is_charged_to_the_second_it_ends(sim: Simulation, kestrel: TenantContext) -> None:
    lease = run_batch(sim, kestrel, "sleep 20")
    assert lease.active_at is not None
    assert lease.ended_at is not None
    assert timedelta(seconds=19) <= lease.ended_at - lease.active_at <= timedelta(seconds=21)


def test_output_is_readable_while_the_command_runs(sim: Simulation, kestrel: TenantContext) -> None:
    lease = run_batch(sim, kestrel, "echo one; sleep 3000; echo two")
    assert (lease.state, lease.exit_code) == (LeaseState.ACTIVE, None)
    assert program_texts(lease) == ["one"]


def test_a_program_that_is_not_imitated_runs_until_its_lease_ends(sim: Simulation, kestrel: TenantContext) -> None:
    lease = run_batch(sim, kestrel, "python train.py")
    assert (lease.state, lease.exit_code) == (LeaseState.ACTIVE, None)
    assert len(program_texts(lease)) == 1


def test_a_session_says_what_it_listens_on(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="jupyter")
    sim.run(10)
    log_collection.collect_log(lease.pk, lease.tenant_id, now=sim.now)
    assert program_texts(lease) == ["JupyterLab listens on port 8888 (simulated)."]


def test_a_slice_is_what_nvidia_smi_reports(sim: Simulation, kestrel: TenantContext) -> None:
    (first, second) = program_texts(run_batch(sim, kestrel, "nvidia-smi -L"))
    assert first.startswith("GPU 0: NVIDIA H100 SXM 80GB (UUID: GPU-")
    assert second.strip().startswith("MIG 1g.10gb")


def test_values_of_secret_variables_are_masked_in_what_env_prints(sim: Simulation, kestrel: TenantContext) -> None:
    lease = run_batch(sim, kestrel, "env", env={"API_TOKEN": "t-123456", "MODE": "train"})
    assert {"API_TOKEN=***", "MODE=train"} <= set(program_texts(lease))
