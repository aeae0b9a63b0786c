"""Volume claims: one per volume in its project's namespace, owned by no lease."""

from broker.domain.workloads.templates import HOME, WorkloadTemplate
from broker.provisioners.base import Observation, ObservedState, VolumeRef
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.client.kinds import VOLUME_CLAIM, ObjectRef
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.render.spec import ProjectSpec, VolumeSpec


def volume_specs(volume: VolumeRef | None, template: WorkloadTemplate | None) -> tuple[VolumeSpec, ...]:
    """Return where a lease's volume is mounted.

    It replaces scratch storage at the home of the workload.
    """
    if volume is None:
        return ()
    return (VolumeSpec(volume.id, volume.size_gib, template.home if template else HOME),)


def remove_volume_claim(api: KubernetesApi, volume: VolumeRef, *, installation: str) -> Observation | None:
    """Delete a volume's claim and return the progress; None if there is none.

    While a pod still mounts it the cluster keeps it.
    """
    project = ProjectSpec(volume.tenant_id, volume.project_id, installation=installation)
    ref = ObjectRef(VOLUME_CLAIM, names.volume_name(volume.id), names.namespace_name(volume.project_id))
    body = api.get(ref)
    claim = decode(body, ClusterObjectHeader).metadata if body else None
    if claim is None or not labels.labels_match(
        claim.labels, {**labels.project_labels(project), labels.VOLUME: volume.id}
    ):
        return None
    if claim.deletion_timestamp is None:
        api.delete(ref, uid=claim.uid)
    return Observation(ObservedState.PENDING, "being deleted", again_in_s=2.0)
