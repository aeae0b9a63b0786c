"""Taking the product out of a cluster, with an administrator's rights: nothing of ours runs on, and nothing is stuck.

Volumes are their tenants': a namespace that has some stays, unless they are to be deleted as well.
"""

from collections.abc import Iterator

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.finding import CONTROLLERS, all_of_ours
from broker.provisioners.kubernetes.installing import SECRET, TOKEN, Done
from broker.provisioners.kubernetes.kinds import BY_NAME, CLAIM, CONFIG_MAP, NAMESPACE, POD, Kind, Ref, ref_of
from broker.provisioners.kubernetes.objects import Marks, Thing, read
from broker.provisioners.kubernetes.refusals import Missing
from broker.provisioners.kubernetes.render import cluster
from broker.provisioners.kubernetes.transport import Api
from ports import clock

CLASS = BY_NAME["resource.k8s.io/v1", "DeviceClass"]
LOOK_S = 0.5


def orders_there(api: Api, installation: str) -> list[str]:
    """Name every order of an installation of which a cluster has something."""
    return sorted(all_of_ours(api, installation))


def take_down(api: Api, installation: str, *, with_volumes: bool) -> Iterator[Done]:
    """Delete all that projects of an installation have there, and let go of it until it is gone."""
    ours = f"{labels.OURS},{labels.INSTALLATION}={installation}"
    spaces = [meta.name for meta in _marked(api, NAMESPACE, ours)]
    kept = {meta.namespace for meta in _marked(api, CLAIM, f"{ours},{labels.VOLUME}")} - (
        set(spaces) if with_volumes else set()
    )
    for kind in (CONFIG_MAP, *CONTROLLERS, POD):
        for meta in _marked(api, kind, f"{ours},{labels.LEASE}"):
            if meta.namespace in kept:
                yield _delete(api, Ref(kind, meta.name, meta.namespace))
    for name in spaces:
        yield Done(Ref(NAMESPACE, name), "kept") if name in kept else _delete(api, Ref(NAMESPACE, name))
    _let_go_of_all(api, f"{ours},{labels.LEASE}")


def _let_go_of_all(api: Api, marks: str) -> None:
    """Let pods go until none is left: their ends are of no more use to anybody.

    Nor any anchor: it goes after all that it owns, so that nothing is made or collected any more once it is gone.
    """
    while there := (pods := _marked(api, POD, marks)) + _marked(api, CONFIG_MAP, marks):
        for meta in pods:
            if labels.METERING in meta.finalizers:
                ref = Ref(POD, meta.name, meta.namespace)
                api.let_go(ref, finalizer=labels.METERING, uid=meta.uid)
        if clock.monotonic() + LOOK_S >= api.ends:
            names = ", ".join(f"{meta.namespace}/{meta.name}" for meta in there[:3])
            still = (
                f"{len(pods)} pods still shut down" if pods else f"{len(there)} leases are still collected"
            )
            raise Unanswered(f"{still}, {names} among them: look at their nodes, run it again")
        clock.sleep(LOOK_S)


def uninstall(
    api: Api, driver: SliceDriver, installation: str, *, namespace: str = cluster.NAMESPACE
) -> Iterator[Done]:
    """Delete what was installed for all leases, unless another installation has projects there, which need it.

    The namespace stays: the product itself may live in it.
    """
    if others := _marked(api, NAMESPACE, f"{labels.OURS},{labels.INSTALLATION}!={installation}"):
        yield from (Done(Ref(NAMESPACE, meta.name), "another's") for meta in others)
        return
    # Found by their mark: whoever removes may not name the driver they were made for, or know fewer models than it.
    ours = f"{labels.MANAGED_BY}={labels.US}"
    yield from (_delete(api, Ref(CLASS, meta.name)) for meta in _marked(api, CLASS, ours))
    made = [ref_of(each) for each in cluster.cluster_objects(driver, image="", namespace=namespace)]
    made = [ref for ref in made if ref.kind is not CLASS]
    for ref in (Ref(SECRET, TOKEN, namespace), *reversed(made)):
        if ref.kind is not NAMESPACE:
            yield _delete(api, ref)


def _marked(api: Api, kind: Kind, marks: str) -> list[Marks]:
    try:
        items, _ = api.list_all(kind, labels=marks, metadata_only=True)
    except Missing:
        return []
    return [read(item, Thing).metadata for item in items]


def _delete(api: Api, ref: Ref) -> Done:
    body = api.get(ref)
    if body is None:
        return Done(ref, "not there")
    api.delete(ref, uid=read(body, Thing).metadata.uid)
    return Done(ref, "deleted")
