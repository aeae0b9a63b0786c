"""In-cluster CronJob: delete each overdue lease's owner ConfigMap (anchor), and so its objects.

It works without the broker. The broker moves `paid-until` ahead as long as it is alive and a lease is
paid. The time is that of the API server.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal, ObjectConflict
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, ObjectRef
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport
from broker.provisioners.kubernetes.render.lease import format_time

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIME_LIMIT_S = 40.0


def find_overdue(anchors: Iterable[objects.ClusterObjectHeader], *, now: datetime) -> list[objects.FullObjectMeta]:
    """Return anchor ConfigMaps whose paid-until annotation has passed and that are not being deleted."""
    found = []
    for each in anchors:
        until = each.metadata.annotations.get(labels.PAID_UNTIL, "")
        if until and until < format_time(now) and each.metadata.deletion_timestamp is None:
            found.append(each.metadata)
    return found


@dataclass(frozen=True)
class ReapResult:
    """Names of the deleted anchors, and the reasons for those not deleted."""

    deleted: list[str]
    failed: list[str]


def delete_overdue(api: KubernetesApi) -> ReapResult:
    """Delete overdue anchors; one that cannot be deleted does not stop the others."""
    ours = f"{labels.OURS_SELECTOR},{labels.ROLE}={labels.ANCHOR_ROLE}"
    items, _ = api.list_all(CONFIG_MAP, labels=ours, metadata_only=True)
    found = ReapResult([], [])
    for meta in find_overdue(
        (objects.decode(item, objects.ClusterObjectHeader) for item in items), now=_cluster_time(api)
    ):
        name = f"{meta.namespace}/{meta.name}"
        try:
            api.delete(ObjectRef(CONFIG_MAP, meta.name, meta.namespace), uid=meta.uid, propagation="Foreground")
        except ObjectConflict:
            continue  # a successor has its name: the next run decides about it
        except (ApiRefusal, ClusterUnreachable) as error:
            found.failed.append(f"{name}: {error}")
        else:
            found.deleted.append(name)
    return found


def _cluster_time(api: KubernetesApi) -> datetime:
    """Return the API server's time, never our own clock's."""
    date = api.send("GET", "/version").headers.get("Date", "")
    try:
        return parsedate_to_datetime(date)
    except ValueError:
        raise ClusterUnreachable(f"its response has no valid Date header: {date!r}") from None


def pod_kubeconfig() -> dict[str, Any]:
    """Return the kubeconfig of the pod's own service account."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"[{host}]" if ":" in host else host  # brackets around an IPv6 address before a port
    cluster = {"server": f"https://{server}:{port}", "certificate-authority": str(SERVICE_ACCOUNT_DIR / "ca.crt")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "own",
        "clusters": [{"name": "own", "cluster": cluster}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        "users": [{"name": "own", "user": {"tokenFile": str(SERVICE_ACCOUNT_DIR / "token")}}],
    }


def main() -> int:
    try:
        found = delete_overdue(Transport(pod_kubeconfig).within(TIME_LIMIT_S))
    except (ApiRefusal, ClusterUnreachable) as error:
        print(
            f"the API server cannot be reached or refused the request: {error}; the next run tries again",
            file=sys.stderr,
        )
        return 1
    for name in found.deleted:
        print(f"deleted {name}: its paid time is over")
    for why in found.failed:
        print(f"could not delete {why}; the next run tries again", file=sys.stderr)
    return 1 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
