"""`manage.py kube_doctor`: examine a Kubernetes cluster, registered or not, and suggest fixes."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker.management.cluster_lookup import find_cluster
from broker.provisioners.kubernetes.client.kubeconfig import UnusableKubeconfig, parse_kubeconfig
from broker.provisioners.kubernetes.doctor.examination import has_no_bad_finding
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterFinding
from broker.provisioners.kubernetes.drivers.cluster_driver import ClusterDriver
from broker.provisioners.kubernetes.drivers.driver_registry import (
    CLUSTER_DRIVERS,
    DRIVER_OPTIONS,
    UnknownOption,
    create_driver,
    parse_driver_options,
)
from broker.services.clusters.registration import cluster_examination
from ports import clock

MARKS = {
    CheckOutcome.OK: "ok     ",
    CheckOutcome.WARN: "warn   ",
    CheckOutcome.BAD: "BAD    ",
    CheckOutcome.UNKNOWN: "unknown",
}


class Command(BaseCommand):
    help = (
        "Check a Kubernetes cluster and suggest fixes. Exits with an error if a check is bad. Changes nothing,"
        " except with --try-network. The results of a registered cluster appear on its page."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", help="name or ID of a registered cluster")
        add_kubeconfig_arguments(parser)
        parser.add_argument(
            "--try-network",
            default="",
            metavar="IMAGE",
            help="test with pods of the broker's own image whether network policies are enforced, in a temporary"
            " namespace; needs an administrator's --kubeconfig",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        if bool(options["cluster"]) == bool(options["kubeconfig"]):
            raise CommandError("Name a registered cluster, or use --kubeconfig FILE for another cluster.")
        if options["cluster"] and options["try_network"]:
            raise CommandError(
                "--try-network creates pods, which the broker's account must not do. Use an administrator's"
                " --kubeconfig FILE instead of the name."
            )
        if options["cluster"]:
            findings = cluster_examination.run_examination(find_cluster(options["cluster"]).pk, now=now)
        else:
            _, driver = read_driver(options)
            findings = cluster_examination.examine_kubeconfig(
                read_kubeconfig(options), driver=driver, now=now, tries=options["try_network"]
            )
        if options["json"]:
            report = {"fits": has_no_bad_finding(findings), "findings": [asdict(each) for each in findings]}
            self.stdout.write(json.dumps(report, indent=2))
        else:
            self._print(findings)
        if not has_no_bad_finding(findings):
            sys.exit(1)

    def _print(self, findings: list[ClusterFinding]) -> None:
        for each in findings:
            self.stdout.write(f"{MARKS[each.outcome]} {each.name}: {each.seen}")
            if each.outcome is not CheckOutcome.OK:
                self.stdout.write(f"        {each.why}\n        -> {each.fix}")
        counts = ", ".join(f"{sum(each.outcome is outcome for each in findings)} {outcome}" for outcome in CheckOutcome)
        conclusion = (
            "Leases can run in this cluster."
            if has_no_bad_finding(findings)
            else "Leases would fail in this cluster. Fix the bad findings first."
        )
        self.stdout.write(f"\n{counts}. {conclusion}")


def add_kubeconfig_arguments(parser: CommandParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster")
    parser.add_argument("--context", default="", help="context to use instead of the current one")
    parser.add_argument(
        "--driver",
        choices=sorted(CLUSTER_DRIVERS),
        default="device_plugin",
        help="how pods request slices in the cluster",
    )
    parser.add_argument(
        "--option",
        action="append",
        metavar="NAME=yes|no",
        help="option of the driver: "
        + "; ".join(
            f"{driver}: {name}, {what}" for driver in DRIVER_OPTIONS for name, what in DRIVER_OPTIONS[driver].items()
        ),
    )


def read_driver(options: dict[str, Any]) -> tuple[dict[str, bool], ClusterDriver]:
    """Return the driver options and the driver; CommandError for invalid ones."""
    try:
        chosen = parse_driver_options(options["driver"], options["option"] or ())
    except UnknownOption as error:
        raise CommandError(f"--option: {error}.") from None
    return chosen, create_driver(options["driver"], chosen, cluster_examination.known_gpu_models())


def read_kubeconfig(options: dict[str, Any]) -> dict[str, Any]:
    """Read the named kubeconfig; CommandError that says what is wrong with it."""
    file: Path = options["kubeconfig"]
    try:
        return parse_kubeconfig(file.read_text(), context=options["context"], beside=file.parent)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not a text file"
        raise CommandError(f"{file} cannot be read: {why}.") from None
    except UnusableKubeconfig as error:
        raise CommandError(f"{file}: {error}") from None
