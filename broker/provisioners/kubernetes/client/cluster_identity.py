"""Check that a cluster is the one registered and was not restored from a backup.

Otherwise objects it lacks would be taken for ended.
"""

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client.kinds import NAMESPACE
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi


def check_cluster_identity(api: KubernetesApi, uid: str, reached: int) -> None:
    """Raise ClusterUnreachable unless the cluster's uid and version are as expected.

    The version must not be older than one already seen.
    """
    if why := identity_change(api, uid, reached):
        raise ClusterUnreachable(why, again_in_s=30.0)


def read_cluster_uid(api: KubernetesApi) -> str:
    """Return the cluster's unique id: the uid of its namespace kube-system."""
    return _read_identity(api)[0]


def identity_change(api: KubernetesApi, uid: str, reached: int) -> str:
    """Return why a cluster is not as it was; empty if it is.

    One request reads both uid and version.
    """
    found, version = _read_identity(api)
    if uid and found != uid:
        return f"another cluster responds at this address: {found[:8]}, not {uid[:8]}"
    return version_regression(int(version), reached)


def version_regression(version: int, reached: int) -> str:
    """Return a message if a version precedes one already seen; else empty."""
    if version >= reached:
        return ""
    return f"its state is older than seen before (restored from a backup?): version {version} after {reached}"


def _read_identity(api: KubernetesApi) -> tuple[str, str]:
    items, version = api.list_all(NAMESPACE, fields="metadata.name=kube-system", metadata_only=True)
    return decode(items[0], ClusterObjectHeader).metadata.uid if items else "none", version
