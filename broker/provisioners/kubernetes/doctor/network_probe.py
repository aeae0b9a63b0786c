"""Network probe: three pods that test whether network policies are enforced.

This is the one part of the doctor that creates something: a namespace of its own, which is deleted
again whatever the result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from broker.domain.workloads.templates import USER_ID
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal
from broker.provisioners.kubernetes.client.kinds import NAMESPACE, POD, Manifest, ObjectRef
from broker.provisioners.kubernetes.client.objects import ApiStruct, ContainerStatus, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport
from broker.provisioners.kubernetes.doctor.snapshot import UnreadablePart
from ports import clock, ids

WITHIN_S, CALL_S, LOOK_S = 120.0, 20.0, 0.5
PORT, PATIENCE_S = 8080, 20
ACCOUNT, OPEN, CLOSED, CALLER = "tries", "open", "closed", "caller"
POLICY_HELD, POLICY_BROKEN, NOTHING_REACHED = 0, 11, 12  # exit codes of the caller; a crash exits with 1
SERVE = ["python", "-m", "http.server", str(PORT), "--directory", "/tmp"]
# The open pod must be reachable, or the closed one proves nothing; enforcement may start a little late.
CALL = f"""
import socket, sys, time
opened, closed, port, patience = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def reached(host):
    try:
        socket.create_connection((host, port), 5).close()
    except OSError:
        return False
    return True
for _ in range(patience):
    if reached(opened):
        break
    time.sleep(1)
else:
    sys.exit({NOTHING_REACHED})
time.sleep(patience / 4)
sys.exit({POLICY_BROKEN} if reached(closed) else {POLICY_HELD})
"""
T = TypeVar("T")


class _ProbePodStatus(ApiStruct):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    container_statuses: list[ContainerStatus] = []


class _ProbePod(ApiStruct):
    status: _ProbePodStatus = msgspec.field(default_factory=_ProbePodStatus)

    @property
    def address(self) -> str | None:
        return self.status.pod_ip or None

    @property
    def code(self) -> int | None:
        ended = (each.state.terminated for each in self.status.container_statuses)
        return next((each.exit_code for each in ended if each), None)

    @property
    def words(self) -> str:
        waits = (each.state.waiting for each in self.status.container_statuses)
        why = next((each.reason for each in waits if each), "")
        return f"{self.status.phase or 'missing'}" + (f" ({why})" if why else "")


def probe_network_policies(transport: Transport, *, image: str) -> bool | UnreadablePart:
    """Tell whether a policy makes a pod unreachable while an unrestricted one is reachable."""
    try:
        with _probe_namespace(transport) as home:
            return _run_probe(transport.within(WITHIN_S), home, image)
    except (ClusterUnreachable, ApiRefusal) as error:
        return UnreadablePart(f"the test could not run: {error}")


@contextmanager
def _probe_namespace(transport: Transport) -> Iterator[str]:
    """Create a namespace and delete it afterwards with everything in it."""
    name = f"gpub-tries-{ids.new('try')[-8:]}"
    # Without our labels: it belongs to no project, and drift repair must ignore it.
    marks = {"app.kubernetes.io/name": "gpub-tries", "pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marks}}
    made = transport.within(CALL_S).create(space, manager=labels.INSTALLER)
    try:
        yield name
    finally:
        transport.within(CALL_S).delete(ObjectRef(NAMESPACE, name), uid=made.metadata.uid, propagation="Background")


def _run_probe(api: KubernetesApi, home: str, image: str) -> bool | UnreadablePart:
    for each in probe_objects(home, image):
        api.create(each, manager=labels.INSTALLER)
    addresses = [_wait_for(api, home, name, lambda pod: pod.address) for name in (OPEN, CLOSED)]
    command = ["python", "-c", CALL, *addresses, str(PORT), str(PATIENCE_S)]
    api.create(probe_pod(home, CALLER, image, command), manager=labels.INSTALLER)
    code = _wait_for(api, home, CALLER, lambda pod: pod.code)
    if code in (POLICY_HELD, POLICY_BROKEN):
        return code == POLICY_HELD
    if code == NOTHING_REACHED:
        return UnreadablePart("in the test, even the pod without a policy was unreachable")
    return UnreadablePart(f"the test pod ended with exit code {code}: is {image} the broker's own image?")


def _wait_for(api: KubernetesApi, home: str, name: str, found: Callable[[_ProbePod], T | None]) -> T:
    """Poll a pod until `found` returns a value; ClusterUnreachable after the time limit."""
    while True:
        body = api.get(ObjectRef(POD, name, home))
        pod = decode(body, _ProbePod) if body else _ProbePod()
        if (value := found(pod)) is not None:
            return value
        if api.deadline - clock.monotonic() < 2 * LOOK_S:
            raise ClusterUnreachable(f"pod {name} in {home} is {pod.words} after {WITHIN_S:.0f} s")
        clock.sleep(LOOK_S)


def probe_objects(home: str, image: str) -> list[Manifest]:
    """Return the objects created first; the policy precedes the pod it restricts."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": home}}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": CLOSED, "namespace": home},
        "spec": {"podSelector": {"matchLabels": {"app": CLOSED}}, "policyTypes": ["Ingress"]},
    }
    return [account, policy, probe_pod(home, OPEN, image, SERVE), probe_pod(home, CLOSED, image, SERVE)]


def probe_pod(home: str, name: str, image: str, command: list[str]) -> Manifest:
    little = {"cpu": "50m", "memory": "64Mi"}
    container = {
        "name": "main",
        "image": image,
        "command": command,
        "resources": {"limits": little, "requests": little},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": home, "labels": {"app": name}},
        "spec": {
            "serviceAccountName": ACCOUNT,
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }
