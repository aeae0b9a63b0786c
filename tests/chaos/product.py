"""The whole product in one process: `python -m tests.chaos.product <data> <port>`.

Says `ready` when it is; ends on SIGTERM, or with whoever started it.
"""

import ctypes
import os
import signal
import sys
from argparse import Namespace
from pathlib import Path

from deploy.embedded import roles
from deploy.embedded.database_setup import prepare_database_for_start
from deploy.embedded.folders import CHECKOUT
from deploy.embedded.process import PR_SET_PDEATHSIG, ProcessSpec
from deploy.embedded.product_processes import PYTHON, ProductInstallation
from deploy.embedded.run import installation
from deploy.embedded.startup_error import StartupError
from deploy.embedded.supervisor import StopRequested, Supervisor


def furnish(product: ProductInstallation, supervisor: Supervisor, nodes: str) -> None:
    """Create a fleet and a tenant with access, unless they exist."""
    found = product.folders.data / "world.json"
    if found.exists():
        return
    command, fresh = [PYTHON, "-m", "tests.chaos.world", nodes], found.with_suffix(".new")
    env = product.env(roles.WEB)
    with roles.without_sync_commit(product.server, roles.DATABASE):
        supervisor.run(ProcessSpec("world", command, env, account=product.account, cwd=CHECKOUT, output=fresh))
    fresh.rename(found)


def main(data: str, port: str, nodes: str) -> int:
    """Start everything in the order of `make run`, report it, and supervise."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    options = Namespace(data=Path(data), port=int(port), host="127.0.0.1", fresh=False)
    os.environ.pop("DATABASE_URL", None)  # nobody else's server is killed here
    try:
        with installation(options) as (product, supervisor):
            supervisor.say = lambda line: print(line, flush=True)
            prepare_database_for_start(product, supervisor)
            web_processes = supervisor.launch(*product.web_processes())
            furnish(product, supervisor, nodes)
            supervisor.wait_until_ready(web_processes + supervisor.launch(*product.background_processes()))
            print("ready", flush=True)
            supervisor.watch()
    except StopRequested:
        print("stopped", flush=True)
    except StartupError as complaint:
        print(complaint, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
