"""Registration of Kubernetes clusters: credentials, ingress, and inventory updates."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import F

from broker.models import Cluster, ClusterCredential, Gpu, GpuHealth, LayoutPolicy, Node
from broker.provisioners.kubernetes.client import kubeconfig as kubeconfigs
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
)
from broker.provisioners.kubernetes.tolerations import InvalidToleration, parse_tolerations
from broker.services.inventory import gpu_catalogue, hardware, offering_resources
from broker.services.inventory.device_losses import EXAMINED_REASONS, FOUND_LOST, DeviceLoss, find_device_loss
from broker.services.inventory.foreign_host_use import close_gpus_without_resources
from broker.services.inventory.foreign_use import (
    IN_USE,
    Cut,
    close_gpus_of_plugin_pods,
    close_slots,
    foreign_holder,
)
from broker.services.inventory.gpu_matching import NOT_REPORTED, has_own_uuid, match_gpus
from broker.services.inventory.inventory_conflicts import QUARANTINED, find_conflict, find_driver_change
from ports import crypto
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.errors import InvalidValue, StaleVersion

LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
HOST = re.compile(rf"(?=.{{1,160}}\Z){LABEL}(?:\.{LABEL})+", re.ASCII)  # leaves room for a lease's own label
INGRESS = re.compile(rf"ingress/{LABEL}|gateway/{LABEL}/{LABEL}", re.ASCII)
BASTION = re.compile(rf"(?=.{{1,190}}\Z){LABEL}(?:\.{LABEL})*(?::[1-9]\d{{0,4}})?", re.ASCII)
MAX_NAMESPACES, PROJECT_NAMESPACE_PREFIX = 4, "gt-"
ALWAYS_ACCEPTED_LOSS = 8  # GPUs: one machine may disappear without confirmation
NODES_PER_GROUP = 50  # nodes
MAX_PROBLEM_LENGTH, MAX_HOLDER_LENGTH = 500, 200
FAULT_REPORTED = "its node reports a fault"
REVERSIBLE_REASONS = (
    NOT_REPORTED,
    QUARANTINED,
    FOUND_LOST,
    *EXAMINED_REASONS,
)  # over as soon as its node reports it again
NewGpu = tuple[Gpu, DiscoveredGpu]
GpuColumns = dict[int, dict[str, Any]]  # by GPU index
InventoryRow = TypeVar("InventoryRow", Gpu, Node)


@transaction.atomic
def register_cluster(
    *,
    name: str,
    region: str,
    kubeconfig: Mapping[str, Any],
    driver: str,
    driver_options: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> Cluster:
    """Register a cluster by a parsed kubeconfig.

    Nothing is sold there before its inventory is taken.
    """
    gpu_catalogue.load_gpu_models()  # so that the first cluster finds every model, and later ones the newest
    cluster = Cluster.objects.create(
        name=name,
        region=region,
        provisioner="kubernetes",
        driver=driver,
        driver_options=dict(driver_options or {}),
        address=kubeconfigs.server_address(dict(kubeconfig)),
        allow_shared_gpus=settings.ALLOW_SHARED_GPUS,
        created_at=now,
    )
    _store_credentials(cluster, kubeconfig, now)
    audit.record("cluster.join", cluster, actor=actor, now=now, address=cluster.address, driver=driver)
    return cluster


@transaction.atomic
def renew_credentials(cluster: Cluster, kubeconfig: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """Replace a cluster's credentials.

    Connected processes read the new ones when the old ones are refused.
    """
    address = kubeconfigs.server_address(dict(kubeconfig))
    Cluster.objects.filter(pk=cluster.pk).update(address=address, version=F("version") + 1)
    _store_credentials(cluster, kubeconfig, now)
    audit.record("cluster.renew", cluster, actor=actor, now=now, address=address)


@transaction.atomic
def change_driver(
    cluster: Cluster, driver: str, driver_options: Mapping[str, Any], *, actor: Actor, now: datetime
) -> None:
    """Change how pods request slices in a cluster.

    Nodes whose leases hold GPUs by another driver take nothing new until these have ended.
    """
    before = cluster.driver
    changed = {"driver": driver, "driver_options": dict(driver_options), "version": F("version") + 1}
    Cluster.objects.filter(pk=cluster.pk).update(**changed)
    audit.record("cluster.change_driver", cluster, actor=actor, now=now, before=before, after=driver)


@dataclass(frozen=True)
class IngressSettings:
    """Ingress settings of a cluster; an empty field disables that kind of access."""

    domain: str = ""  # each lease has a host name below it
    ingress: str = ""  # what routes it: ingress/<class>, or gateway/<namespace>/<name>
    bastion: str = ""  # the SSH bastion host
    allowed_namespaces: str = ""  # namespaces of the two; empty: derived from ingress and bastion
    tolerations: str = ""  # taints of its GPU nodes that leases tolerate, such as sku=gpu:NoSchedule


@transaction.atomic
def set_ingress(cluster: Cluster, ingress: IngressSettings, *, version: int, actor: Actor, now: datetime) -> None:
    """Set a cluster's ingress; raise InvalidValue, or StaleVersion unless `version` is current."""
    check_ingress(ingress)
    ingress = replace(
        ingress,
        allowed_namespaces=" ".join(_parse_namespaces(ingress.allowed_namespaces)),
        tolerations=" ".join(ingress.tolerations.replace(",", " ").split()),
    )
    row = Cluster.objects.select_for_update(of=("self",)).get(pk=cluster.pk)
    if row.version != version:
        raise StaleVersion(
            f"{row.name} was changed since you opened the page (version {version}, now {row.version}).",
            fix="Check the current values and save again.",
        )
    before = IngressSettings(row.domain, row.ingress, row.bastion, row.allowed_namespaces, row.tolerations)
    Cluster.objects.filter(pk=row.pk).update(**asdict(ingress), version=version + 1)
    audit.record("cluster.set_access", row, actor=actor, now=now, before=asdict(before), after=asdict(ingress))


