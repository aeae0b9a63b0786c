"""Cluster pages: register by kubeconfig, check results, credentials, ingress.

Credentials are never shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.models import Cluster, ClusterExamination
from broker.provisioners.kubernetes.client.kubeconfig import UnusableKubeconfig, parse_pasted_kubeconfig
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome
from broker.provisioners.kubernetes.drivers.driver_registry import (
    CLUSTER_DRIVERS,
    DRA_OPTIONS,
    UnknownOption,
    parse_driver_options,
)
from broker.services.clusters.registration import cluster_examination, cluster_registration
from broker.services.leases.lifecycle import eviction
from ports import crypto
from tenants.services.errors import InvalidValue, ProblemError, StaleVersion
from tenants.services.rls import staff_scope
from web.http.middleware import set_rejection_reason
from web.portal.actions import operator_api_call
from web.portal.kept_forms import show_kept_form
from web.portal.operators.layouts.layout_pages import find_cluster
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    operator_page,
)

MAX_NAME_LENGTH, MAX_VERSION_DIGITS = 60, 9
INGRESS_FIELDS = ("domain", "ingress", "bastion", "allowed_namespaces", "tolerations")
OUTCOMES_WORST_FIRST = (CheckOutcome.BAD, CheckOutcome.WARN, CheckOutcome.UNKNOWN, CheckOutcome.OK)
DRIVER_LABELS = {
    "automatic": gettext_noop("Automatic: each node's own (device plugin, dynamic resource allocation or HAMi)"),
    "device_plugin": gettext_noop("Device plugin (whole GPUs, MIG, time slicing)"),
    "dra": gettext_noop("Dynamic resource allocation"),
    "hami": gettext_noop("HAMi (soft limits; experimental)"),
}


@dataclass(frozen=True)
class CheckResultGroup:
    """Check results of one outcome."""

    outcome: CheckOutcome
    findings: Sequence[Mapping[str, Any]]


@operator_page("cluster.checks", repeats=True)
def show_cluster_checks(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show the results of the last cluster check, worst first."""
    cluster = find_cluster(pk)
    last = ClusterExamination.objects.filter(cluster=cluster).first()
    findings = last.findings if last else []
    groups = [
        CheckResultGroup(each, [one for one in findings if one["outcome"] == each]) for each in OUTCOMES_WORST_FIRST
    ]
    context = {
        "cluster": cluster,
        "last": last,
        "waiting": last is not None and last.done_at is None,
        "groups": [group for group in groups if group.findings],
        "bad": sum(one["outcome"] == CheckOutcome.BAD for one in findings),
        "real": cluster.provisioner == "kubernetes",
        "calls": [operator_api_call(_("Check results"), f"clusters/{pk}/examination")],
    }
    return render(request, "operators/fleet/cluster_checks.html", context)


@operator_page("cluster.rerun_checks", methods=SAFE_OR_POST)
def rerun_cluster_checks(request: OperatorRequest, pk: str) -> HttpResponse:
    """Queue a new check of the cluster."""
    cluster = find_cluster(pk)

    def act(_why: str) -> str:
        cluster_examination.request_examination(cluster, actor=request.actor, now=request.now)
        return _("Health check of {cluster_name} started. Results appear here within seconds.").format(
            cluster_name=cluster.name
        )

    step = Confirmation(
        title=_("Run a health check of {cluster_name}?").format(cluster_name=cluster.name),
        verb=_("Run health check"),
        back=reverse("ops-cluster-checks", args=[pk]),
        lines=(_("About fifty read-only checks run. Nothing on the cluster is changed."),),
        needs_reason=False,
    )
    return confirm_action(request, step, act)


@operator_page("cluster.accept_inventory", methods=SAFE_OR_POST)
def accept_inventory(request: OperatorRequest, pk: str) -> HttpResponse:
    """Accept the next inventory although GPUs are missing from it."""
    cluster = find_cluster(pk)

    def act(why: str) -> str:
        cluster_registration.accept_missing_inventory(
            cluster, why=eviction.clean_reason(why), actor=request.actor, now=request.now
        )
        return _("The next inventory of {cluster_name} will be accepted.").format(cluster_name=cluster.name)

    step = Confirmation(
        title=_("Accept the current inventory of {cluster_name}?").format(cluster_name=cluster.name),
        verb=_("Accept current inventory"),
        back=reverse("ops-cluster-checks", args=[pk]),
        lines=(
            cluster.inventory_paused_reason or _("No GPUs are missing from the inventory now."),
            _("Missing GPUs are removed from the pool. Their leases are not ended."),
        ),
        danger=True,
        hint=_("Recorded in the audit log."),
    )
    return confirm_action(request, step, act)


@operator_page("cluster.add", methods=SAFE_OR_POST)
def add_cluster(request: OperatorRequest) -> HttpResponse:
    """Register a cluster by its kubeconfig, and queue a check of it."""
    return _kubeconfig_form(request, None)


@operator_page("cluster.credentials", methods=SAFE_OR_POST)
def replace_credentials(request: OperatorRequest, pk: str) -> HttpResponse:
    """Replace the stored credentials of a cluster."""
    return _kubeconfig_form(request, find_cluster(pk))


