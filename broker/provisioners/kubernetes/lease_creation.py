"""Create a lease in a cluster: project objects, the anchor, then its children.

Objects that are not ours are never adopted.
"""

from collections.abc import Collection, Mapping

import structlog

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_errors import (
    AccessDenied,
    AdmissionDenied,
    FieldManagerConflict,
    ObjectConflict,
    ObjectInvalid,
    ObjectMissing,
)
from broker.provisioners.kubernetes.client.kinds import RESOURCE_CLAIM, VOLUME_CLAIM, object_ref
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.names import namespace_name
from broker.provisioners.kubernetes.observe.object_lookup import LeaseObjects, belongs_to_lease
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.job_deadlines import job_deadlines
from broker.provisioners.kubernetes.render.lease import anchor, lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectSpec

log = structlog.get_logger(__name__)
KEPT_KINDS = (VOLUME_CLAIM.name, RESOURCE_CLAIM.name)  # never changed once they exist
READABLE = {use.kinds for use in rbac.BROKER_RULES if "get" in use.verbs}


class ForeignObjectError(Exception):
    """An object that is not ours has the name we need; an operator must decide."""


def apply_project(
    api: KubernetesApi, driver: SliceDriver, project: ProjectSpec, *, allowed_namespaces: Collection[str]
) -> None:
    """Apply a project's namespace with its quotas and network policies."""
    namespace, *inside = project_objects(project, driver, allowed_namespaces=allowed_namespaces)
    try:
        api.create(namespace, manager=labels.PROJECTS)
    except ObjectConflict:
        there = _read_object(api, namespace)
        if there and not _has_labels(there, labels.project_labels(project)):
            raise ForeignObjectError(
                f"namespace {there.metadata.name} exists and is not managed by this broker"
            ) from None
        api.apply(namespace, manager=labels.PROJECTS, force=True)
    for each in inside:
        api.apply(each, manager=labels.PROJECTS, force=True)


def allow_pod_access(api: KubernetesApi, project: ProjectSpec) -> bool:
    """Give the broker's account access to a project's pods; return whether it worked.

    A cluster that was set up by an earlier version lacks the rights until it is set up again: its leases
    run, and only their output cannot be read.
    """
    namespace = namespace_name(project.project_id, project.slug)
    try:
        api.apply(rbac.pod_access_binding(namespace, api.account_name()), manager=labels.PROJECTS, force=True)
    except (AccessDenied, AdmissionDenied, ObjectInvalid, ObjectMissing) as error:
        log.warning("output of leases cannot be read", namespace=namespace, because=str(error))
        return False
    return True


def create_anchor(api: KubernetesApi, driver: SliceDriver, spec: LeaseSpec) -> ClusterObjectHeader:
    """Create the anchor, or return the existing one."""
    wanted = anchor(spec, driver)
    try:
        return api.create(wanted, manager=labels.LEASES)
    except ObjectConflict:
        there = _read_object(api, wanted)
        if there is None:
            raise  # it was deleted in between: the next step creates a new one
        if not belongs_to_lease(there, spec):
            raise ForeignObjectError(f"{object_ref(wanted)} exists and is not managed by this broker") from None
        return there


def create_children(api: KubernetesApi, driver: SliceDriver, spec: LeaseSpec, *, anchor_uid: str) -> None:
    """Create the objects an anchor owns, unless they exist."""
    for manifest in lease_objects(spec, driver, anchor_uid=anchor_uid):
        try:
            api.create(manifest, manager=labels.LEASES)
        except ObjectConflict:
            _check_ours(_read_object(api, manifest), manifest)


def repair_children(api: KubernetesApi, driver: SliceDriver, spec: LeaseSpec, found: LeaseObjects) -> None:
    """Apply every child again, even if it was changed or deleted.

    An existing volume claim stays as it is: it outlives this lease, and we may not change it. So does a
    resource claim, which nobody may change: it names the start that placement chose at first. A Job
    counts its time from its own start, before the lease was active, so it keeps the deadline that was
    set since.
    """
    if found.anchor is None:
        return
    longer = {str(ref): more for ref, more in job_deadlines(spec, since=found.anchor.metadata.creation_timestamp)}
    for manifest in lease_objects(spec, driver, anchor_uid=found.anchor.metadata.uid):
        if more := longer.get(str(object_ref(manifest))):
            manifest["spec"] |= more["spec"]
        there = _read_object(api, manifest)
        if there is None:
            api.create(manifest, manager=labels.LEASES)
        else:
            _check_ours(there, manifest)
            if manifest["kind"] not in KEPT_KINDS:
                api.apply(manifest, manager=labels.LEASES, force=True, uid=there.metadata.uid)


def restore_object(api: KubernetesApi, manifest: Manifest) -> bool:
    """Apply one object of a project or lease; return whether it had been changed.

    It is read first only if another field manager owns fields of it: a foreign object is left alone.
    Anything in a project's own namespace that has the name of a project object counts as ours.
    """
    of_lease = bool(manifest["metadata"].get("ownerReferences"))
    manager = labels.LEASES if of_lease else labels.PROJECTS
    try:
        api.apply(manifest, manager=manager)
    except FieldManagerConflict:
        there = _read_object(api, manifest) if of_lease else None
        if of_lease:
            _check_ours(there, manifest)
        api.apply(manifest, manager=manager, force=True, uid=there.metadata.uid if there else "")
        return True
    return False


def _check_ours(there: ClusterObjectHeader | None, wanted: Manifest) -> None:
    """Raise unless an existing object is ours and owned by the present anchor.

    A child of a deleted anchor is about to be collected, so creation is retried later.
    """
    if there is None:
        raise ObjectConflict(f"{object_ref(wanted)} is being deleted")
    if not _has_labels(there, wanted["metadata"]["labels"]):
        raise ForeignObjectError(f"{object_ref(wanted)} exists and is not managed by this broker")
    owners = {each["uid"] for each in wanted["metadata"].get("ownerReferences", ())}
    if owners and owners.isdisjoint(each.uid for each in there.metadata.owner_references):
        raise ObjectConflict(f"{object_ref(wanted)} still belongs to a deleted anchor")


def _read_object(api: KubernetesApi, manifest: Manifest) -> ClusterObjectHeader | None:
    """Read an existing object.

    Where we have no read permission an empty patch is sent: it changes nothing and returns the object.
    """
    ref = object_ref(manifest)
    if ref.kind.plural in READABLE:
        body = api.get(ref)
        return decode(body, ClusterObjectHeader) if body else None
    try:
        return api.merge(ref, {}, manager=labels.LEASES)
    except ObjectMissing:
        return None


def _has_labels(thing: ClusterObjectHeader, marks: Mapping[str, str]) -> bool:
    return labels.labels_match(thing.metadata.labels, marks)
