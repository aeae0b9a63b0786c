"""What a cluster keeps of a volume: one claim in its project's namespace, which no lease owns."""

from broker.domain.workloads import HOME, TEMPLATES
from broker.provisioners.base import Kept, Observation, Seen
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.kinds import CLAIM, Ref
from broker.provisioners.kubernetes.objects import Thing, read
from broker.provisioners.kubernetes.spec import ProjectSpec, VolumeSpec
from broker.provisioners.kubernetes.transport import Api


def mounted(kept: Kept | None, template: str) -> tuple[VolumeSpec, ...]:
    """Say where a lease's volume is mounted: at the home of what runs, instead of storage that ends with it."""
    if kept is None:
        return ()
    home = TEMPLATES[template].home if template in TEMPLATES else HOME
    return (VolumeSpec(kept.id, kept.size_gib, home),)


def remove_claim(api: Api, kept: Kept, *, installation: str) -> Observation | None:
    """Delete a volume's claim and say how far that is; None when there is none of ours.

    While a pod still mounts it the cluster keeps it: it goes when the last one has.
    """
    project = ProjectSpec(kept.tenant_id, kept.project_id, installation=installation)
    ref = Ref(CLAIM, names.volume(kept.id), names.namespace(kept.project_id))
    body = api.get(ref)
    claim = read(body, Thing).metadata if body else None
    if claim is None or not labels.fit(claim.labels, {**labels.of_project(project), labels.VOLUME: kept.id}):
        return None
    if claim.deletion_timestamp is None:
        api.delete(ref, uid=claim.uid)
    return Observation(Seen.PENDING, "being deleted", again_in_s=2.0)