def _kubeconfig_form(request: OperatorRequest, cluster: Cluster | None) -> HttpResponse:
    """Show the form; a pasted kubeconfig is never sent back, even when refused."""
    refusal: ProblemError | None = None
    if request.method == "POST":
        try:
            with transaction.atomic():
                done = _renew_credentials(request, cluster) if cluster else _register_cluster(request)
                cluster_examination.request_examination(done, actor=request.actor, now=request.now)
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
            show_kept_form(request, getattr(problem, "field", ""))
        else:
            messages.success(request, _("Health check of {done_name} started.").format(done_name=done.name))
            return redirect("ops-cluster-checks", done.pk)
    context = {
        "cluster": cluster,
        "refusal": refusal,
        "name": request.POST.get("name", ""),
        "region": request.POST.get("region", ""),
        "driver": request.POST.get("driver", "device_plugin"),
        "drivers": [(driver, _(label)) for driver, label in DRIVER_LABELS.items()],
        "choices": [(f"{name}=yes", _(DRIVER_LABELS["dra"]), what) for name, what in DRA_OPTIONS.items()],
        "chosen": request.POST.getlist("option"),
        "back": reverse("ops-cluster-checks", args=[cluster.pk]) if cluster else reverse("ops-clusters"),
    }
    with staff_scope():
        return render(request, "operators/fleet/cluster_form.html", context, status=refusal.status if refusal else 200)


def _register_cluster(request: OperatorRequest) -> Cluster:
    name, region = (" ".join(request.POST.get(field, "").split()) for field in ("name", "region"))
    driver = request.POST.get("driver", "")
    for field, text in (("name", name), ("region", region)):
        if not text or len(text) > MAX_NAME_LENGTH or not text.isprintable():
            raise InvalidValue(
                field,
                _("The {field} must have 1 to {max_name_length} characters.").format(
                    field=field, max_name_length=MAX_NAME_LENGTH
                ),
                fix=_("Enter a shorter {field}.").format(field=field),
            )
    if driver not in CLUSTER_DRIVERS:
        raise InvalidValue(
            "driver",
            _("Driver {driver!r} does not exist.").format(driver=driver),
            fix=_("Select a driver from the list."),
        )
    try:
        chosen = parse_driver_options(driver, request.POST.getlist("option"))
    except UnknownOption as error:
        raise InvalidValue(
            "option",
            _("The options do not match: {error}.").format(error=error),
            fix=_("Clear the option or select another driver."),
        ) from None
    way = _parse_kubeconfig(request)
    try:
        with transaction.atomic():
            return cluster_registration.register_cluster(
                name=name,
                region=region,
                kubeconfig=way,
                driver=driver,
                driver_options=chosen,
                actor=request.actor,
                now=request.now,
            )
    except IntegrityError:
        raise InvalidValue(
            "name", _("A cluster named {name} already exists.").format(name=name), fix=_("Choose another name.")
        ) from None
    except crypto.CredentialKeyError as error:
        raise _missing_key_error(error) from None


def _renew_credentials(request: OperatorRequest, cluster: Cluster) -> Cluster:
    way = _parse_kubeconfig(request)
    try:
        cluster_registration.renew_credentials(cluster, way, actor=request.actor, now=request.now)
    except crypto.CredentialKeyError as error:
        raise _missing_key_error(error) from None
    return cluster


def _parse_kubeconfig(request: OperatorRequest) -> dict[str, Any]:
    try:
        return parse_pasted_kubeconfig(request.POST.get("kubeconfig", ""))
    except UnusableKubeconfig as error:
        raise InvalidValue("kubeconfig", str(error), fix=_("Correct the kubeconfig and paste it again.")) from None


def _missing_key_error(error: Exception) -> ProblemError:
    return InvalidValue("kubeconfig", str(error), fix=_("Then paste it again."))


@operator_page("cluster.set_access", methods=SAFE_OR_POST)
def edit_access(request: OperatorRequest, pk: str) -> HttpResponse:
    """Set how people reach a cluster's leases: domain, ingress, and SSH bastion."""
    cluster = find_cluster(pk)
    refusal: ProblemError | None = None
    way = cluster_registration.IngressSettings(
        cluster.domain, cluster.ingress, cluster.bastion, cluster.allowed_namespaces, cluster.tolerations
    )
    version = str(cluster.version)
    if request.method == "POST":
        way = cluster_registration.IngressSettings(
            **{name: request.POST.get(name, "").strip() for name in INGRESS_FIELDS}
        )
        version = request.POST.get("version", "")
        try:
            seen = _parse_version(version)
            cluster_registration.set_ingress(cluster, way, version=seen, actor=request.actor, now=request.now)
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
            show_kept_form(request, getattr(problem, "field", ""))
        else:
            messages.success(
                request,
                _("Access settings of {cluster_name} saved. They apply within seconds.").format(
                    cluster_name=cluster.name
                ),
            )
            return redirect("ops-cluster-checks", cluster.pk)
    if refusal and refusal.status == StaleVersion.status:  # the page shows the present version beside the input
        version = str(cluster.version)
    context = {
        "cluster": cluster,
        "refusal": refusal,
        "field": getattr(refusal, "field", ""),
        "way": way,
        "version": version,
        "back": reverse("ops-cluster-checks", args=[cluster.pk]),
    }
    with staff_scope():
        return render(
            request, "operators/fleet/cluster_access.html", context, status=refusal.status if refusal else 200
        )


def _parse_version(text: str) -> int:
    """Parse the version of the cluster that the form showed."""
    if not text.isdecimal() or len(text) > MAX_VERSION_DIGITS:
        raise InvalidValue("version", _("The form is incomplete."), fix=_("Reload the page."))
    return int(text)
