"""`manage.py kube_setup`: give a cluster once what leases need there, with an administrator's kubeconfig.

Ranks, admission policies, the dead man's switch, and an account with exactly the rights that the broker uses. Then, if
asked, register the cluster under that account's own credentials, so that the administrator's are kept nowhere.

With --remove the other way round: nothing of this installation stays in the cluster, and nothing there is stuck.
"""

import os
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, transaction

from broker.management.commands.kube_doctor import add_kubeconfig, read_driver, read_kubeconfig
from broker.models import our_mark
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import removing
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.identity import uid_of
from broker.provisioners.kubernetes.installing import install, own_kubeconfig
from broker.provisioners.kubernetes.refusals import Refusal
from broker.provisioners.kubernetes.transport import Api, Transport
from broker.services import joining, parting
from ports import clock, seal
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid

WITHIN_S = 60.0
WAYS = ("domain", "door", "bastion", "entrances")


class Command(BaseCommand):
    help = "Install in a cluster what leases need there; safe to repeat. With --register it joins as well."

    def add_arguments(self, parser: CommandParser) -> None:
        add_kubeconfig(parser)
        parser.add_argument(
            "--image", default="gpubroker", help="the broker's own image, for the dead man's switch"
        )
        parser.add_argument("--register", metavar="NAME", help="register the cluster under this name")
        parser.add_argument("--region", default="", help="where it stands, as offerings name it")
        parser.add_argument("--domain", default="", help="below which each lease with a page gets a name")
        parser.add_argument(
            "--door", default="", help="what routes it there: ingress/<class>, or gateway/<namespace>/<name>"
        )
        parser.add_argument("--bastion", default="", help="the host that lets SSH through")
        parser.add_argument(
            "--entrances",
            default="",
            metavar="NAMESPACES",
            help="where ingress controller, gateway and bastion run: leases are closed to all others",
        )
        parser.add_argument(
            "--remove", action="store_true", help="take all that is ours out of the cluster; volumes stay"
        )
        parser.add_argument(
            "--with-volumes",
            action="store_true",
            help="with --remove: delete tenants' volumes, too, for good",
        )
        parser.add_argument(
            "--credentials", type=Path, metavar="FILE", help="write the narrow kubeconfig there"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["kubeconfig"]:
            raise CommandError("Give --kubeconfig FILE: an administrator's way into the cluster.")
        if options["register"] and not options["region"]:
            raise CommandError("A cluster that is registered needs --region: offerings are sold by region.")
        way = joining.WayIn(**{name: options[name] for name in WAYS})
        if way != joining.WayIn() and not options["register"]:
            raise CommandError("How people come in is kept with a cluster: give --register NAME, too.")
        try:
            joining.check_way(way)
        except Invalid as wrong:
            raise CommandError(f"--{wrong.field}: {wrong.detail} {wrong.fix.text}") from None
        kubeconfig = read_kubeconfig(options)
        chosen, driver = read_driver(options)
        api = Transport(lambda: kubeconfig).within(WITHIN_S)
        if options["remove"]:
            self._remove(api, driver, with_volumes=options["with_volumes"])
            return
        try:
            for done in install(api, driver, image=options["image"]):
                self.stdout.write(f"{done.how:10} {done.ref}")
            narrow = (
                own_kubeconfig(api, kubeconfig) if options["register"] or options["credentials"] else None
            )
        except (Unanswered, Refusal) as error:
            raise CommandError(
                f"The cluster did not do it: {error}. Run `manage.py kube_doctor` to see why."
            ) from None
        if options["credentials"]:
            self._write(options["credentials"], narrow)
        if options["register"] and narrow:
            self._register(narrow, {**options, "driver_options": chosen}, way)

    def _remove(self, api: Api, driver: SliceDriver, *, with_volumes: bool) -> None:
        mark = our_mark()
        try:
            if leases := parting.counting_on(removing.orders_there(api, mark)):
                raise CommandError(
                    f"{len(leases)} leases run there, {leases[0]} among them. Cordon the cluster's nodes and wait for"
                    " them to end, or end them; then run this again."
                )
            if left := parting.unfinished(uid_of(api)):
                raise CommandError(
                    f"{len(left)} leases and volumes are just being taken down there, {left[0]} among them. Let the"
                    " broker's workers finish, which takes minutes, then run this again: it is safe to repeat."
                )
            for done in removing.take_down(api, mark, with_volumes=with_volumes):
                self.stdout.write(f"{done.how:10} {done.ref}")
            for done in removing.uninstall(api, driver, mark):
                self.stdout.write(f"{done.how:10} {done.ref}")
        except (Unanswered, Refusal) as error:
            raise CommandError(f"The cluster did not do all of it: {error}. It is safe to repeat.") from None

    def _write(self, file: Path, narrow: dict[str, Any] | None) -> None:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            yaml.safe_dump(narrow, opened)
        self.stdout.write(f"written    {file}: whoever has it may do what the broker may do")

    @transaction.atomic
    def _register(self, narrow: dict[str, Any], options: dict[str, Any], way: joining.WayIn) -> None:
        actor = Actor("staff", "", "an administrator of this machine")
        try:
            cluster = joining.join(
                name=options["register"],
                region=options["region"],
                kubeconfig=narrow,
                driver=options["driver"],
                driver_options=options["driver_options"],
                actor=actor,
                now=clock.now(),
            )
            if way != joining.WayIn():
                joining.let_in(cluster, way, version=cluster.version, actor=actor, now=clock.now())
        except seal.Unsealable as error:
            raise CommandError(str(error)) from None
        except IntegrityError:
            raise CommandError(
                f"There is a cluster called {options['register']!r} already. Choose another name."
            ) from None
        self.stdout.write(
            f"registered {cluster.name} ({cluster.pk}); follow it: manage.py kube_agent {cluster.name}"
        )
