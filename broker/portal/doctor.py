"""Adding a cluster by its kubeconfig, what an examination finds, new credentials, the ways in for people.

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
from django.views.decorators.http import require_safe

from broker.models import Cluster, Examination
from broker.portal.layouts import cluster_or_missing
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from broker.provisioners.kubernetes.doctor.findings import Outcome
from broker.provisioners.kubernetes.drivers.choosing import (
    CHOICES,
    DRIVERS,
    UnknownOption,
    read_options,
)
from broker.provisioners.kubernetes.kubeconfig import Unusable, parse
from broker.services import examining, joining
from broker.services.leases import evicting
from ports import seal
from tenants.portal.acts import ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Refused, Stale
from tenants.services.walls import as_staff

LONGEST_NAME, LONGEST_NUMBER = 60, 9
WAYS = ("domain", "door", "bastion", "entrances")
WORST_FIRST = (Outcome.BAD, Outcome.WARN, Outcome.UNKNOWN, Outcome.OK)
DRIVER_WORDS = {
    "device_plugin": "Device plugin (whole cards, MIG, time slices)",
    "dra": "Dynamic resource allocation",
    "hami": "HAMi (soft limits; not proven)",
}


@dataclass(frozen=True)
class Group:
    """The findings of one outcome."""

    outcome: Outcome
    findings: Sequence[Mapping[str, Any]]


@require_safe
@page("doctor", repeats=True)
def doctor(request: OpsRequest, pk: str) -> HttpResponse:
    """Show what the last examination of a cluster found, the worst first."""
    cluster = cluster_or_missing(pk)
    last = Examination.objects.filter(cluster=cluster).first()
    findings = last.findings if last else []
    groups = [Group(each, [one for one in findings if one["outcome"] == each]) for each in WORST_FIRST]
    told = {
        "cluster": cluster,
        "last": last,
        "waiting": last is not None and last.done_at is None,
        "groups": [group for group in groups if group.findings],
        "bad": sum(one["outcome"] == Outcome.BAD for one in findings),
        "real": cluster.provisioner == "kubernetes",
        "calls": [ops_call("What was found", f"clusters/{pk}/examination")],
    }
    return render(request, "ops/doctor.html", told)


@ASKS
@page("doctor.again")
def again(request: OpsRequest, pk: str) -> HttpResponse:
    """Have a cluster examined anew by a worker."""
    cluster = cluster_or_missing(pk)

    def act(_: str) -> str:
        examining.ask_for(cluster, actor=request.actor, now=request.now)
        return f"{cluster.name} is being examined; what is found appears here in some seconds."

    step = Step(
        title=f"Examine {cluster.name} now?",
        verb="Examine",
        back=reverse("ops-doctor", args=[pk]),
        lines=("It is asked about fifty questions; nothing is changed there.",),
        needs_reason=False,
    )
    return ask(request, step, act)


@ASKS
@page("cluster.believe")
def believe(request: OpsRequest, pk: str) -> HttpResponse:
    """Say that what is missing from a cluster's inventory is really gone."""
    cluster = cluster_or_missing(pk)

    def act(why: str) -> str:
        joining.believe(cluster, why=evicting.reason(why), actor=request.actor, now=request.now)
        return f"The next inventory of {cluster.name} is taken as it is."

    step = Step(
        title=f"Are the cards of {cluster.name} really gone?",
        verb="Take its inventory as it is",
        back=reverse("ops-doctor", args=[pk]),
        lines=(
            cluster.halted or "Nothing is missing from its inventory now.",
            "What is missing is taken out of the pool. Leases on it are not ended by this.",
        ),
        danger=True,
        hint="Stands in the audit trail.",
    )
    return ask(request, step, act)


@ASKS
@page("cluster.add")
def add(request: OpsRequest) -> HttpResponse:
    """Register a cluster by its kubeconfig, and have it examined."""
    return _form(request, None)


@ASKS
@page("cluster.credentials")
def credentials(request: OpsRequest, pk: str) -> HttpResponse:
    """Give a cluster new credentials in place of those that are kept."""
    return _form(request, cluster_or_missing(pk))


