"""Volume pages: what is kept when leases end, which lease uses it, quota left."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from billing.services.rating import storage_costs
from broker.domain.lifecycle.states import VolumeState
from broker.models import Lease, Volume
from broker.models.volumes import VolumeQuerySet
from broker.services.volumes import volume_lifecycle
from ports import ids
from tenants.models import QuotaKind
from tenants.services import idempotency, quotas
from tenants.services.errors import ObjectNotFound, ProblemError
from web.portal import api_examples
from web.portal.page_context import GET_OR_POST, PageRequest, Scope, may_in_project, require_in_project, tenant_page

MAX_VOLUMES = 200
LIVE_STATES = ",".join(state.value for state in VolumeState if state is not VolumeState.DELETED)
SUGGESTED_GIB = "50"


@tenant_page("leases.read", methods=GET_OR_POST)
def list_volumes(request: PageRequest) -> HttpResponse:
    """List the volumes of the open project; a POST creates one."""
    form = {"name": "", "size": SUGGESTED_GIB, **volume_form_errors(None)}
    if request.method == "POST":
        require_in_project(request, "leases.write", request.project)
        form |= {"name": request.POST.get("name", "").strip()[:120], "size": request.POST.get("size", "")[:9]}
        try:
            return create_volume(request, str(form["name"]), str(form["size"]))
        except idempotency.IdempotencyKeyReused:  # somebody went back and changed the form, which still has its old key
            form["again"] = True
        except ProblemError as refusal:
            form |= volume_form_errors(refusal)
    page = build_volume_page(request, form)
    return render(request, "volumes/volumes.html", {"page": page}, status=409 if request.method == "POST" else 200)


@dataclass(frozen=True, slots=True)
class VolumePage:
    """The volumes of a project, with the form that creates one."""

    volumes: list[Volume]
    has_more: bool
    total_gib: int
    quota: quotas.RemainingQuota | None
    prices: dict[str, int]
    form: dict[str, Any]
    idempotency_key: str
    may_write: bool
    call: str


def build_volume_page(request: PageRequest, form: dict[str, Any]) -> VolumePage:
    """Read the volumes of the open project and what they cost."""
    listed = list(visible_volumes(request.scope)[: MAX_VOLUMES + 1])
    cost = storage_costs.volume_costs([each.pk for each in listed if each.used_at], now=request.now)
    for each in listed:
        each.cost = cost.get(each.pk)  # type: ignore[attr-defined]
    return VolumePage(
        volumes=listed[:MAX_VOLUMES],
        has_more=len(listed) > MAX_VOLUMES,
        total_gib=sum(each.size_gib for each in listed),
        quota=storage_quota(request),
        prices=storage_costs.monthly_prices(request.tenant, now=request.now),
        form=form,
        idempotency_key=("again" not in form and request.POST.get("key")) or ids.random_token(),
        may_write=may_in_project(request, "leases.write"),
        call=api_examples.curl_list("/volumes", request.scope, state=LIVE_STATES, limit=MAX_VOLUMES),
    )


def create_volume(request: PageRequest, name: str, size: str) -> HttpResponse:
    """Create a volume once, however often the form is sent."""
    keyed = idempotency.KeyedRequest(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=request.POST.get("key", "")[:255] or ids.random_token(),
        digest=idempotency.request_digest({"name": name, "size": size}),
    )
    if idempotency.find_record(keyed):
        return redirect("volumes")
    made = volume_lifecycle.create_volume(
        project=request.project, name=name, size_gib=parse_gib(size), actor=request.actor, now=request.now
    )
    idempotency.store_record(keyed, status=302, headers={"Location": request.path}, body="", now=request.now)
    messages.success(
        request,
        _("{made_name} was created. Storage is allocated when a lease first uses it.").format(made_name=made.name),
    )
    return redirect("volumes")


@tenant_page("leases.read", methods=GET_OR_POST)
def delete_volume(request: PageRequest, pk: str) -> HttpResponse:
    """Delete a volume, after a confirmation page."""
    volume = find_volume(request, pk)
    require_in_project(request, "leases.write", volume.project)
    error = ""
    if request.method == "POST":
        try:
            volume_lifecycle.delete_volume(volume, actor=request.actor, now=request.now)
        except ProblemError as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(request, _("{volume_name} is being deleted.").format(volume_name=volume.name))
            return redirect("volumes")
    shown = {"volume": volume, "error": error}
    return render(request, "volumes/delete.html", shown, status=409 if error else 200)


def find_volume(request: PageRequest, pk: str) -> Volume:
    """Return a volume, or raise ObjectNotFound if the visitor may not see it."""
    volume = with_leases(Volume.objects.filter(tenant=request.tenant)).existing().filter(pk=pk).first()
    if volume is None or not request.roles.may("leases.read", volume.project.path):
        raise ObjectNotFound(_("This volume does not exist."), fix=_("Choose one from the list of volumes."))
    return volume


def visible_volumes(scope: Scope) -> VolumeQuerySet:
    """Return the open project's volumes and those below, with their leases; two queries."""
    rows = Volume.objects.filter(tenant=scope.tenant).existing()
    if not scope.whole:
        rows = rows.filter(project__in=scope.projects().values("pk"))
    return with_leases(rows).order_by("project__name", "name")


def with_leases(rows: VolumeQuerySet) -> VolumeQuerySet:
    holding = Prefetch("leases", queryset=Lease.objects.live(), to_attr="held_by")
    return rows.select_related("project", "cluster").prefetch_related(holding)


def storage_quota(request: PageRequest) -> quotas.RemainingQuota | None:
    """Return the storage quota left in the open project; None if none was used yet."""
    rooms = quotas.remaining_quotas([request.project], now=request.now)[request.project.pk]
    return next((each for each in rooms if each.kind == QuotaKind.STORAGE), None)


def parse_gib(text: str) -> int:
    """Parse a size in GiB; anything but a whole number becomes 0, which is refused."""
    return int(text) if text.isascii() and text.isdigit() else 0


def volume_form_errors(refusal: ProblemError | None) -> dict[str, Any]:
    """Return the error beside its field: the size for bounds and quota, else the name."""
    errors: dict[str, Any] = {"name_error": "", "size_error": ""}
    if refusal:
        of_name = refusal.code == "name-taken" or getattr(refusal, "field", "") == "name"
        errors["name_error" if of_name else "size_error"] = f"{refusal.detail} {refusal.fix.text}"
    return errors
