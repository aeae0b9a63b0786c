"""The pod of one node of a lease: restricted, pinned, with no extra rights.

It is allowed under the restricted Pod Security Standard.
"""

from broker.domain.lifecycle.states import PriceClass
from broker.domain.workloads.templates import (
    HOME,
    SSH_KEYS_FILE,
    TEMPLATES,
    TOKEN_KEY,
    USER_ID,
    ContainerProgram,
    ReadinessProbe,
    WorkloadShape,
)
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest
from broker.provisioners.kubernetes.tolerations import GPU_TOLERATION

SERVICE_ACCOUNT = "tenant"
KEYS_FOLDER = "/etc/gpubroker/ssh"
SHARED_MEMORY_DIVISOR = 2  # /dev/shm may take half of the memory: data loaders pass batches through it
CONTAINER_NAME = "main"
GRACE_S = 30
BUILT_IN_IMAGES = frozenset(each.image for each in TEMPLATES.values())
PRIORITY = {PriceClass.ON_DEMAND: "gpub-ondemand", PriceClass.RESERVED: "gpub-ondemand", PriceClass.SPOT: "gpub-spot"}


def pod_template(lease: LeaseSpec, program: ContainerProgram, wants: PodSliceRequest, *, rank: int) -> Manifest:
    """Return the pod template for one node's controller."""
    node = lease.nodes[rank]
    metadata: Manifest = {"labels": {**labels.lease_labels(lease), labels.RANK: str(rank)}}
    if wants.annotations:
        metadata["annotations"] = dict(sorted(wants.annotations.items()))
    if lease.metered:
        metadata["finalizers"] = [labels.METERING_FINALIZER]
    spec: Manifest = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _pin_to_node(node)}},
        "automountServiceAccountToken": False,
        "containers": [_container(lease, program, wants, rank)],
        "enableServiceLinks": False,
        "priorityClassName": PRIORITY[lease.offering.price_class],
        "restartPolicy": "Never" if program.template.shape is WorkloadShape.BATCH else "Always",
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
        "tolerations": [each.manifest() for each in dict.fromkeys((GPU_TOLERATION, *lease.tolerations))],
        "volumes": _volumes(lease, program, node),
    }
    if lease.workload.pull_secret:
        spec["imagePullSecrets"] = [{"name": names.pull_secret_name(lease.lease_id, lease.generation)}]
    if wants.claim:
        spec["resourceClaims"] = [{"name": "slices", "resourceClaimName": wants.claim}]
    if wants.scheduler:
        spec["schedulerName"] = wants.scheduler
    if len(lease.nodes) > 1:  # so that the ranks find each other by name
        spec["subdomain"] = names.peers_name(lease.lease_id, lease.generation)
        spec["hostname"] = pod_host_name(lease, rank)
    return {"metadata": metadata, "spec": spec}


def pod_host_name(lease: LeaseSpec, rank: int) -> str:
    """Return the host name of a rank's pod.

    A StatefulSet's controller sets its own, which ends in -0.
    """
    name = names.controller_name(lease.lease_id, lease.generation, rank, len(lease.nodes))
    return f"{name}-0"


def needs_secret(lease: LeaseSpec, program: ContainerProgram) -> bool:
    return bool(program.ssh_keys or program.secrets or (program.template.token_env and lease.access_token))


def secret_key(variable: str) -> str:
    """Return the key of a variable's value in the lease's Secret."""
    return f"env.{variable}"


def scratch_path(lease: LeaseSpec, program: ContainerProgram) -> str:
    """Return the mount path of scratch storage; empty if a volume is mounted there.

    Scratch storage ends with the lease.
    """
    home = program.template.home
    return "" if home in {each.path for each in lease.volumes} else home