def check_ingress(ingress: IngressSettings) -> None:
    """Raise InvalidValue if the ingress settings could not work."""
    if ingress.domain and not HOST.fullmatch(ingress.domain):
        raise InvalidValue(
            "domain", f"{ingress.domain!r} is not a domain name.", fix="Enter it like leases.example.org."
        )
    if ingress.ingress and not INGRESS.fullmatch(ingress.ingress):
        raise InvalidValue(
            "ingress",
            f"{ingress.ingress!r} is not an ingress.",
            fix="Enter ingress/<class> or gateway/<namespace>/<name>.",
        )
    if bool(ingress.domain) != bool(ingress.ingress):
        missing = "ingress" if ingress.domain else "domain"
        raise InvalidValue(missing, "Domain and ingress need each other.", fix="Set both or neither.")
    if ingress.bastion and not BASTION.fullmatch(ingress.bastion):
        raise InvalidValue(
            "bastion",
            f"{ingress.bastion!r} is not a host name.",
            fix="Enter it like ssh.example.org or ssh.example.org:22.",
        )
    try:
        parse_tolerations(ingress.tolerations)
    except InvalidToleration as error:
        raise InvalidValue("tolerations", str(error), fix="Separate several by spaces.") from None
    named = _parse_namespaces(ingress.allowed_namespaces)
    if len(named) > MAX_NAMESPACES:
        raise InvalidValue(
            "allowed_namespaces", f"More than {MAX_NAMESPACES} namespaces are set.", fix="Remove some of them."
        )
    for each in named:
        if not re.fullmatch(LABEL, each, re.ASCII):
            raise InvalidValue(
                "allowed_namespaces", f"{each!r} is not a namespace.", fix="Enter them like ingress-nginx ssh."
            )
        if each.startswith(PROJECT_NAMESPACE_PREFIX):
            raise InvalidValue(
                "allowed_namespaces",
                f"{each} is a project's namespace; its pods could reach all leases.",
                fix="Enter the namespace of the ingress or bastion.",
            )


def _parse_namespaces(allowed_namespaces: str) -> list[str]:
    """Return the namespaces in a text, separated by commas or spaces."""
    return sorted(set(allowed_namespaces.replace(",", " ").split()))


def _store_credentials(cluster: Cluster, kubeconfig: Mapping[str, Any], now: datetime) -> None:
    sealed = crypto.encrypt(json.dumps(kubeconfig).encode())
    ClusterCredential.objects.update_or_create(cluster=cluster, defaults={"sealed": sealed, "updated_at": now})


