"""The product's own processes: command, database login and readiness check of each."""

import base64
import http.client
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from deploy.embedded.account import UnprivilegedAccount, give_ownership
from deploy.embedded.folders import CHECKOUT, DataDirectories
from deploy.embedded.process import Process, ProcessSpec
from deploy.embedded.roles import DATABASE, OWNER, WEB, WORKER, Server
from deploy.embedded.valkey import Valkey

PYTHON = sys.executable
READY, HEALTH = "/ready", "/health"
BEAT_SCHEDULE = "beat-schedule"
# As in config/queues.py, which needs Celery. `celery` is the only queue of version 0.2.0.
LIFECYCLE_QUEUES, BACKGROUND_QUEUES, WORKERS = "lifecycle", "money,documents,maintenance,celery", 2
# Run as the relay's own login: PostgreSQL hides other users' queries.
RELAY_HAS_QUERIED_SQL = """
SELECT EXISTS (SELECT FROM pg_stat_activity
                WHERE datname = %s AND application_name = %s AND query LIKE '%%ports_outboxmessage%%')
"""
LOOPBACK = "127.0.0.1"
LOCAL_ADDRESSES = ("127.0.0.1", "::1", "0.0.0.0", "::", "")


# Fictitious supplier of the demo; only the check digit of its VAT number is valid.
SIMULATED_SPEED = "6"  # a lease is active within a second, as where the nodes have its image
SUPPLIER = {
    "GPUBROKER_SUPPLIER_NAME": "Example Compute GmbH",
    "GPUBROKER_SUPPLIER_STREET": "Beispielweg 7",
    "GPUBROKER_SUPPLIER_POSTCODE": "10115",
    "GPUBROKER_SUPPLIER_CITY": "Berlin",
    "GPUBROKER_SUPPLIER_COUNTRY": "DE",
    "GPUBROKER_SUPPLIER_VAT_ID": "DE111111125",
    "GPUBROKER_SUPPLIER_EMAIL": "invoices@example.org",
}