def _pin_to_node(node: str) -> Manifest:
    """Return a node affinity that pins by node name.

    The scheduler looks at this node alone, and still checks that the pod fits.
    """
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _container(lease: LeaseSpec, program: ContainerProgram, wants: PodSliceRequest, rank: int) -> Manifest:
    resources: Manifest = {name: str(count) for name, count in wants.limits.items()}
    host = lease.resources_on(lease.nodes[rank])
    resources["cpu"] = f"{host.cpu_milli}m"
    resources["memory"] = f"{host.memory_mib}Mi"
    resources["ephemeral-storage"] = f"{host.scratch_mib}Mi"
    requirements: Manifest = {"limits": dict(sorted(resources.items())), "requests": dict(sorted(resources.items()))}
    if wants.claim:
        requirements["claims"] = [{"name": "slices"}]
    container: Manifest = {
        "env": _env(lease, program, rank),
        "image": program.image,
        "name": CONTAINER_NAME,
        "resources": requirements,
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
    if lease.pull_always and program.image not in BUILT_IN_IMAGES:
        # A node may have it from a tenant with a login; the registry decides who may use it.
        container["imagePullPolicy"] = "Always"
    if program.command:
        container["command"] = [_escape_dollar(word) for word in program.command]
    if program.arguments:
        container["args"] = [_escape_dollar(word) for word in program.arguments]
    if program.template.ports:
        container["ports"] = [
            {"containerPort": port.number, "name": port.name, "protocol": "TCP"} for port in program.template.ports
        ]
    if program.template.probe:
        container |= _probes(program.template.probe)
    return container


def _escape_dollar(text: str) -> str:
    """Escape text so that the kubelet does not expand $(NAME) in it."""
    return text.replace("$", "$$")


def _env(lease: LeaseSpec, program: ContainerProgram, rank: int) -> list[Manifest]:
    ours = {"GPUBROKER_LEASE": lease.lease_id}
    if program.template.home == HOME:
        ours["HOME"] = HOME
    if len(lease.nodes) > 1:
        ours |= {"GPUBROKER_RANK": str(rank), "GPUBROKER_RANKS": str(len(lease.nodes))}
        ours["GPUBROKER_FIRST"] = f"{pod_host_name(lease, 0)}.{names.peers_name(lease.lease_id, lease.generation)}"
    values = {**ours, **{name: _escape_dollar(value) for name, value in program.env}}
    keys = {each.name: secret_key(each.name) for each in program.secrets}
    if program.template.token_env and lease.access_token:
        keys[program.template.token_env] = TOKEN_KEY
    env: list[Manifest] = [{"name": name, "value": value} for name, value in sorted(values.items()) if name not in keys]
    secret_name = names.secret_name(lease.lease_id, lease.generation)
    for name, key in keys.items():
        env.append({"name": name, "valueFrom": {"secretKeyRef": {"key": key, "name": secret_name}}})
    return env


def _probes(probe: ReadinessProbe) -> Manifest:
    check: Manifest = {"tcpSocket": {"port": probe.port}}
    if probe.path:
        check = {"httpGet": {"path": probe.path, "port": probe.port, "scheme": "HTTP"}}
    return {
        "readinessProbe": {**check, "periodSeconds": 5},
        "startupProbe": {**check, "failureThreshold": probe.patience_s, "periodSeconds": 1},
    }


def _volumes(lease: LeaseSpec, program: ContainerProgram, node: str) -> list[Manifest]:
    host = lease.resources_on(node)
    memory = f"{host.memory_mib // SHARED_MEMORY_DIVISOR}Mi"
    volumes: list[Manifest] = [{"emptyDir": {"medium": "Memory", "sizeLimit": memory}, "name": "shm"}]
    if scratch_path(lease, program):
        volumes.append({"emptyDir": {"sizeLimit": f"{host.scratch_mib}Mi"}, "name": "scratch"})
    if program.ssh_keys:
        secret = {
            "defaultMode": 0o444,
            "items": [{"key": SSH_KEYS_FILE, "path": SSH_KEYS_FILE}],
            "secretName": names.secret_name(lease.lease_id, lease.generation),
        }
        volumes.append({"name": "keys", "secret": secret})
    volumes += [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in (names.volume_name(each.volume_id) for each in lease.volumes)
    ]
    return volumes


def _mounts(lease: LeaseSpec, program: ContainerProgram) -> list[Manifest]:
    mounts: list[Manifest] = [{"mountPath": "/dev/shm", "name": "shm"}]
    if home := scratch_path(lease, program):
        mounts.append({"mountPath": home, "name": "scratch"})
    if program.ssh_keys:
        mounts.append({"mountPath": KEYS_FOLDER, "name": "keys", "readOnly": True})
    mounts += [{"mountPath": each.path, "name": names.volume_name(each.volume_id)} for each in lease.volumes]
    return mounts
