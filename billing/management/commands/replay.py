"""`manage.py replay openb`: a trace through the real services in virtual time, and what came of it."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.test.utils import override_settings

from billing.services import closing, rating
from billing.services.replay import beside, drive, page, report, trace, world
from broker.domain.placement.engines import Engine
from broker.models.telling import untold
from broker.services import reconcile
from broker.services.catalogue import specs
from broker.services.placement.engine import choosing_by
from ports import clock, ids

LONGEST_LEASE_H = 24 * 366  # the trace has leases of months
MOST_CARDS = 10_000
AT_ONCE = 10**9  # the trace knows no pull or start times


class Command(BaseCommand):
    help = "Replay a trace of GPU requests on a simulated fleet, in an empty database, and report."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("trace", help="openb, or a CSV file with the same columns")
        parser.add_argument("--fleet", default="64xH100-80GB", help="<cards>x<GPU model>")
        parser.add_argument("--tenants", type=int, default=8)
        parser.add_argument("--seed", default="1")
        parser.add_argument("--first", type=int, default=0, help="only so many requests; 0 is all")
        parser.add_argument("--out", type=Path, default=Path("build"))
        parser.add_argument(
            "--engine",
            choices=[each.value for each in Engine],
            default=Engine.BID_PRICE.value,
            help="the rule",
        )
        parser.add_argument(
            "--beside",
            type=Path,
            action="append",
            default=[],
            help="the replay.json of an earlier replay by another rule, to stand beside this one",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cards, model = self._fleet(options["fleet"])
        if options["tenants"] < 1:
            raise CommandError("--tenants wants at least 1.")
        path = trace.OPENB if options["trace"] == "openb" else Path(options["trace"])
        try:
            requests = trace.read(path, specs()[model])[: options["first"] or None]
            earlier = [beside.read(each) for each in options["beside"]]
            asked = path.stem, model, cards, options["tenants"], options["seed"], len(requests)
            for each in earlier:
                beside.must_match(each, dict(zip(beside.SAME, asked, strict=True)))
            begun = clock.monotonic()
            with (
                override_settings(
                    MAX_LEASE_HOURS=LONGEST_LEASE_H,
                    SIMULATED_SPEED=AT_ONCE,
                    SIMULATED_CUT_S=0,
                    SIMULATED_DESTROY_S=0,
                ),
                ids.counted(options["seed"]),
                untold(),
                choosing_by(Engine(options["engine"])),
            ):
                stage = world.build(model=model, cards=cards, tenant_count=options["tenants"])
                run = drive.Run(stage, options["seed"], lambda now: self._close(now))
                last = run.live(requests)
            took = timedelta(seconds=clock.monotonic() - begun)
        except (trace.UnreadableTrace, beside.NotBeside, world.NotEmpty) as error:
            raise CommandError(str(error)) from error
        found = report.assemble(run, trace=path.stem, model=model, engine=options["engine"], last=last)
        if earlier:
            found["beside"] = beside.columns(earlier, found)
        self._write(found, options["out"])
        self._say(found, took)
        if found["not_final"]:
            raise CommandError("Months did not close: " + " ".join(found["not_final"]))

    def _fleet(self, text: str) -> tuple[int, str]:
        cards, _, model = text.partition("x")
        count = (
            int(cards) if cards.isascii() and cards.isdigit() and len(cards) <= len(str(MOST_CARDS)) else 0
        )
        if not 1 <= count <= MOST_CARDS or model not in world.models():
            raise CommandError(
                f"--fleet wants <cards>x<model>, such as 64xH100-80GB, of 1 to {MOST_CARDS:,} cards; models with"
                f" a list price: {', '.join(world.models())}."
            )
        return count, model

    def _close(self, now: Any) -> None:
        reconcile.look_at_active(now=now)
        rating.rate(now=now)
        closing.close_due(now=now)

    def _write(self, found: dict[str, Any], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "replay.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        (folder / "replay.html").write_text(page.render(found))

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
        for label, values in beside.table(columns):
            self.stdout.write(f"{label:48}" + "".join(f"{beside.shown(value):>12}" for value in values))
