"""The commands that start the parts of a control plane."""

from dataclasses import dataclass, field
from pathlib import Path

LOCAL = "127.0.0.1"


@dataclass(frozen=True)
class Options:
    """Options of a control plane that a test can change."""

    # A kubelet renews its lease every quarter of this, and is believed dead after the grace.
    node_lease_s: int = 8
    node_grace_s: int = 7
    quota_sync_s: int = 5
    # More flags for a part by its name: {"kube-apiserver": ("--max-requests-inflight=4",)}
    more: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Where the parts of one control plane keep their files and listen."""

    folder: Path
    etcd: int
    peers: int
    api: int
    manager: int
    scheduler: int
    kubelets: int

    def file(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def server(self) -> str:
        return f"https://{LOCAL}:{self.api}"


def etcd(places: Places) -> list[str]:
    """Return the command of etcd, without durable writes."""
    clients, peers = f"http://{LOCAL}:{places.etcd}", f"http://{LOCAL}:{places.peers}"
    return [
        f"--data-dir={places.file('etcd')}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def api_server(places: Places) -> list[str]:
    """Return the command of the API server, with certificate authentication."""
    return [
        f"--etcd-servers=http://{LOCAL}:{places.etcd}",
        f"--bind-address={LOCAL}",
        f"--advertise-address={LOCAL}",
        f"--secure-port={places.api}",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={places.file('server.crt')}",
        f"--tls-private-key-file={places.file('server.key')}",
        f"--client-ca-file={places.file('ca.crt')}",
        "--authorization-mode=RBAC",
        "--anonymous-auth=false",
        "--allow-privileged=true",  # as nearly every cluster; what refuses it is policy
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={places.file('accounts.pub')}",
        f"--service-account-signing-key-file={places.file('accounts.key')}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--etcd-compaction-interval=0",
        "--event-ttl=10m",
        "--profiling=false",
    ]


def controller_manager(places: Places, options: Options) -> list[str]:
    """Return the command of the controller manager, without cloud controllers."""
    return [
        *_of_the_house(places, "controller-manager", places.manager),
        f"--kubeconfig={places.file('controller-manager')}",
        "--leader-elect=false",
        f"--root-ca-file={places.file('ca.crt')}",
        f"--service-account-private-key-file={places.file('accounts.key')}",
        "--use-service-account-credentials",
        # The usual 20 requests a second make the controllers' own accounts take five seconds to come.
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        f"--resource-quota-sync-period={options.quota_sync_s}s",
        f"--node-monitor-grace-period={options.node_grace_s}s",
        "--node-monitor-period=1s",
    ]


def scheduler(places: Places) -> list[str]:
    """Return the command of the scheduler."""
    return [
        *_of_the_house(places, "scheduler", places.scheduler),
        f"--config={places.file('scheduler.yaml')}",
    ]


def kubelets(places: Places, options: Options) -> list[str]:
    """Return the command of kwok, which simulates the kubelets."""
    return [
        f"--kubeconfig={places.file('kubelets')}",
        f"--config={places.file('stages.yaml')}",
        f"--manage-nodes-with-label-selector={POWERED}=true",
        f"--node-lease-duration-seconds={options.node_lease_s}",
        f"--server-address={LOCAL}:{places.kubelets}",
        # Where the API server finds the kubelet of every node, for logs.
        f"--node-ip={LOCAL}",
        f"--node-port={places.kubelets}",
        f"--tls-cert-file={places.file('server.crt')}",
        f"--tls-private-key-file={places.file('server.key')}",
        "--cidr=10.128.0.0/14",  # of pods, apart from that of services
    ]


POWERED = "kubelet.test/powered"


def _of_the_house(places: Places, name: str, port: int) -> list[str]:
    return [
        f"--authentication-kubeconfig={places.file(name)}",
        f"--authorization-kubeconfig={places.file(name)}",
        f"--bind-address={LOCAL}",
        f"--secure-port={port}",
        # Else each makes a key and a certificate of its own at every start.
        f"--tls-cert-file={places.file('server.crt')}",
        f"--tls-private-key-file={places.file('server.key')}",
        "--profiling=false",
    ]