@dataclass(frozen=True)
class ProductInstallation:
    """Installation of the product on this machine."""

    folders: DataDirectories
    server: Server
    valkey: Valkey
    host: str
    port: int
    account: UnprivilegedAccount | None = None

    @property
    def browser_host(self) -> str:
        """Return the host name that a browser on this machine uses; passkeys need `localhost`."""
        return "localhost" if self.host in LOCAL_ADDRESSES else f"[{self.host}]" if ":" in self.host else self.host

    @property
    def public_url(self) -> str:
        return os.environ.get("GPUBROKER_PUBLIC_URL", f"http://{self.browser_host}:{self.port}")

    @property
    def keeps_local_mail(self) -> bool:
        """Return whether e-mails are shown on a page instead of being sent."""
        is_local = urlsplit(self.public_url).hostname in ("localhost", "127.0.0.1", "::1")
        return is_local and not os.environ.get("GPUBROKER_MAIL_URL")

    def env(self, role: str) -> dict[str, str]:
        """Return the environment of a process that logs in with a database role."""
        allowed_hosts = {"127.0.0.1", "localhost", "[::1]", self.browser_host, socket.gethostname()}
        user_settings = {name: value for name, value in os.environ.items() if name.startswith("GPUBROKER_")}
        return {
            "PATH": f"{Path(PYTHON).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(self.folders.files),
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "CELERY_SKIP_CHECKS": "1",  # `make check` ran them; here they would cost a second each
            # Defaults first, then the person's own variables, then what the launcher decides.
            "GPUBROKER_PUBLIC_URL": self.public_url,
            "GPUBROKER_EVENTS_UPSTREAM": f"{LOOPBACK}:{self.port + 1}",
            "GPUBROKER_ALLOWED_HOSTS": json.dumps(sorted(allowed_hosts)),
            "GPUBROKER_SECURE_COOKIES": "false" if self.public_url.startswith("http:") else "true",
            # The demo's operator has no second factor; one that is added is still required.
            "GPUBROKER_OPERATORS_REQUIRE_MFA": "false" if self.public_url.startswith("http:") else "true",
            "GPUBROKER_SIMULATED_SPEED": SIMULATED_SPEED,
            "GPUBROKER_PROVISIONER": "broker.provisioners.simulated.SimulatedProvisioner",
            **SUPPLIER,
            "GPUBROKER_LOCAL_MAIL": "true" if self.keeps_local_mail else "false",
            "GPUBROKER_PAYMENT_GATEWAY": "billing.gateways.simulated.SimulatedGateway",
            "GPUBROKER_SECRET_KEY": load_or_create_secret(self.folders.secrets / "secret_key", self.account),
            "GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS": load_or_create_secret(
                self.folders.secrets / "credential_keys", self.account, size=32
            ),
            **user_settings,
            "GPUBROKER_DATABASE_URL": self.server.login(role, DATABASE),
            "GPUBROKER_BROKER_URL": self.valkey.url,
            "GPUBROKER_DATA_DIR": str(self.folders.files),
        }

    def manage_command(self, name: str, *arguments: str, role: str = WEB, output: Path | None = None) -> ProcessSpec:
        """Return the specification of a manage.py command."""
        env = self.env(role)
        if role == OWNER:
            env |= {"GPUBROKER_OWNER_DATABASE_URL": self.server.login(OWNER, DATABASE)}
        command = [PYTHON, str(CHECKOUT / "manage.py"), *arguments, "--skip-checks"]
        return ProcessSpec(name, command, env, account=self.account, cwd=CHECKOUT, output=output)

    def web_processes(self) -> list[ProcessSpec]:
        """Return the specifications of the processes that serve requests."""
        web = [PYTHON, "-m", "gunicorn", "config.wsgi:application", "--bind", f"{self.host}:{self.port}"]
        web += ["--workers", "2", "--threads", "4", "--worker-class", "config.web_worker.BufferingWorker", "--preload"]
        web += ["--graceful-timeout", "3", "--timeout", "60", "--no-control-socket"]
        events = [PYTHON, "-m", "uvicorn", "config.asgi:application", "--no-access-log"]
        events += ["--host", LOOPBACK, "--port", str(self.port + 1), "--timeout-graceful-shutdown", "2"]
        events += ["--ws", "websockets-sansio", "--ws-max-size", "65536"]
        return [
            self._spec("web", web, WEB, ready=self._http_ready_check(self.port, READY), orphan_signal=signal.SIGQUIT),
            self._spec("events", events, WEB, ready=self._http_ready_check(self.port + 1, host=LOOPBACK)),
        ]

    def background_processes(self) -> list[ProcessSpec]:
        """Return the specifications of the background processes."""
        celery = [PYTHON, "-m", "celery", "-A", "config.celery"]
        beat = [*celery, "beat", "--loglevel", "WARNING", "--pidfile="]
        beat += ["-s", str(self.folders.files / BEAT_SCHEDULE)]
        relay = [PYTHON, str(CHECKOUT / "manage.py"), "relay", "--skip-checks"]
        collector = [PYTHON, str(CHECKOUT / "manage.py"), "log_collector"]
        return [
            self._worker("worker", LIFECYCLE_QUEUES, processes=2),
            # Invoices of a month keep it busy for minutes; launches keep the processor.
            self._worker("background-worker", BACKGROUND_QUEUES, processes=1, prefix=("nice", "-n", "19")),
            self._spec("beat", beat, WORKER, ready=self._beat_ready_check()),
            self._spec("relay", relay, WORKER, ready=self._relay_has_started),
            self._spec("log-collector", collector, WORKER),
        ]

    def _worker(self, name: str, queues: str, *, processes: int, prefix: tuple[str, ...] = ()) -> ProcessSpec:
        command = [*prefix, PYTHON, "-m", "celery", "-A", "config.celery", "worker", "-c", str(processes)]
        command += ["--queues", queues, "--loglevel", "INFO", "-n", f"{name}@gpubroker"]
        command += ["--without-gossip", "--without-mingle"]  # the workers need not know each other
        # Celery 5.7: once the broker is gone, a heartbeat retries for ever, and the worker never ends.
        command += ["--without-heartbeat"]
        return self._spec(name, command, WORKER, ready=self._workers_consume_tasks, orphan_signal=signal.SIGQUIT)

    def agent_process(self) -> ProcessSpec:
        """Return the specification of the cluster agent: idle until a cluster is registered."""
        command = [PYTHON, str(CHECKOUT / "manage.py"), "kube_agent"]
        return self._spec("agent", command, WORKER)

    def _spec(
        self,
        name: str,
        command: list[str],
        role: str,
        *,
        ready: Callable[[Process], bool] = lambda process: True,
        orphan_signal: signal.Signals = signal.SIGTERM,
    ) -> ProcessSpec:
        env = self.env(role) | {"PGAPPNAME": application_name(name)}
        return ProcessSpec(name, command, env, ready, self.account, CHECKOUT, orphan_signal=orphan_signal)

    def _http_ready_check(self, port: int, path: str = HEALTH, *, host: str = "") -> Callable[[Process], bool]:
        host = host or (LOOPBACK if self.host == "0.0.0.0" else self.host)

        def answers(process: Process) -> bool:
            connection = http.client.HTTPConnection(host, port, timeout=10)
            try:
                connection.request("GET", path)
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False
            finally:
                connection.close()

        return answers

    def _beat_ready_check(self) -> Callable[[Process], bool]:
        """Return a check that beat has written its schedule file."""

        def schedule_times() -> list[int]:
            return sorted(file.stat().st_mtime_ns for file in self.folders.files.glob(f"{BEAT_SCHEDULE}*"))

        before = schedule_times()
        return lambda process: schedule_times() != before

    def _relay_has_started(self, process: Process) -> bool:
        """Return whether the relay has queried the outbox; it subscribes before its first query."""
        try:
            with psycopg.connect(self.server.login(WORKER, DATABASE), connect_timeout=2) as connection:
                return connection.execute(RELAY_HAS_QUERIED_SQL, [DATABASE, application_name("relay")]).fetchone() == (
                    True,
                )
        except psycopg.OperationalError:
            return False

    def _workers_consume_tasks(self, process: Process) -> bool:
        """Return whether all workers consume tasks: nothing else here subscribes to a channel pattern."""
        try:
            return self.valkey.send_command(b"CLIENT LIST TYPE PUBSUB").count(b" psub=1 ") >= WORKERS
        except OSError:
            return False


def application_name(name: str) -> str:
    """Return the application name of a process in PostgreSQL's list of sessions."""
    return f"gpubroker {name}"


def load_or_create_secret(file: Path, account: UnprivilegedAccount | None, *, size: int = 48) -> str:
    """Return the secret in a file; generate it on the first start."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(base64.urlsafe_b64encode(secrets.token_bytes(size)).decode())
        give_ownership(file, account)
    return file.read_text().strip()
