"""Terminal in the pod of a lease, through `pods/exec`."""

from asgiref.sync import sync_to_async

from broker.provisioners.base import ClusterUnreachable, ProvisionSpec
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal
from broker.provisioners.kubernetes.client.cluster_identity import check_cluster_identity
from broker.provisioners.kubernetes.client.exec_stream import ExecStream, open_exec_stream
from broker.provisioners.kubernetes.client.objects import ObservedPod
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection, connect_to_cluster
from broker.provisioners.kubernetes.lease_creation import allow_pod_access
from broker.provisioners.kubernetes.observe.object_lookup import find_lease_objects
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.render.spec import LeaseSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.provisioners.terminals import TerminalSize, TerminalUnavailable

CONTAINER = "main"
# `exec` of a missing program would end a POSIX shell, so bash is looked for first.
SHELL = "export TERM=xterm-256color; command -v bash >/dev/null 2>&1 && exec bash; exec sh"
COMMAND = ("/bin/sh", "-c", SHELL)


async def open_pod_terminal(
    spec: ProvisionSpec, size: TerminalSize, *, connection: ClusterConnection | None = None
) -> ExecStream:
    """Open a shell in the first pod of a lease; raise TerminalUnavailable with the reason."""
    if spec.frozen:
        raise TerminalUnavailable(f"The cluster is frozen until an operator decides: {spec.frozen}")
    api, namespace, pod = await sync_to_async(_find_pod, thread_sensitive=False)(spec, connection)
    stream = await open_exec_stream(api, namespace=namespace, pod=pod, container=CONTAINER, command=COMMAND)
    await stream.resize(size)
    return stream


def _find_pod(spec: ProvisionSpec, connection: ClusterConnection | None) -> tuple[ApiConnection, str, str]:
    """Return a lease's cluster connection, and namespace and name of its first pod."""
    try:
        used = connection or connect_to_cluster(spec.cluster)
        wanted = lease_spec(spec, used.installation)
        api = used.transport.within()
        if uid := used.uid():
            check_cluster_identity(api, uid, used.reached())
        running = [pod for pod in find_lease_objects(api, wanted).pods if _is_usable(pod, wanted)]
        if not running:
            raise TerminalUnavailable("The lease's program is not running at the moment. Try again in a minute.")
        allow_pod_access(api, wanted.project)  # a project of before has no access yet
        first = min(running, key=lambda pod: (pod.metadata.labels.get(labels.RANK, ""), pod.metadata.name))
        return used.transport.connection(), namespace_of(wanted), first.metadata.name
    except ClusterUnreachable as error:
        raise TerminalUnavailable(f"The cluster cannot be reached: {error}") from None
    except ApiRefusal as error:
        raise TerminalUnavailable(f"The cluster refused the broker: {error}") from None


def _is_usable(pod: ObservedPod, wanted: LeaseSpec) -> bool:
    ours = labels.labels_match(pod.metadata.labels, labels.lease_labels(wanted))
    return ours and pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None
