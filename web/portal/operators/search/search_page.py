"""Search of operators: tenants, leases, invoices, nodes and GPUs."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Model, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import Invoice
from broker.models import Gpu, Lease, Node
from tenants.models import Tenant
from web.portal.operators.page_context import OperatorRequest, operator_page

MAX_HITS, MAX_WORDS = 8, 120
INVOICE_NUMBER = re.compile(r"(?P<series>\S{1,20})-(?P<number>\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One row that was found."""

    label: str
    detail: str
    url: str
    exact: bool = False  # the words are its id, or its whole number


@dataclass(frozen=True, slots=True)
class SearchGroup:
    """The rows of one kind."""

    label: str
    icon: str
    hits: list[SearchHit]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What was found for some words."""

    words: str
    groups: list[SearchGroup]

    @property
    def count(self) -> int:
        return sum(len(group.hits) for group in self.groups)


@operator_page("search")
def search(request: OperatorRequest) -> HttpResponse:
    """Search by name, number or ID; a whole ID leads to its page."""
    words = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_WORDS]
    groups = search_groups(words) if words else []
    exact = [hit for group in groups for hit in group.hits if hit.exact]
    if len(exact) == 1:
        return redirect(exact[0].url)
    page = SearchPage(words, [group for group in groups if group.hits])
    return render(request, "operators/search/search.html", {"page": page})


def search_groups(words: str) -> list[SearchGroup]:
    """Search every kind; one query each."""
    finders: tuple[tuple[str, str, Callable[[str], Iterable[SearchHit]]], ...] = (
        (_("Tenants"), "building", find_tenants),
        (_("Leases"), "cpu", find_leases),
        (_("Invoices"), "receipt", find_invoices),
        (_("Nodes"), "server-2", find_nodes),
        (_("GPUs"), "cpu", find_gpus),
    )
    return [SearchGroup(label, icon, list(find(words))) for label, icon, find in finders]


def find_tenants(words: str) -> Iterator[SearchHit]:
    for each in Tenant.objects.filter(Q(name__icontains=words) | Q(pk=words)).order_by("name", "pk")[:MAX_HITS]:
        yield SearchHit(each.name, f"{each.currency} · {each.pk}", _url("ops-tenant", each), each.pk == words)


def find_leases(words: str) -> Iterator[SearchHit]:
    rows = Lease.objects.filter(Q(name__icontains=words) | Q(pk=words)).select_related("tenant", "offering")
    for each in rows.order_by("-pk")[:MAX_HITS]:
        detail = f"{each.tenant.name} · {each.offering.label} · {each.state}"
        yield SearchHit(each.name, detail, _url("ops-lease", each), each.pk == words)


def find_invoices(words: str) -> Iterator[SearchHit]:
    found = INVOICE_NUMBER.fullmatch(words)
    wanted = Q(pk=words)
    if found:
        wanted |= Q(series__iexact=found["series"], number=int(found["number"]))
    elif not words.startswith("inv_"):
        wanted |= Q(tenant__name__icontains=words, number__isnull=False)
    rows = Invoice.objects.filter(wanted).select_related("tenant", "period").order_by("-period__label", "pk")
    for each in rows[:MAX_HITS]:
        label = str(each) if each.number else _("draft of {month}").format(month=each.month)
        exact = each.pk == words or found is not None
        yield SearchHit(label, f"{each.tenant.name} · {each.month} · {each.status}", _url("ops-invoice", each), exact)


def find_nodes(words: str) -> Iterator[SearchHit]:
    rows = Node.objects.filter(Q(name__icontains=words) | Q(pk=words)).select_related("cluster")
    for each in rows.order_by("cluster__name", "name")[:MAX_HITS]:
        yield SearchHit(each.name, f"{each.cluster.name} · {each.state}", _url("ops-node", each), each.pk == words)


def find_gpus(words: str) -> Iterator[SearchHit]:
    rows = Gpu.objects.filter(Q(uuid__icontains=words) | Q(pk=words)).select_related("node__cluster", "gpu_model")
    for each in rows.order_by("node__cluster__name", "node__name", "index")[:MAX_HITS]:
        label = f"{each.node.cluster.name} / {each.node.name} / {each}"
        detail = f"{each.gpu_model_id} · {each.health} · {each.uuid}"
        yield SearchHit(label, detail, _url("ops-gpu", each), words in (each.pk, each.uuid))


def _url(name: str, row: Model) -> str:
    return reverse(name, args=[row.pk])