def _form(request: OpsRequest, cluster: Cluster | None) -> HttpResponse:
    """Show the form; what was pasted is never sent back, not even when it is refused."""
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            with transaction.atomic():
                done = _renew(request, cluster) if cluster else _join(request)
                examining.ask_for(done, actor=request.actor, now=request.now)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            messages.success(request, f"{done.name} is being examined.")
            return redirect("ops-doctor", done.pk)
    told = {
        "cluster": cluster,
        "refusal": refusal,
        "field": getattr(refusal, "extra", {}).get("field", ""),
        "name": request.POST.get("name", ""),
        "region": request.POST.get("region", ""),
        "driver": request.POST.get("driver", "device_plugin"),
        "drivers": DRIVER_WORDS.items(),
        "choices": [
            (f"{name}=yes", DRIVER_WORDS[driver], what)
            for driver, choices in CHOICES.items()
            for name, what in choices.items()
        ],
        "chosen": request.POST.getlist("option"),
        "back": reverse("ops-doctor", args=[cluster.pk]) if cluster else reverse("ops-clusters"),
    }
    with as_staff():
        return render(request, "ops/cluster_form.html", told, status=refusal.status if refusal else 200)


def _join(request: OpsRequest) -> Cluster:
    name, region = (" ".join(request.POST.get(field, "").split()) for field in ("name", "region"))
    driver = request.POST.get("driver", "")
    for field, text in (("name", name), ("region", region)):
        if not text or len(text) > LONGEST_NAME or not text.isprintable():
            raise Invalid(
                field,
                f"A {field} has 1 to {LONGEST_NAME} characters.",
                fix=f"Give the {field} in a few words.",
            )
    if driver not in DRIVERS:
        raise Invalid("driver", f"No driver is called {driver!r}.", fix="Choose one of the list.")
    try:
        chosen = read_options(driver, request.POST.getlist("option"))
    except UnknownOption as error:
        raise Invalid(
            "option", f"That does not fit together: {error}.", fix="Untick it, or choose another driver."
        ) from None
    way = _pasted(request)
    try:
        with transaction.atomic():
            return joining.join(
                name=name,
                region=region,
                kubeconfig=way,
                driver=driver,
                driver_options=chosen,
                actor=request.actor,
                now=request.now,
            )
    except IntegrityError:
        raise Invalid(
            "name", f"There is a cluster called {name} already.", fix="Choose another name."
        ) from None
    except seal.Unsealable as error:
        raise _no_key(error) from None


def _renew(request: OpsRequest, cluster: Cluster) -> Cluster:
    way = _pasted(request)
    try:
        joining.renew(cluster, way, actor=request.actor, now=request.now)
    except seal.Unsealable as error:
        raise _no_key(error) from None
    return cluster


def _pasted(request: OpsRequest) -> dict[str, Any]:
    try:
        return parse(request.POST.get("kubeconfig", ""))
    except Unusable as error:
        raise Invalid("kubeconfig", str(error), fix="Paste it again as it says.") from None


def _no_key(error: Exception) -> Refused:
    return Invalid("kubeconfig", str(error), fix="Then paste it again.")


@ASKS
@page("cluster.let_in")
def ways(request: OpsRequest, pk: str) -> HttpResponse:
    """Say how people come into a cluster: the domain of its leases, what routes it, and the bastion for SSH."""
    cluster = cluster_or_missing(pk)
    refusal: Refused | None = None
    way = joining.WayIn(cluster.domain, cluster.door, cluster.bastion, cluster.entrances)
    version = str(cluster.version)
    if request.method == "POST":
        way = joining.WayIn(**{name: request.POST.get(name, "").strip() for name in WAYS})
        version = request.POST.get("version", "")
        try:
            seen = _version(version)
            joining.let_in(cluster, way, version=seen, actor=request.actor, now=request.now)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            messages.success(
                request, f"People come into {cluster.name} as you said, from their next look on."
            )
            return redirect("ops-doctor", cluster.pk)
    if refusal and refusal.status == Stale.status:  # what it is now stands beside what was written
        version = str(cluster.version)
    told = {
        "cluster": cluster,
        "refusal": refusal,
        "field": getattr(refusal, "field", ""),
        "way": way,
        "version": version,
        "back": reverse("ops-doctor", args=[cluster.pk]),
    }
    with as_staff():
        return render(request, "ops/cluster_ways.html", told, status=refusal.status if refusal else 200)


def _version(text: str) -> int:
    """Read which version of the cluster the form showed."""
    if not text.isdecimal() or len(text) > LONGEST_NUMBER:
        raise Invalid("version", "The form does not say which version it showed.", fix="Open it anew.")
    return int(text)
