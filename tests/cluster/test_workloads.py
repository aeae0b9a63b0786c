"""Workloads on a real control plane: objects and ends."""

import json
from base64 import b64decode
from datetime import UTC, datetime

import pytest

from broker.domain.lifecycle.states import EndReason
from broker.models import Cluster, Lease
from broker.services.leases import attempt_records
from broker.services.leases.lease_connections import lease_connections_of
from broker.services.leases.lifecycle import extension
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import tenant_scope
from tests.broker.domain.workloads.test_workloads import KEY
from tests.broker.services.secrets.saved_secrets import VALUE, save_secret
from tests.cluster.installation import Installation, offering
from tests.controlplane.manifests import state

ACTS = "registry.example/acts"
JOBS, INGRESSES = "/apis/batch/v1/jobs", "/apis/networking.k8s.io/v1/ingresses"


def test_a_notebook_gets_an_ingress_and_a_secret_and_leaves_neither(installed: Installation) -> None:
    Cluster.objects.update(domain="leases.example", ingress="ingress/public")
    requested = installed.sim.request_lease(installed.home, offering("1g.10gb"), workload="jupyter", env={"A": "$(B)"})
    lease = installed.until(requested, "active")
    (ingress,) = installed.ours(INGRESSES)
    with tenant_scope(lease.tenant_id):
        (way,) = lease_connections_of(lease)
    assert way.line == f"https://{ingress['spec']['rules'][0]['host']}/"
    assert len(installed.ours("/api/v1/secrets")) == 1
    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    for kind in (INGRESSES, "/api/v1/secrets", "/api/v1/services"):
        assert installed.ours(kind) == []


def test_an_ssh_lease_mounts_the_given_keys(installed: Installation) -> None:
    lease = installed.sim.request_lease(installed.home, offering("whole-gpu"), workload="ssh", ssh_keys=[KEY])
    installed.until(lease, "active")
    (pod,) = installed.ours("/api/v1/pods")
    mounts = {each["name"]: each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["keys"] == "/etc/gpubroker/ssh"


def test_a_saved_secret_reaches_its_pod_by_reference_only(installed: Installation) -> None:
    secret = save_secret(installed.home)
    requested = installed.sim.request_lease(
        installed.home, offering("1g.10gb"), workload="own", image=f"{ACTS}:pull-0s", secrets={"HF_TOKEN": secret.pk}
    )
    lease = installed.until(requested, "active")
    (stored,) = installed.ours("/api/v1/secrets")
    assert b64decode(stored["data"]["env.HF_TOKEN"]).decode() == VALUE
    (pod,) = installed.ours("/api/v1/pods")
    (variable,) = (each for each in pod["spec"]["containers"][0]["env"] if each["name"] == "HF_TOKEN")
    reference = {"key": "env.HF_TOKEN", "name": stored["metadata"]["name"]}
    assert variable == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}
    others = [each for kind in ("pods", "configmaps", "services") for each in installed.ours(f"/api/v1/{kind}")]
    assert VALUE not in json.dumps(others)
    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    assert installed.ours("/api/v1/secrets") == []


@pytest.mark.deep
def test_a_completed_batch_job_ends_its_lease(installed: Installation) -> None:
    requested = installed.sim.request_lease(
        installed.home, offering("1g.10gb"), workload="batch", image=f"{ACTS}:succeed-8s", command="train"
    )
    lease = installed.until(requested, "active")
    (job,) = installed.ours(JOBS)
    finished = reconcile_until_over(installed, lease.pk, lease.tenant_id)
    over = installed.until(lease, "released")
    assert over.end_reason == EndReason.BY_TENANT
    assert over.active_at is not None
    assert over.ended_at is not None
    assert abs((over.ended_at - finished).total_seconds()) <= 1
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["/bin/sh", "-c", "train"]


def reconcile_until_over(installed: Installation, lease_id: str, tenant_id: str) -> datetime:
    """Observe after the command ended; return the pod's end."""
    installed.plane.api.until(
        JOBS,
        lambda found: any(
            lease_id in str(job["metadata"]) and job["status"].get("succeeded") for job in found["items"]
        ),
    )
    (pod,) = installed.ours("/api/v1/pods")
    installed.sim.clock.at = datetime.now(UTC)
    lease_reconciler.reconcile_lease(lease_id, tenant_id, now=installed.sim.now)
    return datetime.fromisoformat(state(pod)["terminated"]["finishedAt"])


def test_extending_a_batch_job_extends_its_deadline(installed: Installation) -> None:
    requested = installed.sim.request_lease(
        installed.home, offering("1g.10gb"), workload="batch", image=f"{ACTS}:pull-0s", command="train"
    )
    lease = installed.until(requested, "active")
    (before,) = (job["spec"]["activeDeadlineSeconds"] for job in installed.ours(JOBS))
    with tenant_scope(lease.tenant_id):
        extension.extend_lease(lease, more_s=7200, actor=installed.home.actor, now=installed.sim.now)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=installed.sim.now)
    (after,) = (job["spec"]["activeDeadlineSeconds"] for job in installed.ours(JOBS))
    assert after > before
    assert 3600 + 7200 <= after <= 3600 + 7200 + 60


@pytest.mark.deep
def test_a_failed_batch_job_is_run_again_as_a_new_generation(installed: Installation) -> None:
    requested = installed.sim.request_lease(
        installed.home, offering("1g.10gb"), workload="batch", image=f"{ACTS}:fail-8s", command="train", retries=1
    )
    lease = installed.until(requested, "active")
    installed.plane.api.until(
        JOBS,
        lambda found: any(lease.pk in str(job["metadata"]) and job["status"].get("failed") for job in found["items"]),
    )
    installed.sim.clock.at = datetime.now(UTC)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=installed.sim.now)
    waiting = installed.until(lease, "queued")
    assert (waiting.attempt, waiting.active_at) == (2, None)
    assert installed.ours(JOBS) == []
    with tenant_scope(lease.tenant_id):
        (run,) = attempt_records.attempts_of(lease)
        assert (run.exit_code, run.counted) == (1, True)
        Lease.objects.filter(pk=lease.pk).update(requeued_at=installed.sim.now)  # the wait is over
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=installed.sim.now)
    again = installed.until(lease, "active")
    assert again.generation > lease.generation
    (pod,) = installed.ours("/api/v1/pods")
    assert {"name": "GPUBROKER_ATTEMPT", "value": "2"} in pod["spec"]["containers"][0]["env"]
    installed.sim.release_lease(again)
    installed.until(again, "released")