@transaction.atomic
def update_inventory(cluster: Cluster, found: Iterable[DiscoveredNode], *, now: datetime) -> list[str]:
    """Update nodes and GPUs from a cluster's report; return what cannot be sold.

    GPUs that are no longer reported are taken out of service and never deleted: leases may hold them. A
    report that lacks many GPUs at once is accepted only when an operator says so.
    """
    found = list(found)
    gpu_catalogue.add_discovered_models(model for node in found for model in node.new_models)
    matches = match_gpus(cluster, found)
    if why := _implausible_loss(cluster, matches.nodes):
        Cluster.objects.filter(pk=cluster.pk).exclude(inventory_paused_reason=why).update(
            inventory_paused_reason=why, version=F("version") + 1
        )
        return [why]
    Cluster.objects.filter(pk=cluster.pk).exclude(inventory_paused_reason="").update(
        inventory_paused_reason="", version=F("version") + 1
    )
    problems = [*matches.problems]
    _retire_moved_gpus(matches.relocated_gpu_ids, now)
    reported = {each.name: each for each in sorted(matches.nodes, key=lambda node: node.name)}
    for group in _node_groups(_load_or_create_nodes(cluster, reported, now)):
        new: list[NewGpu] = []
        for node, gpus in _with_gpus(group):
            if node.name not in reported:
                _mark_missing(gpus, now)
                continue
            if any(gpu.out_of_service_since for gpu in gpus):
                continue  # it is being repartitioned: its report of its GPUs is worth nothing meanwhile
            report = reported[node.name]
            loss = find_device_loss(gpus, report, now=now)
            columns, unsold = _read_columns(node, gpus, report, loss, now)
            report = replace(report, problems=(*report.problems, *unsold))
            _update_node(node, report, now)
            if report.incomplete:
                problems += [f"{node.name}: {problem}" for problem in report.problems]
                continue
            if why := find_driver_change(gpus, report) or find_conflict(gpus, report.gpus):
                _examine_leases(gpus, loss, now)
                _quarantine(gpus, now, is_examined=bool(loss.reason))
                problems.append(f"{node.name}: {why}")
                continue
            new += _update_node_gpus(node, gpus, report, columns, loss, now)
            problems += [f"{node.name}: {problem}" for problem in report.problems]
        Gpu.objects.bulk_create(_assign_ordered_ids([gpu for gpu, _ in new]))
        for gpu, found_gpu in new:
            _update_health(gpu, found_gpu, now)
        offering_resources.update_shortages(cluster, (node for node in group if node.name in reported), now=now)
    return problems


def _implausible_loss(cluster: Cluster, found: list[DiscoveredNode]) -> str:
    """Return why a report lacks too many GPUs to be trusted; else empty."""
    gpus = Gpu.objects.filter(node__cluster=cluster, health=GpuHealth.HEALTHY, out_of_service_since=None)
    known = set(gpus.values_list("node__name", "index"))
    # A node that reports a reason has not lost its GPUs; selling them on regardless might share them by mistake.
    explained = {node.name for node in found if node.problems and not node.offers_none}
    gone = known - {(node.name, gpu.index) for node in found for gpu in node.gpus}
    gone = {place for place in gone if place[0] not in explained}
    believed = Cluster.objects.filter(pk=cluster.pk, accept_next_inventory=True).update(accept_next_inventory=False)
    if believed or len(gone) <= ALWAYS_ACCEPTED_LOSS or len(gone) * 2 <= len(known):
        return ""
    return f"It reports only {len(known) - len(gone)} of {len(known)} GPUs. Check whether this is correct."


@transaction.atomic
def accept_missing_inventory(cluster: Cluster, *, why: str, actor: Actor, now: datetime) -> None:
    """Accept the next inventory as it is, however much is missing from it."""
    Cluster.objects.filter(pk=cluster.pk).update(accept_next_inventory=True, version=F("version") + 1)
    audit.record("cluster.accept_inventory", cluster, actor=actor, now=now, reason=why)


def _load_or_create_nodes(cluster: Cluster, reported: Iterable[str], now: datetime) -> list[Node]:
    """Return all nodes of a cluster, and create those that are new."""
    there = list(Node.objects.filter(cluster=cluster).order_by("name"))
    new = sorted(set(reported) - {node.name for node in there})
    made = [Node(cluster=cluster, name=name, state_since=now) for name in new]
    return there + Node.objects.bulk_create(_assign_ordered_ids(made))


def _assign_ordered_ids(rows: list[InventoryRow]) -> list[InventoryRow]:
    """Assign ids in row order; among equal GPUs, placement prefers the first id."""
    for row, pk in zip(rows, sorted(row.pk for row in rows), strict=True):
        row.pk = pk
    return rows


