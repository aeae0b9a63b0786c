"""A Kubernetes control plane on this machine, started in seconds and stopped by process ID."""

import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import tempfile
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Self

import urllib3

from deploy.embedded.process import Process, ProcessSpec
from tests import session
from tests.controlplane import binaries, commands, kubelet_server, volumes
from tests.controlplane.api import Api, Object, Refused
from tests.controlplane.certificates import Authority, Pair, new_key, pem, public_pem
from tests.controlplane.commands import LOCAL, Options, Places
from tests.controlplane.kubelets import all_of_a_node
from tests.controlplane.mig_manager import all_of_a_mig_manager
from tests.controlplane.pods import all_of_a_pod

ETCD, API, MANAGER, SCHEDULER, KUBELETS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
)
ADMINISTRATORS = "system:masters"
PREFIX = "gpubroker-cluster-"
LOWEST, EPHEMERAL_FROM = 20000, 32768
PORTS_OF_A_WORKER = 1500
PATIENCE_S = 120.0
_draws = itertools.count(os.getpid())  # another session on this machine begins elsewhere


class NotStarted(Exception):
    """A part of the control plane did not come up."""


def forget_the_dead(folder: Path) -> None:
    """Remove folders of clusters of killed test sessions."""
    for left in folder.glob(f"{PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(PREFIX).partition("-")[0]).exists():
            shutil.rmtree(left, ignore_errors=True)


def free_port() -> int:
    """Return a free port below the ephemeral range.

    It is drawn long before its part listens there: so no worker draws what another may, nor any port again soon.
    """
    lowest = LOWEST + PORTS_OF_A_WORKER * (session.worker_number() % 8)
    while True:
        port = lowest + next(_draws) % PORTS_OF_A_WORKER
        with socket.socket() as probe:
            try:
                probe.bind((LOCAL, port))
            except OSError:
                continue
            return port


class ControlPlane:
    """etcd, API server, controller manager, scheduler, and kwok for the kubelets."""

    def __init__(self, options: Options | None = None, *, within: Path | None = None) -> None:
        self.options = options or Options()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=within))
        forget_the_dead(self.folder.parent)
        self.places = Places(self.folder, *(free_port() for _ in range(6)))
        self.authority = Authority.new()
        self.processes: dict[str, Process] = {}
        self._write()
        self.api = Api(self.kubeconfig("admin", ADMINISTRATORS))
        self._probing = ssl.create_default_context(cadata=self.authority.certificate.decode())

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kubeconfig(self, user: str, *groups: str) -> Object:
        """Return a self-contained kubeconfig of a user with a client certificate."""
        return self._kubeconfig(self.authority.client(user, *groups))

    def kubeconfig_of_token(self, token: str) -> Object:
        """Return a kubeconfig with a token, as for a service account."""
        return self._kubeconfig({"token": token})

    def start(self) -> None:
        """Start every part; when this returns, pods are created, scheduled and run."""
        self.run(ETCD)
        self._await(ETCD, lambda: self._answers(f"http://{LOCAL}:{self.places.etcd}/health"))
        self.run(API)
        self._await(API, self._api_ready)
        for name in (MANAGER, SCHEDULER, KUBELETS):
            self.run(name)
        for manifest in volumes.installed():
            self.api.apply(manifest)
        self._await(SCHEDULER, lambda: self._answers(f"https://{LOCAL}:{self.places.scheduler}/readyz"))
        self._await(KUBELETS, lambda: self._answers(f"http://{LOCAL}:{self.places.kubelets}/healthz"))
        # Made by the controller manager; without it no pod is admitted.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._await(MANAGER, lambda: self.api.find(account) is not None)

    def run(self, name: str) -> None:
        """Start one part, or start it again."""
        program = binaries.find_binary(name)
        if program is None:
            raise NotStarted(f"{name} is not built. Run make controlplane once, then try again.")
        # A tenth less CPU for each pod, for memory that nobody here is short of.
        env = {"HOME": str(self.folder), "GOGC": "400"}
        part = ProcessSpec(name, [str(program), *self._flags(name)], env, orphan_signal=signal.SIGKILL)
        process = self.processes[name] = Process(part, self.folder / f"{name}.log")
        process.start()

    def kill(self, name: str) -> None:
        """Kill one part as a power cut would."""
        process = self.processes[name]
        process.send(signal.SIGKILL)
        process.popen.wait(10)

    def pause(self, name: str) -> None:
        """Suspend a part; its connections stay open without answers."""
        self.processes[name].send(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self.processes[name].send(signal.SIGCONT)

    def restart(self, name: str) -> None:
        """Kill and restart a part, and wait for the API server."""
        self.kill(name)
        self.run(name)
        if name == API:
            self._await(API, self._api_ready)

    def mend(self) -> None:
        """Restart every part that was killed or paused."""
        for name, process in list(self.processes.items()):
            process.send(signal.SIGCONT)
            if not process.is_alive:
                self.run(name)
        self._await(ETCD, lambda: self._answers(f"http://{LOCAL}:{self.places.etcd}/health"))
        self._await(API, self._api_ready)

    def stop(self) -> None:
        """Stop what runs, the last part first, and forget everything."""
        for process in reversed(self.processes.values()):
            process.send(signal.SIGKILL)
        for process in self.processes.values():
            process.popen.wait(10)
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def back_up(self) -> Path:
        """Back up etcd for a later restore."""
        copy = self.folder / f"backup-{len(list(self.folder.glob('backup-*')))}"
        self.pause(ETCD)
        shutil.copytree(self.folder / "etcd", copy)
        self.resume(ETCD)
        return copy

    def restore(self, backup: Path) -> None:
        """Restore a backup; later changes are lost."""
        self.kill(API)
        self.kill(ETCD)
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(backup, self.folder / "etcd")
        self.run(ETCD)
        self._await(ETCD, lambda: self._answers(f"http://{LOCAL}:{self.places.etcd}/health"))
        self.restart(API)

    def compact(self) -> None:
        """Compact etcd, so that an old watch gets a 410."""
        revision = self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def _etcd(self, path: str, body: Object) -> Object:
        request = urllib.request.Request(
            f"http://{LOCAL}:{self.places.etcd}{path}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    def _flags(self, name: str) -> list[str]:
        flags = {
            ETCD: lambda: commands.etcd(self.places),
            API: lambda: commands.api_server(self.places),
            MANAGER: lambda: commands.controller_manager(self.places, self.options),
            SCHEDULER: lambda: commands.scheduler(self.places),
            KUBELETS: lambda: commands.kubelets(self.places, self.options),
        }[name]()
        return [*flags, *self.options.more.get(name, ())]

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not ready():
            process = self.processes[name]
            if not process.is_alive or time.monotonic() > end:
                how = "ended" if not process.is_alive else f"is not ready after {PATIENCE_S:.0f} s"
                raise NotStarted(f"{name} {how}. Its last words:\n{process.last_words()}")
            time.sleep(0.02)

    def _answers(self, url: str) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2, context=self._probing) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _api_ready(self) -> bool:
        try:
            self.api.get("/readyz")
        except (Refused, urllib3.exceptions.HTTPError):
            return False
        return True

    def _kubeconfig(self, who: Pair | Object) -> Object:
        if isinstance(who, Pair):
            who = {"client-certificate-data": who.certificate, "client-key-data": who.key}
        user = {name: b64encode(pem).decode() if isinstance(pem, bytes) else pem for name, pem in who.items()}
        cluster = {
            "server": self.places.server,
            "certificate-authority-data": b64encode(self.authority.certificate).decode(),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }

    def _write(self) -> None:
        """Write certificates, kubeconfigs and stages for the parts."""
        (self.folder / "ca.crt").write_bytes(self.authority.certificate)
        self.authority.server().write(self.folder, "server")
        accounts = new_key()
        (self.folder / "accounts.key").write_bytes(pem(accounts))
        (self.folder / "accounts.pub").write_bytes(public_pem(accounts))
        users = {
            "admin": ("admin", ADMINISTRATORS),
            "kubelets": ("kubelets", ADMINISTRATORS),
            "controller-manager": ("system:kube-controller-manager",),
            "scheduler": ("system:kube-scheduler",),
        }
        for name, who in users.items():
            (self.folder / name).touch(mode=0o600)
            (self.folder / name).write_text(json.dumps(self.kubeconfig(*who)))
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": self.places.file("scheduler"), "qps": 1000, "burst": 1000},
        }
        (self.folder / "scheduler.yaml").write_text(json.dumps(scheduler))
        played = [*all_of_a_pod(), *all_of_a_node(), *all_of_a_mig_manager(), *volumes.all_of_storage()]
        played.append(kubelet_server.all_of_the_output(self.folder))
        played.append(kubelet_server.all_of_the_commands())
        (self.folder / "stages.yaml").write_text("\n---\n".join(map(json.dumps, played)))
