"""Run inside a cluster every minute: deletes the anchors of leases whose paid time is over, whatever became of us.

The broker moves `paid-until` ahead as long as it lives and a lease is paid. The moment comes from the API server.
"""

import os
import sys
from collections.abc import Iterable
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels, objects
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, Ref
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


def reap(api: Api) -> list[str]:
    """Delete what is overdue and return the names."""
    ours = f"{labels.OURS},{labels.ROLE}={labels.ANCHOR_ROLE}"
    items, _ = api.list_all(CONFIG_MAP, labels=ours, metadata_only=True)
    now = parsedate_to_datetime(api.send("GET", "/version").headers["Date"])
    gone = overdue((objects.read(item, objects.Thing) for item in items), now=now)
    for meta in gone:
        api.delete(Ref(CONFIG_MAP, meta.name, meta.namespace), uid=meta.uid, propagation="Foreground")
    return [f"{meta.namespace}/{meta.name}" for meta in gone]


def own_access() -> dict[str, Any]:
    """Return the kubeconfig of the pod's own account."""
    server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    cluster = {"server": server, "certificate-authority": str(ACCOUNT / "ca.crt")}
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
        gone = reap(Transport(own_access).within(WITHIN_S))
    except Unanswered as silence:
        print(f"the API server does not answer: {silence}; the next run asks again", file=sys.stderr)
        return 1
    for name in gone:
        print(f"deleted {name}: its paid time is over")
    return 0


if __name__ == "__main__":
    sys.exit(main())
