"""Page of a lease array: its leases by state, and release of all of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseArray
from broker.services.leases import lease_arrays
from tenants.services.errors import ObjectNotFound
from web.portal import api_examples
from web.portal.leases.lease_table import LeaseRow, lease_rows, prefetch_for_rows
from web.portal.page_context import GET_OR_POST, PageRequest, require_in_project, tenant_page

PAGE_SIZE = 30


@dataclass(frozen=True, slots=True)
class ArrayPage:
    """An array with some of its leases, in the order of their index."""

    array: LeaseArray
    states: Mapping[str, int]
    rows: list[LeaseRow]
    older: str  # the page after this one
    may_write: bool
    call: str

    @property
    def live(self) -> int:
        """Return how many of its leases are not over."""
        ended = (LeaseState.RELEASING.value, LeaseState.RELEASED.value, LeaseState.FAILED.value)
        return sum(count for state, count in self.states.items() if state not in ended)


@tenant_page("leases.read")
def show_array(request: PageRequest, pk: str) -> HttpResponse:
    page = build_array_page(request, find_array(request, pk))
    return render(request, "lease_arrays/array.html", {"page": page})


@tenant_page("leases.read", methods=GET_OR_POST)
def release_array(request: PageRequest, pk: str) -> HttpResponse:
    """Show how many leases would end; a POST ends them."""
    array = find_array(request, pk)
    require_in_project(request, "leases.write", array.project)
    if request.method == "POST":
        ended = lease_arrays.release_array(array, actor=request.actor, now=request.now)
        messages.success(request, _("{count} leases are being released. Charging has stopped.").format(count=ended))
        return redirect("lease-array", pk=array.pk)
    return render(request, "lease_arrays/release.html", {"page": build_array_page(request, array)})


def find_array(request: PageRequest, array_id: str) -> LeaseArray:
    """Return an array that the visitor may see, or raise ObjectNotFound."""
    rows = LeaseArray.objects.filter(tenant=request.tenant).select_related("project")
    array = rows.filter(pk=array_id).first()
    if array is None or not request.roles.may("leases.read", array.project.path):
        raise ObjectNotFound(_("This array does not exist."), fix=_("Choose a lease from the list of leases."))
    return array


def build_array_page(request: PageRequest, array: LeaseArray) -> ArrayPage:
    """Read one page of an array's leases."""
    written = request.GET.get("from", "")
    first = int(written) if written.isascii() and written.isdigit() and len(written) <= 4 else 0
    leases = Lease.objects.filter(array=array, array_index__gte=first).order_by("array_index")
    listed = list(prefetch_for_rows(leases)[: PAGE_SIZE + 1])
    return ArrayPage(
        array=array,
        states=lease_arrays.count_states([array])[array.pk],
        rows=lease_rows(listed[:PAGE_SIZE], currency=request.tenant.currency, now=request.now),
        older=f"?from={first + PAGE_SIZE}" if len(listed) > PAGE_SIZE else "",
        may_write=request.roles.may("leases.write", array.project.path),
        call=api_examples.curl_get(f"/leases?array={array.pk}&sort=id&limit={PAGE_SIZE}"),
    )
