"""Benchmark of a launch: from the POST until the lease is active.

Web, worker, relay, beat and log collector run as in `make run`, on one machine, with its speed of the
simulated clusters. One lease after the other is requested by the API and polled until it is active.
"""

import os
import sys
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from bench.house_api import world  # noqa: E402
from deploy.embedded.product_processes import SIMULATED_SPEED  # noqa: E402
from ports import ids  # noqa: E402
from tests.chaos.client import Client  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

LAUNCHES, WARM_UP = (3, 1) if sys.argv[1:] == ["small"] else (60, 5)
POLL_S, PATIENCE_S = 0.02, 60.0


def launch(client: Client, body: dict[str, Any]) -> float:
    """Request a lease; return the seconds until it is active, and release it."""
    begun = perf_counter()
    answer = client.once("POST", "leases", body, key=ids.new("key"))
    if not answer.accepted:
        raise RuntimeError(f"{answer.status} {answer.body}")
    lease = answer.body["id"]
    while (state := client.once("GET", f"leases/{lease}").body["status"]["state"]) != "active":
        if perf_counter() - begun > PATIENCE_S:
            raise RuntimeError(f"{lease} is still {state}")
        sleep(POLL_S)
    took = perf_counter() - begun
    client.once("POST", f"leases/{lease}/release", key=ids.new("key"))
    return took


def main() -> None:
    figures = Figures("launch")
    os.environ["GPUBROKER_SIMULATED_SPEED"] = SIMULATED_SPEED
    _, token, body = world()
    with Processes() as processes:
        client = Client(processes.port, token)
        taken = [launch(client, body) for _ in range(WARM_UP + LAUNCHES)][WARM_UP:]
    figures.report_max("launch_to_active_p50", median(taken), unit="s", at_most=1.0)
    figures.report_max("launch_to_active_p90", quantiles(taken, n=10)[-1], unit="s", at_most=2.0)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
