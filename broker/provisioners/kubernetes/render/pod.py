"""The pod of one node of a lease: allowed under the restricted Pod Security Standard, pinned, no more than asked."""

from broker.domain.states import PriceClass
from broker.domain.workloads import HOME, KEYS_AT, TOKEN, USER_ID, Probe, Program, Shape
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import Wants
from broker.provisioners.kubernetes.spec import LeaseSpec, Manifest

SERVICE_ACCOUNT = "tenant"
KEYS_FOLDER = "/etc/gpubroker/ssh"
SHARED_MEMORY_PART = 2  # /dev/shm may take up to half of the memory: loaders of data pass batches through it
GRACE_S = 30
PRIORITY = {
    PriceClass.ON_DEMAND: "gpub-ondemand",
    PriceClass.RESERVED: "gpub-ondemand",
    PriceClass.SPOT: "gpub-spot",
}


def pod_template(lease: LeaseSpec, program: Program, wants: Wants, *, rank: int) -> Manifest:
    """Return what a controller makes the pod of one node from."""
    node = lease.nodes[rank]
    metadata: Manifest = {"labels": {**labels.of_lease(lease), labels.RANK: str(rank)}}
    if wants.annotations:
        metadata["annotations"] = dict(sorted(wants.annotations.items()))
    if lease.metered:
        metadata["finalizers"] = [labels.METERING]
    spec: Manifest = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _only(node)}},
        "automountServiceAccountToken": False,
        "containers": [_container(lease, program, wants, rank)],
        "enableServiceLinks": False,
        "priorityClassName": PRIORITY[lease.offering.price_class],
        "restartPolicy": "Never" if program.template.shape is Shape.BATCH else "Always",
        "securityContext": {
            "fsGroup": program.template.group_id,
            "fsGroupChangePolicy": "OnRootMismatch",
            "runAsGroup": program.template.group_id,
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": GRACE_S,
        "tolerations": [{"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"}],
        "volumes": _volumes(lease, program, node),
    }
    if wants.claim:
        spec["resourceClaims"] = [{"name": "slices", "resourceClaimName": wants.claim}]
    if wants.scheduler:
        spec["schedulerName"] = wants.scheduler
    if len(lease.nodes) > 1:  # so that the ranks find each other by name
        spec["subdomain"] = names.peers(lease.lease_id, lease.generation)
        spec["hostname"] = host_name(lease, rank)
    return {"metadata": metadata, "spec": spec}


def host_name(lease: LeaseSpec, rank: int) -> str:
    """Return the name under which the pod of a rank is found; a StatefulSet's is its own, and ends in -0."""
    name = names.on_node(lease.lease_id, lease.generation, rank, len(lease.nodes))
    return f"{name}-0"


def needs_secret(lease: LeaseSpec, program: Program) -> bool:
    return bool(program.ssh_keys or (program.template.token_env and lease.access_token))


def scratch_at(lease: LeaseSpec, program: Program) -> str:
    """Return where storage that ends with the lease is mounted; empty where a volume lies there already."""
    home = program.template.home
    return "" if home in {each.path for each in lease.volumes} else home