def _node_groups(nodes: list[Node]) -> Iterator[list[Node]]:
    """Yield nodes in groups, to limit the queries and the GPUs in memory."""
    for first in range(0, len(nodes), NODES_PER_GROUP):
        yield nodes[first : first + NODES_PER_GROUP]


def _with_gpus(nodes: list[Node]) -> list[tuple[Node, list[Gpu]]]:
    """Return nodes with their known GPUs."""
    gpus: dict[str, list[Gpu]] = {node.pk: [] for node in nodes}
    for gpu in Gpu.objects.filter(node__in=nodes).order_by("index"):
        gpus[gpu.node_id].append(gpu)
    return [(node, gpus[node.pk]) for node in nodes]


def _read_columns(
    node: Node, known: list[Gpu], report: DiscoveredNode, loss: DeviceLoss, now: datetime
) -> tuple[GpuColumns, list[str]]:
    """Return the columns of a node's GPUs, and what is not sold."""
    rows = {gpu.index: gpu for gpu in known}
    columns = {found.index: _gpu_columns(node, found, report, rows.get(found.index), now) for found in report.gpus}
    layouts = {index: each["fixed_layout"] for index, each in columns.items()}
    unsold = [
        f"GPU {index}: its slice {cut['profile']} at {cut['start']} is not sold: {cut['fault']}"
        for index, cuts in layouts.items()
        for cut in cuts
        if "fault" in cut
    ]
    if why := close_gpus_of_plugin_pods(columns, report):
        unsold.append(why)
    else:
        close_slots(layouts, known, report.foreign, loss.unreported)
    if why := close_gpus_without_resources(node, known, columns, report):
        unsold.append(why)
    return columns, [*unsold, loss.sentence] if loss.sentence else unsold


def _update_node_gpus(
    node: Node, known: list[Gpu], report: DiscoveredNode, columns: GpuColumns, loss: DeviceLoss, now: datetime
) -> list[NewGpu]:
    """Update a node's GPUs from its report; return new ones, not saved yet."""
    _examine_leases(known, loss, now)
    gpus, new = {gpu.index: gpu for gpu in known}, []
    for found in report.gpus:
        wanted = columns[found.index]
        gpu = gpus.pop(found.index, None)
        if gpu is None:
            new.append((Gpu(node=node, index=found.index, health_since=now, **wanted), found))
            continue
        if changes := {name: value for name, value in wanted.items() if getattr(gpu, name) != value}:
            Gpu.objects.filter(pk=gpu.pk).update(**changes, version=F("version") + 1)
            if _lost_slices(gpu.fixed_layout) != _lost_slices(wanted["fixed_layout"]):
                hardware.enqueue_affected(node, now)
        _update_health(gpu, found, now, is_examined=bool(loss.reason))
    if not loss.reason:
        _mark_missing(gpus.values(), now)
    for gpu in gpus.values():
        if report.gpus or gpu.pk in loss.lost:  # a node that reports none of its GPUs may have restarted its plugin
            is_lost = has_own_uuid(gpu) or gpu.pk in loss.lost
            hardware.set_gpu_lost(gpu, is_lost, now=now, since=loss.since)
    return new


def _gpu_columns(
    node: Node, found: DiscoveredGpu, report: DiscoveredNode, before: Gpu | None, now: datetime
) -> dict[str, Any]:
    """Return a GPU row's columns from its report, except its health."""
    lost = _lost_slices(before.fixed_layout) if before else {}
    cuts = [
        {
            "profile": cut.profile,
            "start": cut.start,
            "size": cut.size,
            "isolation": str(found.isolation),
            **({"resource_name": name} if (name := cut.resource_name or found.resource_name) else {}),
            **({IN_USE: True, "fault": f"{FAULT_REPORTED}: {cut.fault}"} if cut.fault else {}),
            **({"lost_since": lost.get(cut.start, now.isoformat())} if cut.lost else {}),
        }
        for cut in found.cuts
    ]
    return {
        "gpu_model_id": gpu_catalogue.gpu_model_spec(found.model).name,
        # Without a UUID of its own it gets one from the node's id: two clusters may have equal node names.
        "uuid": found.uuid if has_own_uuid(found) else f"{node.pk}/{found.index}",
        "layout_policy": LayoutPolicy.FIXED if cuts else LayoutPolicy.DYNAMIC,
        "fixed_layout": cuts,
        "published": found.published.starts() if found.published else None,
        "foreign_holder": foreign_holder(found, report.foreign)[:MAX_HOLDER_LENGTH],
        "fabric": _clean_identifier(found.fabric),
        "numa": _clean_identifier(found.numa),
        "driver": report.driver,
    }


