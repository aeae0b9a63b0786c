"""TLS connections to PostgreSQL and Valkey with a private CA."""

import shutil
import signal
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from celery import Celery
from kombu.exceptions import OperationalError as BrokerError
from psycopg import OperationalError

from config.broker_url import parse_broker_url
from config.database_url import django_database
from deploy.embedded import account
from deploy.embedded.binaries import DEBIAN_DIRECTORY, PostgresPrograms
from deploy.embedded.postgres import PostgresCluster
from deploy.embedded.process import Process
from deploy.embedded.valkey import Valkey
from ports.postgres.base import DatabaseWrapper
from tests import session
from tests.controlplane.certificates import Authority

VERSION = 15
BY_TLS = """
SELECT ssl, application_name FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE pid = pg_backend_pid()
"""


@dataclass(frozen=True)
class Served:
    """A TLS server with its port, its CA, and an unrelated CA."""

    port: int
    authority: str
    stranger: str


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    """Write a server's certificate, its CA and an unrelated CA."""
    folder = Path(tempfile.mkdtemp(prefix="gpubroker-tls-", dir=session.folder().parent))
    folder.chmod(0o755)
    owner, authority = account.unprivileged_account(), Authority.new()
    for path in authority.server().write(folder, "server"):
        account.give_ownership(Path(path), owner)
    (folder / "authority.pem").write_bytes(authority.certificate)
    (folder / "stranger.pem").write_bytes(Authority.new().certificate)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def served(port: int, folder: Path) -> Served:
    return Served(port, str(folder / "authority.pem"), str(folder / "stranger.pem"))


@pytest.fixture(scope="module")
def postgres(certificates: Path) -> Iterator[tuple[Served, str]]:
    """Start a PostgreSQL that speaks TLS; yield it and its administrator's password."""
    programs = PostgresPrograms(DEBIAN_DIRECTORY / str(VERSION) / "bin", str(VERSION))
    if not Path(programs["postgres"]).exists():
        pytest.skip(f"no PostgreSQL {VERSION} with TLS: apt-get install postgresql-{VERSION}")
    owner, data = account.unprivileged_account(), certificates / "postgres"
    data.mkdir()
    account.give_ownership(data, owner)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "ssl": "on",
        "ssl_cert_file": str(certificates / "server.crt"),
        "ssl_key_file": str(certificates / "server.key"),
        "shared_preload_libraries": "",
        "fsync": "off",
    }
    cluster = PostgresCluster(programs, data / "cluster", data, certificates / "administrator", owner, settings)
    cluster.initialise()
    with (cluster.data / "pg_hba.conf").open("w") as rules:
        rules.write("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    process = Process(cluster.process_spec(), certificates / "postgres.log")
    process.start()
    try:
        end = time.monotonic() + 30
        while "ready to accept connections" not in process.read_log():
            assert process.is_alive, process.last_words()
            assert time.monotonic() < end
            time.sleep(0.05)
        yield served(port, certificates), cluster.password_file.read_text().strip()
    finally:
        process.send(signal.SIGINT)
        process.popen.wait(20)


def query(server: tuple[Served, str], options: str, *, host: str = "localhost") -> tuple[bool, str]:
    """Connect as Django does; return whether it is by TLS, and the application's name."""
    where, password = server
    url = f"postgresql://gpubroker_admin:{password}@{host}:{where.port}/postgres?application_name=billing&{options}"
    settings = {"TIME_ZONE": None, "AUTOCOMMIT": True, "ATOMIC_REQUESTS": False, "CONN_HEALTH_CHECKS": False}
    wrapper = DatabaseWrapper({**django_database(url, session="-c jit=off"), **settings}, alias="by_tls")
    with closing(wrapper.get_new_connection(wrapper.get_connection_params())) as connection:
        row: tuple[bool, str] = connection.execute(BY_TLS).fetchone()
        return row


def test_a_verified_connection_to_postgresql_is_by_tls(postgres: tuple[Served, str]) -> None:
    options = f"sslmode=verify-full&sslrootcert={postgres[0].authority}&target_session_attrs=read-write"
    assert query(postgres, options) == (True, "billing")


def test_postgresql_with_a_certificate_of_another_ca_is_refused(postgres: tuple[Served, str]) -> None:
    with pytest.raises(OperationalError, match="SSL error"):
        query(postgres, f"sslmode=verify-full&sslrootcert={postgres[0].stranger}")


def test_the_first_of_several_hosts_that_answers_is_used(postgres: tuple[Served, str]) -> None:
    options = f"sslmode=verify-full&sslrootcert={postgres[0].authority}&connect_timeout=3"
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound and not listening: refuses at once
        port = silent.getsockname()[1]
        assert query(postgres, options, host=f"localhost:{port},localhost") == (True, "billing")


@pytest.fixture
def valkey_by_tls(certificates: Path, valkey_server: Valkey) -> Iterator[Served]:
    """Put TLS in front of Valkey, whose wheel has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_accept, args=(listening, context, str(valkey_server.socket)), daemon=True)
        thread.start()
        yield served(listening.getsockname()[1], certificates)
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def _accept(listening: socket.socket, context: ssl.SSLContext, path: str) -> None:
    with suppress(OSError):
        while True:
            plain, _ = listening.accept()
            with suppress(ssl.SSLError):
                threading.Thread(target=_serve, args=(context.wrap_socket(plain, server_side=True), path)).start()


def _serve(client: ssl.SSLSocket, path: str) -> None:
    """Answer one client's commands, one after the other."""
    with client, socket.socket(socket.AF_UNIX) as valkey, suppress(OSError):
        valkey.connect(path)
        while asked := client.recv(65_536):
            valkey.sendall(asked)
            client.sendall(valkey.recv(65_536))


def ping(url: str) -> bool:
    address = parse_broker_url(url)
    app = Celery("tls", broker=address.url, broker_use_ssl=address.tls, set_as_current=False)
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, timeout=5)
        return bool(connection.default_channel.client.ping())


def test_valkey_answers_by_verified_tls(valkey_by_tls: Served) -> None:
    assert ping(f"rediss://localhost:{valkey_by_tls.port}/0?ssl_ca_certs={valkey_by_tls.authority}")


def test_valkey_with_a_certificate_of_another_ca_is_refused(valkey_by_tls: Served) -> None:
    with pytest.raises(BrokerError, match="certificate verify failed"):
        ping(f"rediss://localhost:{valkey_by_tls.port}/0?ssl_ca_certs={valkey_by_tls.stranger}")
