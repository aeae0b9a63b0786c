"""Three pods that try: whether a cluster's network keeps a policy that closes one of them.

The one part of an examination that makes something: a namespace of its own, which goes again however it ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from broker.domain.workloads import USER_ID
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.doctor.snapshot import Unseen
from broker.provisioners.kubernetes.kinds import NAMESPACE, POD, Manifest, Ref
from broker.provisioners.kubernetes.objects import ContainerStatus, Struct, read
from broker.provisioners.kubernetes.refusals import Refusal
from broker.provisioners.kubernetes.transport import Api, Transport
from ports import clock, ids

WITHIN_S, CALL_S, LOOK_S = 120.0, 20.0, 0.5
PORT, PATIENCE_S = 8080, 20
ACCOUNT, OPEN, CLOSED, CALLER = "tries", "open", "closed", "caller"
HELD, REACHED, ALONE = 0, 11, 12  # how the caller ends; a program that breaks ends with 1
SERVE = ["python", "-m", "http.server", str(PORT), "--directory", "/tmp"]
# The open one must be reached, or that the closed one was not would prove nothing; what enforces may be a little late.
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
    sys.exit({ALONE})
time.sleep(patience / 4)
sys.exit({REACHED} if reached(closed) else {HELD})
"""
T = TypeVar("T")


class _Status(Struct):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    container_statuses: list[ContainerStatus] = []


class _Pod(Struct):
    status: _Status = msgspec.field(default_factory=_Status)

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
        return f"{self.status.phase or 'not there'}" + (f" ({why})" if why else "")


def network_holds(transport: Transport, *, image: str) -> bool | Unseen:
    """Tell whether a pod that a policy closes is out of reach, while one that no policy closes is not."""
    try:
        with _home(transport) as home:
            return _try(transport.within(WITHIN_S), home, image)
    except (Unanswered, Refusal) as error:
        return Unseen(f"it could not be tried: {error}")


@contextmanager
def _home(transport: Transport) -> Iterator[str]:
    """Make a namespace, and take it away with all that is in it."""
    name = f"gpub-tries-{ids.new('try')[-8:]}"
    # Not marked as ours: it is no project's, and nobody is to put it right.
    marks = {"app.kubernetes.io/name": "gpub-tries", "pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marks}}
    made = transport.within(CALL_S).create(space, manager=labels.INSTALLER)
    try:
        yield name
    finally:
        transport.within(CALL_S).delete(Ref(NAMESPACE, name), uid=made.metadata.uid, propagation="Background")


def _try(api: Api, home: str, image: str) -> bool | Unseen:
    for each in objects(home, image):
        api.create(each, manager=labels.INSTALLER)
    addresses = [_until(api, home, name, lambda seen: seen.address) for name in (OPEN, CLOSED)]
    command = ["python", "-c", CALL, *addresses, str(PORT), str(PATIENCE_S)]
    api.create(pod(home, CALLER, image, command), manager=labels.INSTALLER)
    code = _until(api, home, CALLER, lambda seen: seen.code)
    if code in (HELD, REACHED):
        return code == HELD
    if code == ALONE:
        return Unseen("on trial not even the pod that no policy closes was reached")
    return Unseen(f"the pod that tries ended with {code}: is {image} the broker's own image?")


def _until(api: Api, home: str, name: str, found: Callable[[_Pod], T | None]) -> T:
    """Look at a pod until it has what is wanted of it; Unanswered when it takes too long."""
    while True:
        body = api.get(Ref(POD, name, home))
        seen = read(body, _Pod) if body else _Pod()
        if (value := found(seen)) is not None:
            return value
        if api.ends - clock.monotonic() < 2 * LOOK_S:
            raise Unanswered(f"the pod {name} of {home} is {seen.words} after {WITHIN_S:.0f} s")
        clock.sleep(LOOK_S)


def objects(home: str, image: str) -> list[Manifest]:
    """Return what is there before anybody calls: the policy comes before the pod that it closes."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": home}}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": CLOSED, "namespace": home},
        "spec": {"podSelector": {"matchLabels": {"app": CLOSED}}, "policyTypes": ["Ingress"]},
    }
    return [account, policy, pod(home, OPEN, image, SERVE), pod(home, CLOSED, image, SERVE)]


def pod(home: str, name: str, image: str, command: list[str]) -> Manifest:
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
