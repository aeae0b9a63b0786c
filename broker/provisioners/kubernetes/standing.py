"""What stands in a cluster of all that is ours and may be listed, so that nobody writes where nothing is wrong.

Looked at page by page, a few calls for thousands of objects, in a thread of its own. Kept only as long as one round.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.covering import covers
from broker.provisioners.kubernetes.kinds import KINDS, Kind, ref_of
from broker.provisioners.kubernetes.objects import Raw, read
from broker.provisioners.kubernetes.refusals import Denied, Missing, Refusal
from broker.provisioners.kubernetes.spec import Manifest
from broker.provisioners.kubernetes.transport import Transport

log = structlog.get_logger(__name__)
LIST_S = 60.0
# Walls and doors but for secrets, of which nobody ever lists what they hold.
LOOKED_AT = (
    "Namespace",
    "ServiceAccount",
    "ResourceQuota",
    "LimitRange",
    "NetworkPolicy",
    "Service",
    "Ingress",
    "HTTPRoute",
)
KEPT = ("labels", "ownerReferences", "name", "namespace")  # of an object's metadata
Place = tuple[str, str, str]  # a kind, a namespace, a name


class Standing:
    """The objects of one look. Filled in one thread, then read in another: never both at once."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._there: dict[Place, tuple[str, bytes]] = {}  # version, and what is compared
        self._seen: set[str] = set()  # kinds
        self._refused = {kind.name for kind in KINDS} - {
            *LOOKED_AT
        }  # nobody tells us of them: applied blindly
        self._handed: dict[Place, tuple[str, int]] = {}

    def look(self) -> None:
        """List all that may be listed; what did not answer has its turn in the next round."""
        self.forget()
        for kind in (kind for kind in KINDS if kind.name in LOOKED_AT):
            try:
                self._list(kind)
                self._refused.discard(kind.name)
            except (Denied, Missing):  # rights of before we listed, or no such kind in the cluster
                self._refused.add(kind.name)
            except (Unanswered, Refusal) as error:
                self._refused.discard(kind.name)
                log.warning("not looked at", kind=kind.name, why=str(error))
        self._handed = {place: told for place, told in self._handed.items() if place in self._there}

    def forget(self) -> None:
        """Keep nothing of the last look but what was handed over since, which the next one is compared with."""
        self._there, self._seen = {}, set()

    def needs(self, manifest: Manifest) -> bool:
        """Tell whether somebody must have it be as we want it; whoever is told so is expected to do it.

        What the server writes otherwise than we do differs for ever: what was applied, and has not changed since, is
        as we want it.
        """
        place = _place(manifest)
        if place[0] not in self._seen:
            return place[0] in self._refused
        if place not in self._there:
            return True
        version, body = self._there[place]
        if covers(msgspec.json.decode(body), _compared(manifest)):
            return False
        wanted = version, hash(msgspec.json.encode(manifest, order="sorted"))
        if self._handed.get(place) == wanted:
            return False
        self._handed[place] = wanted
        return True

    def failed(self, manifest: Manifest) -> None:
        """Take note that it was not done after all."""
        self._handed.pop(_place(manifest), None)

    def _list(self, kind: Kind) -> None:
        found: dict[Place, tuple[str, bytes]] = {}
        for items, _ in self._transport.within(LIST_S).pages(kind, labels=labels.OURS):
            found.update(_kept(kind, item) for item in items)
        self._there |= found
        self._seen.add(kind.name)


def _place(manifest: Manifest) -> Place:
    ref = ref_of(manifest)
    return ref.kind.name, ref.namespace, ref.name


def _compared(manifest: Manifest) -> Manifest:
    """Leave out what a list does not say of each of its items."""
    return {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind")}


def _kept(kind: Kind, item: Raw) -> tuple[Place, tuple[str, bytes]]:
    body: dict[str, Any] = read(item, dict)
    meta: Mapping[str, Any] = body.pop("metadata")
    body.pop("status", None)
    body["metadata"] = {name: meta[name] for name in KEPT if name in meta}
    place = kind.name, meta.get("namespace", ""), meta["name"]
    return place, (meta.get("resourceVersion", ""), msgspec.json.encode(body))