def _lost_slices(layout: Iterable[Cut]) -> dict[int, str]:
    """Return since when slices of a fixed layout are lost, by their first unit."""
    return {cut["start"]: cut["lost_since"] for cut in layout if "lost_since" in cut}


def _update_node(node: Node, report: DiscoveredNode, now: datetime) -> None:
    """Record why a node is not sold, or not completely, and its resources."""
    wanted: dict[str, str | int] = {
        "unschedulable_reason": report.refusal,
        "inventory_problem": "; ".join(report.problems)[:MAX_PROBLEM_LENGTH],
        **asdict(report.resources),
    }
    if all(getattr(node, name) == value for name, value in wanted.items()):
        return
    Node.objects.filter(pk=node.pk).update(**wanted, version=F("version") + 1)
    if node.unschedulable_reason and not report.refusal:
        hardware.enqueue_affected(node, now)
    for name, value in wanted.items():
        setattr(node, name, value)


def _clean_identifier(name: str) -> str:
    """Return an identifier that is only compared; empty if it is malformed."""
    return name if re.fullmatch(r"[A-Za-z0-9:._-]{1,64}", name, re.ASCII) else ""


def _update_health(gpu: Gpu, found: DiscoveredGpu, now: datetime, *, is_examined: bool = False) -> None:
    """Take a GPU reported as broken out of service, and a reappeared one back."""
    if not found.healthy:
        why = f"{FAULT_REPORTED}: {found.fault}" if found.fault else FAULT_REPORTED
        hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason=why, actor=SYSTEM, now=now)
    elif gpu.health_reason in REVERSIBLE_REASONS and not is_examined:  # after a fault, an operator decides
        hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="", actor=SYSTEM, now=now)
    hardware.set_gpu_lost(gpu, found.lost, now=now)


def _examine_leases(gpus: Sequence[Gpu], loss: DeviceLoss, now: datetime) -> None:
    """Take GPUs out of service while it is unknown which lease has lost its device."""
    if not loss.reason:
        return
    known = {gpu.pk: gpu.health_reason for gpu in gpus}
    for gpu in gpus:
        reason = FOUND_LOST if gpu.pk in loss.lost else loss.reason
        if gpu.health == GpuHealth.HEALTHY:
            hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason=reason, actor=SYSTEM, now=now)
        elif gpu.health_reason in REVERSIBLE_REASONS and gpu.health_reason != reason:
            _replace_reason(gpu, reason, now)
    if known != {gpu.pk: gpu.health_reason for gpu in gpus}:
        loss.enqueue_checks(now=now)


def _replace_reason(gpu: Gpu, reason: str, now: datetime) -> None:
    gpu.health_reason, gpu.health_since = reason, now
    Gpu.objects.filter(pk=gpu.pk).update(health_reason=reason, health_since=now, version=F("version") + 1)


def _quarantine(gpus: Iterable[Gpu], now: datetime, *, is_examined: bool) -> None:
    for gpu in gpus:
        if gpu.health == GpuHealth.HEALTHY:
            hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason=QUARANTINED, actor=SYSTEM, now=now)
        elif not is_examined and gpu.health_reason in EXAMINED_REASONS:
            _replace_reason(gpu, QUARANTINED, now)


def _retire_moved_gpus(moved: Iterable[str], now: datetime) -> None:
    """Rename the rows of GPUs that are in another machine now.

    The rows are kept for the leases that were on them.
    """
    for gpu in Gpu.objects.filter(pk__in=moved).select_related("node__cluster"):
        Gpu.objects.filter(pk=gpu.pk).update(uuid=f"{gpu.pk} was {gpu.uuid}")
        _mark_missing([gpu], now)


def _mark_missing(gpus: Iterable[Gpu], now: datetime) -> None:
    for gpu in gpus:
        if gpu.health == GpuHealth.HEALTHY:
            hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason=NOT_REPORTED, actor=SYSTEM, now=now)
        elif gpu.health_reason in (FOUND_LOST, *EXAMINED_REASONS):
            _replace_reason(gpu, NOT_REPORTED, now)
            hardware.enqueue_affected(gpu.node, now)
