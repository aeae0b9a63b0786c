"""Giving a cluster once what leases need there, with an administrator's rights; and the broker's own way in."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.kinds import BY_NAME, Manifest, Ref, ref_of
from broker.provisioners.kubernetes.objects import Thing, read
from broker.provisioners.kubernetes.refusals import Invalid, Missing
from broker.provisioners.kubernetes.render.cluster import NAME, NAMESPACE, cluster_objects
from broker.provisioners.kubernetes.transport import Api
from ports import clock

SECRET = BY_NAME["v1", "Secret"]
TOKEN = f"{NAME}-token"
TOKEN_WITHIN_S, LOOK_S = 10.0, 0.2


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one object."""

    ref: Ref
    how: str  # made, changed, as it was


def install(api: Api, driver: SliceDriver, *, image: str, namespace: str = NAMESPACE) -> list[Done]:
    """Have everything be there as we want it; a second time changes nothing."""
    return [_put(api, each) for each in cluster_objects(driver, image=image, namespace=namespace)]


def _put(api: Api, manifest: Manifest) -> Done:
    ref = ref_of(manifest)
    before = _thing(api, ref)
    try:
        after = api.apply(manifest, manager=labels.INSTALLER, force=True)
    except Invalid:
        if before is None or ref.kind.name != "PriorityClass":
            raise
        # Its value can never be changed; pods that are there keep the value they were made with.
        api.delete(ref, uid=before.metadata.uid, propagation="Background")
        api.apply(manifest, manager=labels.INSTALLER, force=True)
        return Done(ref, "changed")
    if before is None:
        return Done(ref, "made")
    return Done(ref, "as it was" if _edition(before) == _edition(after) else "changed")


def _edition(thing: Thing) -> tuple[int, str]:
    """Tell two states of an object apart; where the server counts them, what only its controllers wrote is none."""
    meta = thing.metadata
    return (meta.generation, "" if meta.generation else meta.resource_version)


def _thing(api: Api, ref: Ref) -> Thing | None:
    try:
        body = api.get(ref)
    except Missing:
        return None
    return read(body, Thing) if body else None


def own_kubeconfig(
    api: Api, administrators: Mapping[str, Any], *, namespace: str = NAMESPACE
) -> dict[str, Any]:
    """Return the way in of the broker's own account: narrow, lasting, and revoked by deleting one Secret."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "annotations": {"kubernetes.io/service-account.name": NAME},
            "name": TOKEN,
            "namespace": namespace,
        },
        "type": "kubernetes.io/service-account-token",
    }
    api.apply(secret, manager=labels.INSTALLER, force=True)
    given = _filled(api, Ref(SECRET, TOKEN, namespace))
    cluster = {
        name: value
        for name, value in administrators["clusters"][0]["cluster"].items()
        if name in ("server", "certificate-authority-data", "tls-server-name", "proxy-url")
    }
    name = "cluster"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": given}}],
    }


def _filled(api: Api, ref: Ref) -> str:
    """Wait until the cluster has written a token into a Secret."""
    end = clock.monotonic() + TOKEN_WITHIN_S
    while clock.monotonic() < end:
        body = api.get(ref)
        token = (msgspec.json.decode(body).get("data") or {}).get("token", "") if body else ""
        if token:
            return base64.b64decode(token).decode()
        clock.sleep(LOOK_S)
    raise Unanswered(
        f"{ref} was not given a token within {TOKEN_WITHIN_S:.0f} s: look at the controller manager"
    )
