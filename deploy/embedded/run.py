"""`make run`: the order in which everything starts."""

import compileall
import os
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.embedded import account, binaries, folders, listening
from deploy.embedded.complaint import Complaint
from deploy.embedded.greeting import greeting
from deploy.embedded.postgres import Cluster, major_of
from deploy.embedded.preparation import fill, prepare
from deploy.embedded.process import Part
from deploy.embedded.product import Product
from deploy.embedded.roles import Server, need_address
from deploy.embedded.supervisor import Stopped, Supervisor
from deploy.embedded.valkey import Valkey


@contextmanager
def installation(options: Namespace) -> Iterator[tuple[Product, Supervisor]]:
    """Start the databases and hand out the product beside them; stop everything at the end."""
    os.umask(0o022)
    external = os.environ.get("DATABASE_URL", "")
    if options.fresh and external:
        raise Complaint(
            "FRESH=1 will not empty a database server that is not ours.\n"
            "Drop its database yourself (DROP DATABASE gpubroker), then start without FRESH."
        )
    if external:
        need_address(external)
    data = Path(options.data) if options.data else folders.usual()
    with folders.take(data):
        for port, what in ((options.port, "the portal and the API"), (options.port + 1, "live events")):
            listening.need_free(options.host, port, what=what, option="PORT")
        if options.fresh:
            folders.forget(data)
        servers = account.unprivileged()
        products = account.for_python(servers, folders.CHECKOUT)
        places = folders.prepare(data, servers=servers, products=products)
        supervisor = Supervisor(places.logs)
        try:
            parts: list[Part] = []
            server = Server(external)
            if not external:
                cluster = Cluster(
                    binaries.find_postgres(servers, major=major_of(places.postgres)),
                    places.postgres,
                    places.sockets,
                    places.data / "administrator",
                    servers,
                )
                cluster.initialise()
                server = Server(cluster.url())
                parts.append(cluster.part())
            valkey = Valkey(binaries.find_valkey(servers), places.valkey, places.sockets, servers)
            supervisor.start(*parts, valkey.part())
            if servers and products is None:
                supervisor.say(
                    f"PostgreSQL and Valkey run as {servers.name}; the product itself runs as root, because "
                    f"{servers.name} cannot reach this Python or this checkout."
                )
            if products:
                compile_for_others()
            yield Product(places, server, valkey, options.host, options.port, products), supervisor
        finally:
            supervisor.stop()


def compile_for_others() -> None:
    """Write the bytecode that an account which may not write here would compile at every start."""
    for floor in ("config", "ports", "tenants", "broker", "billing"):
        compileall.compile_dir(folders.CHECKOUT / floor, quiet=2)


def run(options: Namespace) -> int:
    """Start, greet, watch, stop."""
    began = time.monotonic()
    try:
        with installation(options) as (product, supervisor):
            new = prepare(product, supervisor)
            # The doors wake up beside the seed; the worker must not, it would act on a history half written.
            doors = supervisor.launch(*product.doors())
            demo = fill(product, supervisor, new=new)
            supervisor.until_ready(doors + supervisor.launch(*product.labour()))
            took = time.monotonic() - began
            logs = product.folders.logs
            print(greeting(address=product.address, demo=demo, logs=logs, seconds=took), flush=True)
            supervisor.launch(product.agent())  # after the greeting: a start does not wait for it
            supervisor.watch()
    except Stopped:
        print("\nStopped. Start again with: make run", flush=True)
    return 0
