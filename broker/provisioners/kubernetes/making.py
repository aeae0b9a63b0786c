"""Putting a lease into a cluster: the project's walls, the anchor, then all that hangs on it. Nothing is adopted."""

from collections.abc import Collection, Mapping

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.finding import Found, is_ours
from broker.provisioners.kubernetes.kinds import CLAIM, ref_of
from broker.provisioners.kubernetes.lasting import deadlines
from broker.provisioners.kubernetes.objects import Thing, read
from broker.provisioners.kubernetes.refusals import Conflict, ForeignField, Missing
from broker.provisioners.kubernetes.render import access
from broker.provisioners.kubernetes.render.lease import anchor, lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.spec import LeaseSpec, Manifest, ProjectSpec
from broker.provisioners.kubernetes.transport import Api

READABLE = {use.kinds for use in access.BROKER if "get" in use.verbs}


class InTheWay(Exception):
    """Something that is not ours has the name that we need: a person must say what becomes of it."""


def put_up_walls(api: Api, driver: SliceDriver, project: ProjectSpec, *, entrances: Collection[str]) -> None:
    """Have a project's namespace be there with its quotas and policies as we want them."""
    namespace, *inside = project_objects(project, driver, entrances=entrances)
    try:
        api.create(namespace, manager=labels.PROJECTS)
    except Conflict:
        there = _there(api, namespace)
        if there and not _has(there, labels.of_project(project)):
            raise InTheWay(f"a namespace {there.metadata.name} that is not ours") from None
        api.apply(namespace, manager=labels.PROJECTS, force=True)
    for each in inside:
        api.apply(each, manager=labels.PROJECTS, force=True)


def make_anchor(api: Api, driver: SliceDriver, spec: LeaseSpec) -> Thing:
    """Make the anchor, or return the one that is there already."""
    wanted = anchor(spec, driver)
    try:
        return api.create(wanted, manager=labels.LEASES)
    except Conflict:
        there = _there(api, wanted)
        if there is None:
            raise  # it went between the two: the next look makes a new one
        if not is_ours(there, spec):
            raise InTheWay(f"{ref_of(wanted)} is not ours") from None
        return there


def make_children(api: Api, driver: SliceDriver, spec: LeaseSpec, *, anchor_uid: str) -> None:
    """Make what hangs on an anchor, each unless it is there already."""
    for manifest in lease_objects(spec, driver, anchor_uid=anchor_uid):
        try:
            api.create(manifest, manager=labels.LEASES)
        except Conflict:
            _check_ours(_there(api, manifest), manifest)


def mend(api: Api, driver: SliceDriver, spec: LeaseSpec, found: Found) -> None:
    """Have every child be as we want it again, whoever changed or deleted it.

    A volume's claim that is there stays as it is: it outlives this lease, and we may not change it. A Job counts its
    time from its own start, before the lease was active, so that it is given no less than was told it since.
    """
    if found.anchor is None:
        return
    longer = {str(ref): more for ref, more in deadlines(spec, since=found.anchor.metadata.creation_timestamp)}
    for manifest in lease_objects(spec, driver, anchor_uid=found.anchor.metadata.uid):
        if more := longer.get(str(ref_of(manifest))):
            manifest["spec"] |= more["spec"]
        there = _there(api, manifest)
        if there is None:
            api.create(manifest, manager=labels.LEASES)
        else:
            _check_ours(there, manifest)
            if manifest["kind"] != CLAIM.name:
                api.apply(manifest, manager=labels.LEASES, force=True, uid=there.metadata.uid)


def restore(api: Api, manifest: Manifest) -> bool:
    """Have one thing of a project or a lease be as we want it; tell whether somebody else had changed it.

    Only where fields of it are somebody else's by now is it looked at first: a stranger's is left alone. All in a
    project's own namespace that is called as its walls are is one of them.
    """
    of_lease = bool(manifest["metadata"].get("ownerReferences"))
    manager = labels.LEASES if of_lease else labels.PROJECTS
    try:
        api.apply(manifest, manager=manager)
    except ForeignField:
        there = _there(api, manifest) if of_lease else None
        if of_lease:
            _check_ours(there, manifest)
        api.apply(manifest, manager=manager, force=True, uid=there.metadata.uid if there else "")
        return True
    return False


def _check_ours(there: Thing | None, wanted: Manifest) -> None:
    """Let pass what is the very thing we wanted; what hangs on a dead anchor is on its way out, so look anew later."""
    if there is None:
        raise Conflict(f"{ref_of(wanted)} was just being deleted")
    if not _has(there, wanted["metadata"]["labels"]):
        raise InTheWay(f"{ref_of(wanted)} is not ours")
    owners = {each["uid"] for each in wanted["metadata"].get("ownerReferences", ())}
    if owners and owners.isdisjoint(each.uid for each in there.metadata.owner_references):
        raise Conflict(f"{ref_of(wanted)} still hangs on an anchor that is gone")


def _there(api: Api, manifest: Manifest) -> Thing | None:
    """Look at what is there. Where we may only write, a patch of nothing tells: it changes nothing and answers all."""
    ref = ref_of(manifest)
    if ref.kind.plural in READABLE:
        body = api.get(ref)
        return read(body, Thing) if body else None
    try:
        return api.merge(ref, {}, manager=labels.LEASES)
    except Missing:
        return None


def _has(thing: Thing, marks: Mapping[str, str]) -> bool:
    return labels.fit(thing.metadata.labels, marks)
