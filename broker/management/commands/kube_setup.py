"""`manage.py kube_setup`: install in a cluster what leases need there.

It needs an administrator's kubeconfig and installs priority classes, admission policies, the dead man's
switch, and an account with exactly the rights that the broker uses. If requested, it registers the
cluster under that account's own credentials, so that the administrator's are not stored.

With --remove it uninstalls: nothing of this installation stays in the cluster, and nothing there is
stuck.
"""

import os
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, transaction

from broker.management.commands.kube_doctor import add_kubeconfig_arguments, read_driver, read_kubeconfig
from broker.models import Cluster, get_installation_id
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import cluster_uninstall
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal
from broker.provisioners.kubernetes.client.cluster_identity import read_cluster_uid
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport
from broker.provisioners.kubernetes.cluster_install import broker_kubeconfig, install_cluster
from broker.provisioners.kubernetes.drivers.cluster_driver import ClusterDriver
from broker.services.clusters.registration import cluster_registration, cluster_removal
from ports import clock, crypto
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue

WITHIN_S = 60.0
INGRESS_OPTIONS = ("domain", "ingress", "bastion", "allowed_namespaces", "tolerations")


class Command(BaseCommand):
    help = "Install the objects that leases need in a cluster; safe to repeat. --register also registers the cluster."

    def add_arguments(self, parser: CommandParser) -> None:
        add_kubeconfig_arguments(parser)
        parser.add_argument("--image", default="gpubroker", help="image of the broker, for the reaper")
        parser.add_argument("--register", metavar="NAME", help="register the cluster under this name")
        parser.add_argument(
            "--update", metavar="NAME", help="change the driver of this registered cluster; its leases continue"
        )
        parser.add_argument("--region", default="", help="region of the cluster, as offerings name it")
        parser.add_argument(
            "--domain", default="", help="domain below which each lease with an HTTP port gets a host name"
        )
        parser.add_argument(
            "--ingress",
            default="",
            help="what routes the domain: ingress/<class> or gateway/<namespace>/<name>",
        )
        parser.add_argument("--bastion", default="", help="host through which SSH reaches leases")
        parser.add_argument(
            "--allowed-namespaces",
            default="",
            metavar="NAMESPACES",
            help="namespaces of ingress controller, gateway and bastion; leases accept traffic from no others",
        )
        parser.add_argument(
            "--tolerations",
            default="",
            metavar="TAINTS",
            help="taints of GPU nodes that leases tolerate, such as sku=gpu:NoSchedule",
        )
        parser.add_argument(
            "--remove",
            action="store_true",
            help="remove everything of this installation from the cluster, except volumes",
        )
        parser.add_argument(
            "--with-volumes",
            action="store_true",
            help="with --remove: delete tenants' volumes too; they cannot be restored",
        )
        parser.add_argument(
            "--credentials", type=Path, metavar="FILE", help="write the kubeconfig of the broker's account to this file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["kubeconfig"]:
            raise CommandError("Use --kubeconfig FILE with an administrator's kubeconfig of the cluster.")
        if options["update"] and options["register"]:
            raise CommandError("--register is for a new cluster, --update for a registered one. Use one of them.")
        if options["update"] and not Cluster.objects.filter(name=options["update"]).exists():
            raise CommandError(f"No cluster named {options['update']!r} is registered. Use --register NAME.")
        if options["register"] and not options["region"]:
            raise CommandError("--register needs --region, as offerings are sold by region.")
        ingress = cluster_registration.IngressSettings(**{name: options[name] for name in INGRESS_OPTIONS})
        if ingress != cluster_registration.IngressSettings() and not options["register"]:
            raise CommandError("Ingress options are stored with a registered cluster. Use --register NAME too.")
        try:
            cluster_registration.check_ingress(ingress)
        except InvalidValue as wrong:
            raise CommandError(f"--{wrong.field.replace('_', '-')}: {wrong.detail} {wrong.fix.text}") from None
        kubeconfig = read_kubeconfig(options)
        chosen, driver = read_driver(options)
        api = Transport(lambda: kubeconfig).within(WITHIN_S)
        if options["remove"]:
            self._remove(api, driver, with_volumes=options["with_volumes"])
            return
        try:
            for done in install_cluster(api, driver, image=options["image"]):
                self.stdout.write(f"{done.outcome:10} {done.ref}")
            narrow = broker_kubeconfig(api, kubeconfig) if options["register"] or options["credentials"] else None
        except (ClusterUnreachable, ApiRefusal) as error:
            raise CommandError(f"The installation failed: {error}. Run `manage.py kube_doctor` to see why.") from None
        if options["credentials"]:
            self._write(options["credentials"], narrow)
        if options["update"]:
            self._update(options["update"], options["driver"], chosen)
        if options["register"] and narrow:
            self._register(narrow, {**options, "driver_options": chosen}, ingress)

    def _remove(self, api: KubernetesApi, driver: ClusterDriver, *, with_volumes: bool) -> None:
        mark = get_installation_id()
        try:
            if leases := cluster_removal.leases_needing_cluster(cluster_uninstall.leases_in_cluster(api, mark)):
                raise CommandError(
                    f"{len(leases)} leases run in the cluster, for example {leases[0]}. Cordon its nodes and wait for"
                    " them to end, or release them. Then run this command again."
                )
            if left := cluster_removal.unfinished_work(read_cluster_uid(api)):
                raise CommandError(
                    f"{len(left)} leases and volumes are still being removed, for example {left[0]}. The broker's"
                    " workers need a few minutes. Then run this command again; it is safe to repeat."
                )
            for done in cluster_uninstall.remove_projects(api, mark, with_volumes=with_volumes):
                self.stdout.write(f"{done.outcome:10} {done.ref}")
            for done in cluster_uninstall.uninstall_cluster(api, driver, mark):
                self.stdout.write(f"{done.outcome:10} {done.ref}")
        except (ClusterUnreachable, ApiRefusal) as error:
            raise CommandError(f"The removal is incomplete: {error}. Run it again; it is safe to repeat.") from None

    def _write(self, file: Path, narrow: dict[str, Any] | None) -> None:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            yaml.safe_dump(narrow, opened)
        self.stdout.write(f"written    {file}: it grants all rights of the broker in this cluster; keep it secret")

    def _update(self, name: str, driver: str, chosen: dict[str, bool]) -> None:
        actor = Actor("staff", "", "an administrator of this machine")
        cluster_registration.change_driver(Cluster.objects.get(name=name), driver, chosen, actor=actor, now=clock.now())
        self.stdout.write(f"updated    {name}: driver {driver}; restart its agent, the workers and the log collector")

    @transaction.atomic
    def _register(
        self, narrow: dict[str, Any], options: dict[str, Any], ingress: cluster_registration.IngressSettings
    ) -> None:
        actor = Actor("staff", "", "an administrator of this machine")
        try:
            cluster = cluster_registration.register_cluster(
                name=options["register"],
                region=options["region"],
                kubeconfig=narrow,
                driver=options["driver"],
                driver_options=options["driver_options"],
                actor=actor,
                now=clock.now(),
            )
            if ingress != cluster_registration.IngressSettings():
                cluster_registration.set_ingress(
                    cluster, ingress, version=cluster.version, actor=actor, now=clock.now()
                )
        except crypto.CredentialKeyError as error:
            raise CommandError(str(error)) from None
        except IntegrityError:
            raise CommandError(
                f"A cluster named {options['register']!r} is already registered. Choose another name."
            ) from None
        self.stdout.write(
            f"registered {cluster.name} ({cluster.pk}); run its agent: manage.py kube_agent {cluster.name}"
        )
