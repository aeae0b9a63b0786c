"""Whether a cluster is the one that joined, in no older state: else what it lacks would pass for ended."""

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.kinds import NAMESPACE
from broker.provisioners.kubernetes.objects import Thing, read
from broker.provisioners.kubernetes.transport import Api


def must_be(api: Api, uid: str, reached: int) -> None:
    """Raise Unanswered unless this is the cluster of this uid, at a version no older than was seen of it."""
    if why := changed(api, uid, reached):
        raise Unanswered(why, again_in_s=30.0)


def uid_of(api: Api) -> str:
    """Return by what a cluster is told from every other."""
    return _asked(api)[0]


def changed(api: Api, uid: str, reached: int) -> str:
    """Say why a cluster is not what it was; empty while it is. One request tells both."""
    found, version = _asked(api)
    if uid and found != uid:
        return f"another cluster answers in its place: {found[:8]}, not {uid[:8]}"
    return older(int(version), reached)


def older(version: int, reached: int) -> str:
    """Say that a version lies before one that was seen already; empty when it does not."""
    if version >= reached:
        return ""
    return f"an older state of it answers, restored perhaps: version {version}, after {reached} was seen"


def _asked(api: Api) -> tuple[str, str]:
    items, version = api.list_all(NAMESPACE, fields="metadata.name=kube-system", metadata_only=True)
    return read(items[0], Thing).metadata.uid if items else "none", version
