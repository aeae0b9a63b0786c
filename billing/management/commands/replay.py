"""`manage.py replay openb`: run a trace through the real services and report."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.test.utils import override_settings

from billing.services.demo.replay import (
    comparison,
    html_report,
    replay_environment,
    replay_report,
    replay_trace,
    simulator,
)
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from broker.domain.placement.costs.engines import PlacementEngine
from broker.models.transitions import transitions_not_logged
from broker.services.inventory.gpu_catalogue import gpu_model_specs
from broker.services.placement.shared_index import using_engine
from broker.services.reconciler import lease_reconciler
from ports import clock, ids

LONGEST_LEASE_H = 24 * 366  # the trace has leases of months
MAX_GPUS = 10_000
INSTANT_SPEED = 10**9  # the trace has no image pull or start times


class Command(BaseCommand):
    help = "Replay a trace of GPU requests on a simulated fleet, in an empty database, and report."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("trace", help="openb, or a CSV file with the same columns")
        parser.add_argument("--fleet", default="64xH100-80GB", help="<number of GPUs>x<GPU model>")
        parser.add_argument("--tenants", type=int, default=8, help="number of tenants to create")
        parser.add_argument("--seed", default="1", help="seed of all random choices")
        parser.add_argument("--first", type=int, default=0, help="replay only this many requests; 0 is all")
        parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the two reports")
        parser.add_argument(
            "--engine",
            choices=[each.value for each in PlacementEngine],
            default=PlacementEngine.BID_PRICE.value,
            help="placement rule",
        )
        parser.add_argument(
            "--compare-with",
            type=Path,
            action="append",
            default=[],
            help="replay.json of an earlier replay with another rule, to compare with this one",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        gpus, model = self._fleet(options["fleet"])
        if options["tenants"] < 1:
            raise CommandError("--tenants must be at least 1.")
        path = replay_trace.OPENB_PATH if options["trace"] == "openb" else Path(options["trace"])
        try:
            requests = replay_trace.read_trace(path, gpu_model_specs()[model])[: options["first"] or None]
            earlier = [comparison.read_report(each) for each in options["compare_with"]]
            inputs = path.stem, model, gpus, options["tenants"], options["seed"], len(requests)
            for each in earlier:
                comparison.check_comparable(each, dict(zip(comparison.COMPARED_INPUTS, inputs, strict=True)))
            begun = clock.monotonic()
            with (
                override_settings(
                    MAX_LEASE_HOURS=LONGEST_LEASE_H,
                    SIMULATED_SPEED=INSTANT_SPEED,
                    SIMULATED_PARTITION_S=0,
                    SIMULATED_DESTROY_S=0,
                ),
                ids.reproducible_ids(options["seed"]),
                transitions_not_logged(),
                using_engine(PlacementEngine(options["engine"])),
            ):
                stage = replay_environment.build_environment(model=model, gpus=gpus, tenant_count=options["tenants"])
                run = simulator.Simulation(stage, options["seed"], lambda now: self._close(now))
                last = run.live(requests)
            took = timedelta(seconds=clock.monotonic() - begun)
        except (replay_trace.UnreadableTrace, comparison.NotComparable, replay_environment.DatabaseNotEmpty) as error:
            raise CommandError(str(error)) from error
        found = replay_report.assemble_report(run, trace=path.stem, model=model, engine=options["engine"], last=last)
        if earlier:
            found["beside"] = comparison.comparison_columns(earlier, found)
        self._write(found, options["out"])
        self._say(found, took)
        if found["not_final"]:
            raise CommandError("Months did not close: " + " ".join(found["not_final"]))

    def _fleet(self, text: str) -> tuple[int, str]:
        gpus, _, model = text.partition("x")
        count = int(gpus) if gpus.isascii() and gpus.isdigit() and len(gpus) <= len(str(MAX_GPUS)) else 0
        if not 1 <= count <= MAX_GPUS or model not in replay_environment.usable_models():
            raise CommandError(
                f"--fleet must be <number>x<GPU model>, such as 64xH100-80GB, with 1 to {MAX_GPUS:,} GPUs; models with"
                f" a list price: {', '.join(replay_environment.usable_models())}."
            )
        return count, model

    def _close(self, now: Any) -> None:
        lease_reconciler.check_active_leases(now=now)
        lease_rating.rate_all_leases(now=now)
        close_month.close_due_months(now=now)

    def _write(self, found: dict[str, Any], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "replay.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        (folder / "replay.html").write_text(html_report.render_report(found))

    def _say(self, found: dict[str, Any], took: timedelta) -> None:
        for name in (
            "leases",
            "accepted",
            "refused",
            "queued",
            "queued_p50_s",
            "queued_p95_s",
            "gpu_hours",
            "unexplained_gpu_seconds",
            "charged_minus_active_seconds",
            "lines_minus_charges",
            "misrounded_lines",
            "wrong_invoice_totals",
            "engine",
            "sold_percent_while_waiting",
            "sold_percent_until_last_request",
            "digest",
        ):
            self.stdout.write(f"{name:30} {found[name]}")
        for name in ("invoices", "net_minor", "minor"):
            self.stdout.write(f"{f'invoiced: {name}':30} {sum(row[name] for row in found['months'])}")
        for kind, seconds in found["conservation"].items():
            self.stdout.write(f"  {kind:28} {seconds} GPU-seconds")
        if "beside" in found:
            self._compare(found["beside"])
        self.stdout.write(f"took {took.total_seconds():.1f} s")

    def _compare(self, columns: list[dict[str, Any]]) -> None:
        self.stdout.write(" " * 48 + "".join(f"{its['engine']:>12}" for its in columns))
        for label, values in comparison.comparison_rows(columns):
            self.stdout.write(f"{label:48}" + "".join(f"{comparison.format_figure(value):>12}" for value in values))
