"""`manage.py kube_doctor`: examine a Kubernetes cluster, before it joins or after, and say how to mend it."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker.models import Cluster
from broker.provisioners.kubernetes.doctor.findings import Finding, Outcome
from broker.provisioners.kubernetes.doctor.judging import fits
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.choosing import (
    CHOICES,
    DRIVERS,
    UnknownOption,
    driver_named,
    read_options,
)
from broker.provisioners.kubernetes.kubeconfig import Unusable, parse
from broker.services import examining
from ports import clock

MARKS = {Outcome.OK: "ok     ", Outcome.WARN: "warn   ", Outcome.BAD: "BAD    ", Outcome.UNKNOWN: "unknown"}


class Command(BaseCommand):
    help = (
        "Examine a Kubernetes cluster and say how to mend it. Fails when anything is bad. Changes nothing there, but"
        " for --try-network; what it finds of a registered one stands on its page."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", help="the name or id of a registered cluster")
        add_kubeconfig(parser)
        parser.add_argument(
            "--try-network",
            default="",
            metavar="IMAGE",
            help="have pods of the broker's own image try whether network policies hold, in a namespace that is made"
            " for it and deleted again; needs an administrator's --kubeconfig",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        now = clock.now()
        if bool(options["cluster"]) == bool(options["kubeconfig"]):
            raise CommandError("Name a registered cluster, or give --kubeconfig FILE for one that is not.")
        if options["cluster"] and options["try_network"]:
            raise CommandError(
                "--try-network makes pods, which the broker itself may not: give an administrator's --kubeconfig FILE"
                " instead of the name."
            )
        if options["cluster"]:
            findings = examining.carry_out(named(options["cluster"]).pk, now=now)
        else:
            _, driver = read_driver(options)
            findings = examining.of_kubeconfig(
                read_kubeconfig(options), driver=driver, now=now, tries=options["try_network"]
            )
        if options["json"]:
            told = {"fits": fits(findings), "findings": [asdict(each) for each in findings]}
            self.stdout.write(json.dumps(told, indent=2))
        else:
            self._print(findings)
        if not fits(findings):
            sys.exit(1)

    def _print(self, findings: list[Finding]) -> None:
        for each in findings:
            self.stdout.write(f"{MARKS[each.outcome]} {each.name}: {each.seen}")
            if each.outcome is not Outcome.OK:
                self.stdout.write(f"        {each.why}\n        -> {each.fix}")
        counts = ", ".join(
            f"{sum(each.outcome is outcome for each in findings)} {outcome}" for outcome in Outcome
        )
        verdict = (
            "Leases may run here."
            if fits(findings)
            else "Leases would fail here until what is bad is mended."
        )
        self.stdout.write(f"\n{counts}. {verdict}")


def add_kubeconfig(parser: CommandParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the way into a cluster")
    parser.add_argument("--context", default="", help="the context to use instead of the current one")
    parser.add_argument(
        "--driver", choices=sorted(DRIVERS), default="device_plugin", help="how pods ask for slices there"
    )
    parser.add_argument(
        "--option",
        action="append",
        metavar="NAME=yes|no",
        help="how that driver works there: "
        + "; ".join(
            f"{driver}: {name}, {what}" for driver in CHOICES for name, what in CHOICES[driver].items()
        ),
    )


def read_driver(options: dict[str, Any]) -> tuple[dict[str, bool], SliceDriver]:
    """Return how pods ask for slices as it was given, or say what there is instead."""
    try:
        chosen = read_options(options["driver"], options["option"] or ())
    except UnknownOption as error:
        raise CommandError(f"--option: {error}.") from None
    return chosen, driver_named(options["driver"], chosen, examining.models())


def read_kubeconfig(options: dict[str, Any]) -> dict[str, Any]:
    """Read the file that was named, or say in clear words what is wrong with it."""
    file: Path = options["kubeconfig"]
    try:
        return parse(file.read_text(), context=options["context"], beside=file.parent)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise CommandError(f"{file} cannot be read: {why}.") from None
    except Unusable as error:
        raise CommandError(f"{file}: {error}") from None


def named(text: str) -> Cluster:
    """Return a registered Kubernetes cluster by its name or id."""
    ours = Cluster.objects.filter(provisioner="kubernetes")
    cluster = ours.filter(name=text).first() or ours.filter(pk=text).first()
    if cluster is None:
        known = ", ".join(ours.order_by("name").values_list("name", flat=True)) or "none has joined yet"
        raise CommandError(f"No Kubernetes cluster is called {text!r}; known: {known}.")
    return cluster
