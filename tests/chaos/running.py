"""A running product in an empty folder on its own ports."""

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psycopg

from deploy.embedded import folders
from deploy.embedded.folders import CHECKOUT, socket_directory
from deploy.embedded.port_check import FIRST_EPHEMERAL_PORT
from deploy.embedded.postgres import ADMINISTRATOR_LOGIN
from deploy.embedded.product_processes import ProductInstallation
from deploy.embedded.roles import DATABASE, WORKER, Server
from deploy.embedded.valkey import Valkey

PATIENCE_S = 120.0
Connection = psycopg.Connection[tuple[object, ...]]


@dataclass
class Running:
    """The product's process, its output, and access to it."""

    data: Path
    port: int
    nodes: int
    popen: subprocess.Popen[bytes]

    @property
    def said(self) -> list[str]:
        return said_by(self.data).read_text().splitlines()

    @cached_property
    def world(self) -> dict[str, object]:
        """Return token, project and offerings of the tenant."""
        return dict(json.loads((self.data / "world.json").read_text()))

    @property
    def server(self) -> Server:
        password = (self.data / "administrator").read_text().strip()
        return Server(f"postgresql://{ADMINISTRATOR_LOGIN}:{password}@/postgres?host={socket_directory(self.data)}")

    def connect(self) -> Connection:
        """Connect to the product's database as superuser, without row-level security."""
        url = self.server.url.replace("/postgres?", f"/{DATABASE}?")
        return psycopg.connect(url, autocommit=True, connect_timeout=5)

    def until_ready(self) -> None:
        """Wait until every part answers."""
        end = time.monotonic() + PATIENCE_S
        while "ready" not in self.said:
            if self.popen.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the product did not start:\n" + "\n".join(self.said[-30:]))
            time.sleep(0.1)

    def run(self, module: str) -> None:
        """Run a test module in the environment of the product's worker."""
        places = folders.DataDirectories(self.data, socket_directory(self.data))
        valkey = Valkey("", places.valkey, places.sockets)
        env = ProductInstallation(places, self.server, valkey, "127.0.0.1", self.port).env(WORKER)
        subprocess.run([sys.executable, "-m", module], env=env, cwd=CHECKOUT, check=True, timeout=60)

    def stop(self) -> int:
        """Stop the product as Ctrl-C does, and return its exit status."""
        self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(20)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise


def free_ports() -> int:
    """Return a port that is free with the next one, below the ephemeral range."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(12_000, FIRST_EPHEMERAL_PORT - 2, 2)
        with socket.socket() as one, socket.socket() as two, suppress(OSError):
            one.bind(("127.0.0.1", port))
            two.bind(("127.0.0.1", port + 1))
            return port


def empty_folder() -> Path:
    """Make a data folder that the servers' user can reach."""
    data = Path(tempfile.mkdtemp(prefix="gpubroker-chaos-"))
    data.chmod(0o755)
    return data


def said_by(data: Path) -> Path:
    """Return the log file of the product, beside its data folder."""
    return Path(f"{data}.out")


def start(data: Path, port: int, *, nodes: int) -> Running:
    """Start the product on a data folder, new or used before."""
    command = [sys.executable, "-m", "tests.chaos.product", str(data), str(port), str(nodes)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GPUBROKER_")}
    with said_by(data).open("wb") as out:
        popen = subprocess.Popen(command, cwd=CHECKOUT, env=own, stdout=out, stderr=out)
    return Running(data, port, nodes, popen)


@contextmanager
def product(*, nodes: int = 2, keep_logs: Path | None = None, data: Path | None = None) -> Iterator[Running]:
    """Start a product, and remove it with all but wanted logs."""
    data = data or empty_folder()
    running = start(data, free_ports(), nodes=nodes)
    try:
        running.until_ready()
        yield running
    finally:
        try:
            if running.popen.poll() is None:
                running.stop()
        finally:
            if keep_logs:
                shutil.copytree(data / "logs", keep_logs, dirs_exist_ok=True)
                shutil.copy(said_by(data), keep_logs / "product.out")
            said_by(data).unlink()
            shutil.rmtree(data, ignore_errors=True)
            shutil.rmtree(socket_directory(data), ignore_errors=True)
            for counts in Path("/dev/shm").glob(
                f"gpubroker-*-{hashlib.sha256(bytes(data / 'files')).hexdigest()[:12]}"
            ):
                shutil.rmtree(counts, ignore_errors=True)
