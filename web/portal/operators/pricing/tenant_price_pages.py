"""Tenant-specific prices of an offering: agree on one, end one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import PriceVersion
from billing.services.catalogue import price_list, tenant_prices
from billing.services.reports import price_impact
from billing.services.reports.price_impact import PricePreview
from broker.models import Offering
from tenants.models import Tenant
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import staff_scope
from web.http.middleware import set_rejection_reason
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.operator_lists import FilteredList, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    operator_page,
    render_refused,
)
from web.portal.operators.pricing.offering_lists import TENANT_PRICE_LIST
from web.portal.operators.pricing.offering_pages import (
    PricePreviewPanel,
    find_offering,
    parse_price_start,
    version_period,
)


@operator_page("tenant_prices", methods=SAFE_OR_POST)
def edit_tenant_prices(request: OperatorRequest, pk: str) -> Any:
    """Show the tenant-specific prices of an offering; a POST agrees on one.

    `?try=` shows a tenant's last month at another price.
    """
    found = find_offering(pk)
    if wants_csv(request):
        return read_lists(request, TENANT_PRICE_LIST).csv((TENANT_PRICE_LIST, lambda: _tenant_versions(found)))
    refusal: ProblemError | None = None
    preview_panel: PricePreviewPanel | None = None
    try:
        if request.method == "POST":
            messages.success(request, _agree_price(request, found))
            return redirect("ops-tenant-prices", pk=pk)
        if "try" in request.GET:
            preview_panel = PricePreviewPanel(_preview_price(request, found))
    except ProblemError as problem:
        refusal = problem
        set_rejection_reason(request, problem.detail)
    template = "operators/pricing/tenant_prices.html"
    return render_refused(request, template, lambda _: build_tenant_price_page(request, found, preview_panel), refusal)


@dataclass(frozen=True, slots=True)
class TenantPricePage:
    """The custom prices of an offering, the form for one, and the preview of another."""

    offering: Offering
    versions: FilteredList
    tenants: list[Tenant]
    chosen: Tenant | None
    listed: int | None  # list price in the tenant's currency
    typed: QueryDict
    preview_panel: PricePreviewPanel | None

    @property
    def currency(self) -> str:
        return self.chosen.currency if self.chosen else ""

    @property
    def price(self) -> str:
        return self.typed.get("price", self.typed.get("try", ""))

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(
                _("Custom prices"), "ops/price-versions", offering=self.offering.pk, own="true", limit=API_PAGE_SIZE
            ),
            operator_api_call(
                _("Simulated price"),
                f"ops/offerings/{self.offering.pk}/preview",
                tenant=self.typed.get("tenant", ""),
                price_per_hour=self.typed.get("try", ""),
            ),
        ]


def build_tenant_price_page(
    request: OperatorRequest, found: Offering, preview_panel: PricePreviewPanel | None
) -> TenantPricePage:
    """Read the custom prices of an offering, and what the form offers."""
    typed = request.POST if request.method == "POST" else request.GET
    versions = read_lists(request, TENANT_PRICE_LIST).read(TENANT_PRICE_LIST, _tenant_versions(found))
    tenants = list(Tenant.objects.order_by("name", "pk")[:API_PAGE_SIZE])
    names = dict(Tenant.objects.filter(pk__in={row.tenant_id for row in versions.rows}).values_list("pk", "name"))
    chosen = next((each for each in tenants if each.pk == typed.get("tenant")), None)
    return TenantPricePage(
        offering=found,
        versions=versions.with_rows(
            [
                {"version": row, "name": names.get(row.tenant_id or ""), "when": version_period(row, request.now)}
                for row in versions.rows
            ]
        ),
        tenants=tenants,
        chosen=chosen,
        listed=_list_price(found, chosen, request.now),
        typed=typed,
        preview_panel=preview_panel,
    )


def _tenant_versions(found: Offering) -> QuerySet[PriceVersion]:
    return PriceVersion.objects.filter(offering=found, tenant_id__isnull=False).order_by("tenant_id", "-valid", "-pk")


def _list_price(found: Offering, tenant: Tenant | None, now: datetime) -> int | None:
    """Return the list price in the tenant's currency."""
    if tenant is None:
        return None
    price = price_list.prices_at(now, currency=tenant.currency, offerings=[found.pk]).get(found.pk)
    return price.nano_per_hour if price else None


def _find_tenant(text: str) -> Tenant:
    with staff_scope():
        tenant = Tenant.objects.filter(pk=text).first()
    if tenant is None:
        raise InvalidValue("tenant", _("The tenant was not found."), fix=_("Select a tenant from the list."))
    return tenant


def _preview_price(request: OperatorRequest, found: Offering) -> PricePreview:
    tenant, nano = (_find_tenant(request.GET.get("tenant", "")), price_list.parse_nano_per_hour(request.GET["try"]))
    with staff_scope():
        return price_impact.preview_price(
            found, currency=tenant.currency, nano_per_hour=nano, now=request.now, tenant=tenant.pk
        )


def _agree_price(request: OperatorRequest, found: Offering) -> str:
    form = request.POST
    tenant = _find_tenant(form.get("tenant", ""))
    since = parse_price_start(form.get("since", ""), request.now, field="since")
    until = parse_price_start(form["until"], request.now, field="until") if form.get("until", "").strip() else None
    tenant_prices.set_tenant_price(
        tenant=tenant,
        offering=found,
        nano_per_hour=price_list.parse_nano_per_hour(form.get("price", "")),
        since=since,
        until=until,
        free="free" in form,
        actor=request.actor,
        now=request.now,
    )
    return _("{tenant_name} has a custom price from {since:%d %b %Y %H:%M} UTC.").format(
        tenant_name=tenant.name, since=since
    )


@operator_page("tenant_price.end", methods=SAFE_OR_POST)
def end_tenant_price(request: OperatorRequest, pk: str) -> HttpResponse:
    """End a tenant's own price now, after a confirmation page."""
    with staff_scope():
        row = tenant_prices.find_tenant_price(pk)
        tenant, found = Tenant.objects.get(pk=row.tenant_id or ""), row.offering

    def act(_why: str) -> str:
        tenant_prices.end_tenant_price(row, at=request.now, actor=request.actor, now=request.now)
        return _("{tenant_name} now pays the list price of {found_label}.").format(
            tenant_name=tenant.name, found_label=found.label
        )

    step = Confirmation(
        title=_("End the custom price of {tenant_name} for {found_label}?").format(
            tenant_name=tenant.name, found_label=found.label
        ),
        verb=_("End custom price"),
        back=reverse("ops-tenant-prices", args=[pk]),
        lines=(_("The list price applies immediately. Leases with a quote keep the quoted price."),),
        danger=True,
        needs_reason=False,
    )
    return confirm_action(request, step, act)
