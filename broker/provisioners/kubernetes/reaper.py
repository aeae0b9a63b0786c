"""Run inside a cluster every minute: deletes the anchors of leases whose paid time is over, whatever became of us.

The broker moves `paid-until` ahead as long as it lives and a lease is paid. The moment comes from the API server.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels, objects
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, Ref
from broker.provisioners.kubernetes.refusals import Conflict, Refusal
from broker.provisioners.kubernetes.render.lease import stamp
from broker.provisioners.kubernetes.transport import Api, Transport

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WITHIN_S = 40.0


def overdue(anchors: Iterable[objects.Thing], *, now: datetime) -> list[objects.Meta]:
    """Return those that are past their paid time; one that says nothing about it is not ours to judge."""
    found = []
    for each in anchors:
        until = each.metadata.annotations.get(labels.PAID_UNTIL, "")
        if until and until < stamp(now) and each.metadata.deletion_timestamp is None:
            found.append(each.metadata)
    return found


@dataclass(frozen=True)
class Reaped:
    """What was done of what was overdue, by the names of the anchors; and of what was not, why."""

    gone: list[str]
    kept: list[str]


def reap(api: Api) -> Reaped:
    """Delete what is overdue; one that cannot be deleted keeps no other from it."""
    ours = f"{labels.OURS},{labels.ROLE}={labels.ANCHOR_ROLE}"
    items, _ = api.list_all(CONFIG_MAP, labels=ours, metadata_only=True)
    found = Reaped([], [])
    for meta in overdue((objects.read(item, objects.Thing) for item in items), now=_now(api)):
        name = f"{meta.namespace}/{meta.name}"
        try:
            api.delete(Ref(CONFIG_MAP, meta.name, meta.namespace), uid=meta.uid, propagation="Foreground")
        except Conflict:
            continue  # it is gone, and another has its name: judged in a minute
        except (Refusal, Unanswered) as error:
            found.kept.append(f"{name}: {error}")
        else:
            found.gone.append(name)
    return found


def _now(api: Api) -> datetime:
    """Return what time it is in the cluster: never our own clock's."""
    said = api.send("GET", "/version").headers.get("Date", "")
    try:
        return parsedate_to_datetime(said)
    except ValueError:
        raise Unanswered(f"it does not say what time it is: {said!r}") from None


def own_access() -> dict[str, Any]:
    """Return the kubeconfig of the pod's own account."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"[{host}]" if ":" in host else host  # as an address of IPv6 is written before a port
    cluster = {"server": f"https://{server}:{port}", "certificate-authority": str(ACCOUNT / "ca.crt")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "own",
        "clusters": [{"name": "own", "cluster": cluster}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        "users": [{"name": "own", "user": {"tokenFile": str(ACCOUNT / "token")}}],
    }


def main() -> int:
    try:
        found = reap(Transport(own_access).within(WITHIN_S))
    except (Refusal, Unanswered) as error:
        print(f"the API server was asked in vain: {error}; the next run asks again", file=sys.stderr)
        return 1
    for name in found.gone:
        print(f"deleted {name}: its paid time is over")
    for why in found.kept:
        print(f"could not delete {why}; the next run tries again", file=sys.stderr)
    return 1 if found.kept else 0


if __name__ == "__main__":
    sys.exit(main())
