"""Cost of metrics, with 10,000 leases of which 2,000 are live: `python -m bench.telemetry`.

A scrape queries the database, and every response is counted: neither may noticeably slow down other
requests.
"""

import sys
from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.test import Client, RequestFactory, override_settings

from bench.face import build, signed_in, timed  # it sets Django up as a web worker has it
from bench.figures import Figures
from config.metrics import RequestMetricsMiddleware

SCRAPE_MS = 200  # as any page
MOST_SERIES = 2_000  # of one web process that has served every page
COUNTING_US = 100
CALLS = 200 if sys.argv[1:] == ["small"] else 20_000
SERVED = ("/", "/launch/", "/leases/", "/spend/", "/invoices/", "/team/", "/none-such/")


def counting() -> float:
    """Return the microseconds that counting adds to a response."""
    request, answer = RequestFactory().get("/health"), HttpResponse("ok")

    def bare(request: HttpRequest) -> HttpResponse:
        return answer

    measured = RequestMetricsMiddleware(bare)
    measured(request)
    without, within = _each(bare, request), _each(measured, request)
    return (within - without) * 1e6


def _each(served: Callable[[HttpRequest], HttpResponseBase], request: HttpRequest) -> float:
    begun = perf_counter()
    for _ in range(CALLS):
        served(request)
    return (perf_counter() - begun) / CALLS


def main() -> None:
    figures = Figures("telemetry")
    build()
    visitor, scraper = signed_in("bench@example.org"), Client()
    with override_settings(ALLOWED_HOSTS=["testserver"]):
        for address in SERVED:
            visitor.get(address)
        p95, _ = timed(scraper, "/metrics")
        lines = scraper.get("/metrics").content.splitlines()
    figures.report_max("scrape_p95", p95, unit="ms", at_most=SCRAPE_MS)
    figures.report_max("series", sum(not line.startswith(b"#") for line in lines), unit="series", at_most=MOST_SERIES)
    figures.report_max("counting_an_answer", counting(), unit="us", at_most=COUNTING_US)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