def _only(node: str) -> Manifest:
    """Pin by the node's own name: the scheduler looks at this node alone, and still checks that it fits."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _container(lease: LeaseSpec, program: Program, wants: Wants, rank: int) -> Manifest:
    resources: Manifest = {name: str(count) for name, count in wants.limits.items()}
    node = lease.nodes[rank]
    resources["cpu"] = f"{_part(lease, node, lease.offering.cpu_milli)}m"
    resources["memory"] = f"{_part(lease, node, lease.offering.memory_mib)}Mi"
    resources["ephemeral-storage"] = f"{_part(lease, node, lease.offering.scratch_mib)}Mi"
    asked: Manifest = {"limits": dict(sorted(resources.items())), "requests": dict(sorted(resources.items()))}
    if wants.claim:
        asked["claims"] = [{"name": "slices"}]
    container: Manifest = {
        "env": _env(lease, program, rank),
        "image": program.image,
        "name": "main",
        "resources": asked,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "runAsNonRoot": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(lease, program),
        "workingDir": program.template.home,
    }
    if program.command:
        container["command"] = [_literal(word) for word in program.command]
    if program.arguments:
        container["args"] = [_literal(word) for word in program.arguments]
    if program.template.ports:
        container["ports"] = [
            {"containerPort": port.number, "name": port.name, "protocol": "TCP"}
            for port in program.template.ports
        ]
    if program.template.probe:
        container |= _probes(program.template.probe)
    return container


def _part(lease: LeaseSpec, node: str, of_a_card: int) -> int:
    """Return what of the machine comes with the slices on a node: as much of it as they are of their cards."""
    return max(sum(of_a_card * each.size // each.grid for each in lease.slices_on(node)), 1)


def _literal(text: str) -> str:
    """Keep the kubelet from reading $(NAME) as a reference to a variable."""
    return text.replace("$", "$$")


def _env(lease: LeaseSpec, program: Program, rank: int) -> list[Manifest]:
    ours = {"GPUBROKER_LEASE": lease.lease_id}
    if program.template.home == HOME:
        ours["HOME"] = HOME
    if len(lease.nodes) > 1:
        ours |= {"GPUBROKER_RANK": str(rank), "GPUBROKER_RANKS": str(len(lease.nodes))}
        ours["GPUBROKER_FIRST"] = f"{host_name(lease, 0)}.{names.peers(lease.lease_id, lease.generation)}"
    values = {**ours, **{name: _literal(value) for name, value in program.env}}
    env: list[Manifest] = [{"name": name, "value": value} for name, value in sorted(values.items())]
    if program.template.token_env and lease.access_token:
        env = [each for each in env if each["name"] != program.template.token_env]
        secret = {"key": TOKEN, "name": names.keys(lease.lease_id, lease.generation)}
        env.append({"name": program.template.token_env, "valueFrom": {"secretKeyRef": secret}})
    return env


def _probes(probe: Probe) -> Manifest:
    check: Manifest = {"tcpSocket": {"port": probe.port}}
    if probe.path:
        check = {"httpGet": {"path": probe.path, "port": probe.port, "scheme": "HTTP"}}
    return {
        "readinessProbe": {**check, "periodSeconds": 5},
        "startupProbe": {**check, "failureThreshold": probe.patience_s, "periodSeconds": 1},
    }


def _volumes(lease: LeaseSpec, program: Program, node: str) -> list[Manifest]:
    memory = f"{_part(lease, node, lease.offering.memory_mib) // SHARED_MEMORY_PART}Mi"
    volumes: list[Manifest] = [{"emptyDir": {"medium": "Memory", "sizeLimit": memory}, "name": "shm"}]
    if scratch_at(lease, program):
        size = f"{_part(lease, node, lease.offering.scratch_mib)}Mi"
        volumes.append({"emptyDir": {"sizeLimit": size}, "name": "scratch"})
    if program.ssh_keys:
        secret = {
            "defaultMode": 0o444,
            "items": [{"key": KEYS_AT, "path": KEYS_AT}],
            "secretName": names.keys(lease.lease_id, lease.generation),
        }
        volumes.append({"name": "keys", "secret": secret})
    volumes += [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in (names.volume(each.volume_id) for each in lease.volumes)
    ]
    return volumes


def _mounts(lease: LeaseSpec, program: Program) -> list[Manifest]:
    mounts: list[Manifest] = [{"mountPath": "/dev/shm", "name": "shm"}]
    if home := scratch_at(lease, program):
        mounts.append({"mountPath": home, "name": "scratch"})
    if program.ssh_keys:
        mounts.append({"mountPath": KEYS_FOLDER, "name": "keys", "readOnly": True})
    mounts += [{"mountPath": each.path, "name": names.volume(each.volume_id)} for each in lease.volumes]
    return mounts
