"""Command `make run`: the order in which everything starts."""

import os
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.embedded import account, binaries, folders, port_check, run_lock
from deploy.embedded.database_setup import prepare_database_for_start, seed_demo
from deploy.embedded.postgres import PLAIN_ENV, PostgresCluster, major_version_of
from deploy.embedded.process import ProcessSpec
from deploy.embedded.product_processes import LOOPBACK, PYTHON, ProductInstallation
from deploy.embedded.progress import Progress
from deploy.embedded.roles import Server, require_database_url
from deploy.embedded.startup_error import StartupError
from deploy.embedded.startup_message import startup_text
from deploy.embedded.supervisor import StopRequested, Supervisor
from deploy.embedded.valkey import Valkey


@contextmanager
def installation(
    options: Namespace, progress: Progress | None = None
) -> Iterator[tuple[ProductInstallation, Supervisor]]:
    """Start the database servers and yield the product; stop everything at the end."""
    os.umask(0o022)
    progress = progress or Progress()
    external = os.environ.get("DATABASE_URL", "")
    if options.fresh and external:
        raise StartupError(
            "FRESH=1 does not delete databases on an external server.\n"
            "Drop the database yourself (DROP DATABASE gpubroker), then start without FRESH."
        )
    if external:
        require_database_url(external)
    data = Path(options.data) if options.data else folders.default_data_directory()
    with run_lock.lock_data_directory(data, progress) as lock:
        port_check.require_free_port(options.host, options.port, what="the portal and the API", option="PORT")
        port_check.require_free_port(LOOPBACK, options.port + 1, what="live events", option="PORT")
        if options.fresh:
            folders.delete_state(data)
        servers = account.unprivileged_account()
        products = account.account_for_python(servers, folders.CHECKOUT)
        places = folders.create_directories(data, servers=servers, products=products)
        supervisor = Supervisor(places.logs, progress, keep_open=(lock.descriptor,))
        try:
            with progress.step(f"Database: start {'' if external else 'PostgreSQL and '}Valkey"):
                specs: list[ProcessSpec] = []
                server = Server(external)
                if not external:
                    cluster = PostgresCluster(
                        binaries.find_postgres(servers, major=major_version_of(places.postgres)),
                        places.postgres,
                        places.sockets,
                        places.data / "administrator",
                        servers,
                    )
                    cluster.initialise(progress, keep_open=(lock.descriptor,))
                    server = Server(cluster.url())
                    specs.append(cluster.process_spec())
                valkey = Valkey(binaries.find_valkey(servers), places.valkey, places.sockets, servers)
                supervisor.start(*specs, valkey.process_spec())
            if servers and products is None:
                supervisor.say(
                    f"PostgreSQL and Valkey run as {servers.name}; the product itself runs as root, because "
                    f"{servers.name} cannot reach this Python or this checkout."
                )
            if products:
                compile_bytecode(supervisor)
            yield ProductInstallation(places, server, valkey, options.host, options.port, products), supervisor
        finally:
            lock.mark_stopping()
            supervisor.stop()


def compile_bytecode(supervisor: Supervisor) -> None:
    """Compile the bytecode for an account that may not write it here.

    Otherwise it would compile everything at every start.
    """
    command = [PYTHON, "-m", "compileall", "-qq", "config", "ports", "tenants", "broker", "billing", "web"]
    with supervisor.progress.step("Processes: compile the code"):
        supervisor.finish(ProcessSpec("compile", command, PLAIN_ENV, cwd=folders.CHECKOUT))


def run(options: Namespace) -> int:
    """Start everything, print the message, supervise, and stop."""
    began, progress = time.monotonic(), Progress()
    try:
        with installation(options, progress) as (product, supervisor):
            new = prepare_database_for_start(product, supervisor)
            # Web and events start during the seed; the worker must not act on an incomplete history.
            web_processes = supervisor.launch(*product.web_processes())
            demo = seed_demo(product, supervisor, new=new)
            with progress.step("Processes: start web server, worker and scheduler"):
                supervisor.wait_until_ready(web_processes + supervisor.launch(*product.background_processes()))
            took = time.monotonic() - began
            logs = product.folders.logs
            print("\n" + startup_text(address=product.public_url, demo=demo, logs=logs, seconds=took), flush=True)
            supervisor.launch(product.agent_process())  # after the message: a start does not wait for it
            supervisor.watch()
    except StopRequested:
        print("\nStopped. Start again with: make run", flush=True)
    return 0
