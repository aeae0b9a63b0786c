"""Offering pages of operators: derive, name, publish, price and retire."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from billing.models import PriceVersion
from billing.models.prices import PriceModel
from billing.services.catalogue import price_list, price_tiers
from billing.services.catalogue.price_list import OfferingPrice
from billing.services.rating import unpriced_usage
from billing.services.reports import price_impact
from billing.services.reports.price_impact import PricePreview
from broker.models import Cluster, Lease, Offering, OfferingState
from broker.services.inventory import gpu_catalogue, offering_admin
from broker.services.inventory.offering_resources import COLUMNS
from broker.services.queue import open_capacity
from broker.services.volumes import volume_metering
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import staff_scope
from web.http.middleware import set_rejection_reason
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.launch.launch_terms import YEARS
from web.portal.operators.operator_lists import FilteredList, read_lists, wants_csv
from web.portal.operators.page_context import (
    POST,
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_in_scope,
    operator_page,
    render_refused,
)
from web.portal.operators.pricing import spot_terms_form
from web.portal.operators.pricing.offering_lists import (
    GAP_LIST,
    OFFERING_LIST,
    VERSION_LIST,
    OfferingRow,
    price_class_text,
)
from web.portal.operators.pricing.resource_form import ResourceForm, is_resource_form, parse_resources, parse_version
from web.portal.operators.pricing.spot_terms_form import SpotTermsForm, is_spot_terms_form, parse_spot_terms
from web.ui.formatting import format_resources

MAX_AFFECTED_TENANTS = 12  # tenants of a preview; the API call returns all


@operator_page("offerings")
def list_offerings(request: OperatorRequest) -> Any:
    """List every offering with its state, current price and next price."""
    lists = read_lists(request, OFFERING_LIST, GAP_LIST)
    rows = list(Offering.objects.order_by("gpu_model_id", "region", "-memory_gb", "-milli_units", "price_class", "id"))
    upcoming = price_list.upcoming_prices(request.now, currency=settings.CURRENCY)
    live = _live_lease_counts()
    known = price_list.prices_at(request.now, currency=settings.CURRENCY)
    priced = [OfferingRow(row, known.get(row.pk), upcoming.get(row.pk), live.get(row.pk, 0)) for row in rows]
    unpriced = unpriced_usage.unpriced_usage(now=request.now)
    if wants_csv(request):
        return lists.csv((OFFERING_LIST, lambda: priced), (GAP_LIST, lambda: unpriced))
    listing = lists.read(OFFERING_LIST, priced)
    free = open_capacity.count_open_capacity(
        (row.offering for row in listing.rows if row.offering.state == OfferingState.PUBLISHED), now=request.now
    )
    context = {
        "listing": listing.with_rows([(row, free.get(row.offering.pk)) for row in listing.rows]),
        "filter": lists.count_states(OFFERING_LIST, priced),
        "currency": settings.CURRENCY,
        "gaps": [row for row in rows if row.state == OfferingState.PUBLISHED and row.pk not in known],
        "unpriced": lists.read(GAP_LIST, unpriced),
        "stored": (stored := PriceVersion.objects.storage_sold_since() is not None),
        "free_storage": not stored and any(row.is_storage for row in rows),
        "drafts": sum(row.state == OfferingState.DRAFT for row in rows),
        "count": sum(row.state == OfferingState.PUBLISHED for row in rows),
        "calls": [
            operator_api_call(
                _("Offerings with their prices"), "ops/offerings", state=lists.filter.state, limit=API_PAGE_SIZE
            ),
            operator_api_call(_("Usage without a price"), "ops/price-gaps"),
        ],
    }
    return render(request, "operators/pricing/offerings.html", context)


def _live_lease_counts() -> dict[str, int]:
    """Count the live leases of each offering."""
    counts: defaultdict[str, int] = defaultdict(int)
    for pk in Lease.objects.live().values_list("offering_id", flat=True):
        counts[pk] += 1
    return counts


@operator_page("offerings.derive", methods=POST)
def derive_offerings(request: OperatorRequest) -> HttpResponse:
    """Draft an offering for every shape in the inventory that has none."""
    new = gpu_catalogue.derive_offerings(now=request.now, any_share=True)
    for region in sorted(set(Cluster.objects.values_list("region", flat=True))):
        volume_metering.storage_offering(region, now=request.now)
    text = (
        _("{new} new drafts created. Name, price and publish them.").format(new=new)
        if new
        else _("Every profile in the inventory has an offering.")
    )
    messages.success(request, text)
    return redirect("ops-offerings")


def find_offering(pk: str) -> Offering:
    return find_in_scope(Offering.objects.all(), pk, _("Offering"), fix=_("Select it from Offerings."))


@operator_page("offering", methods=SAFE_OR_POST)
def edit_offering(request: OperatorRequest, pk: str) -> Any:
    """Show one offering with its prices; a POST renames it or publishes a price.

    `?try=` shows last month's revenue at another price.
    """
    found = find_offering(pk)
    if wants_csv(request):
        return read_lists(request, VERSION_LIST).csv((VERSION_LIST, lambda: _price_versions(found)))
    refusal: ProblemError | None = None
    preview_panel: PricePreviewPanel | None = None
    if request.method == "POST":
        try:
            messages.success(request, _change_offering(request, found))
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
        else:
            return redirect("ops-offering", pk=pk)
    elif "try" in request.GET:
        try:
            preview_panel = PricePreviewPanel(_preview_price(request, found))
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)

    def build(refusal: ProblemError | None) -> OfferingPage:
        wrong = getattr(refusal, "field", "") if request.method == "POST" else "try"
        return build_offering_page(request, found, wrong, preview_panel)

    return render_refused(request, "operators/pricing/offering.html", build, refusal)


@dataclass(frozen=True, slots=True)
class PricePreviewPanel:
    """Last month at another price, with the tenants it affects most."""

    preview: PricePreview

    @property
    def month(self) -> str:
        return f"{self.preview.month.start:%B %Y}"

    @property
    def difference_minor(self) -> int:
        return self.preview.difference_minor

    @property
    def effects(self) -> list[dict[str, Any]]:
        minor = self.preview.minor
        return [
            {
                "effect": effect,
                "was": minor(effect.was),
                "would_be": minor(effect.would_be),
                "more": self.preview.difference_of(effect),
            }
            for effect in self.preview.effects[:MAX_AFFECTED_TENANTS]
        ]

    @property
    def other_tenant_count(self) -> int:
        return max(len(self.preview.effects) - MAX_AFFECTED_TENANTS, 0)


@dataclass(frozen=True, slots=True)
class OfferingPage:
    """One offering: its prices, a form for a new one, a preview of another."""

    offering: Offering
    versions: FilteredList
    price: OfferingPrice | None
    custom_price_count: int  # tenants with a custom price
    live_leases: int
    wrong_field: str  # the refused field
    new_price: str
    label: str
    resources: ResourceForm | None  # None: storage
    spot_terms: SpotTermsForm | None  # None: not a spot offering
    preview_panel: PricePreviewPanel | None
    calls: list[dict[str, str]]

    models = PriceModel.choices

    @property
    def price_class(self) -> str:
        return price_class_text(self.offering)

    @property
    def currency(self) -> str:
        return settings.CURRENCY

    @property
    def has_wrong_terms(self) -> bool:
        """Return whether the error stands beside a field of resources or spot terms."""
        spot_fields = spot_terms_form.FIELDS if self.spot_terms else ()
        return self.wrong_field in (*COLUMNS.values(), *spot_fields)

    @property
    def wrong_tiers(self) -> bool:
        return self.wrong_field in ("tiers", "model")


def build_offering_page(
    request: OperatorRequest, found: Offering, wrong: str, preview_panel: PricePreviewPanel | None
) -> OfferingPage:
    """Read an offering's prices and its use."""
    versions = read_lists(request, VERSION_LIST).read(VERSION_LIST, _price_versions(found))
    own = PriceVersion.objects.filter(offering=found, tenant_id__isnull=False, valid__contains=request.now)
    query = request.GET
    return OfferingPage(
        offering=found,
        versions=versions.with_rows(
            [
                {
                    "version": row,
                    "from": row.valid.lower,
                    "until": row.valid.upper,
                    "when": version_period(row, request.now),
                    "tiers": price_tiers.describe_tiers(row),
                }
                for row in versions.rows
            ]
        ),
        price=price_list.prices_at(request.now, currency=settings.CURRENCY, offerings=[found.pk]).get(found.pk),
        custom_price_count=own.count(),
        live_leases=Lease.objects.live().filter(offering=found).count(),
        wrong_field=wrong,
        new_price=request.POST.get("price", query.get("try", "")),
        label=request.POST.get("label", found.label),
        resources=None if found.is_storage else ResourceForm.of(found, request.POST),
        spot_terms=SpotTermsForm.of(found, request.POST),
        preview_panel=preview_panel,
        calls=[
            operator_api_call(
                _("Prices of this offering"),
                "ops/price-versions",
                offering=found.pk,
                currency=settings.CURRENCY,
                limit=API_PAGE_SIZE,
            ),
            operator_api_call(_("This offering"), f"ops/offerings/{found.pk}"),
            operator_api_call(
                _("Simulated price"),
                f"ops/offerings/{found.pk}/preview",
                price_per_hour=query.get("try", ""),
                model=query.get("model", ""),
                tiers=";".join(query.get("tiers", "").splitlines()),
            ),
        ],
    )


def _price_versions(found: Offering) -> QuerySet[PriceVersion]:
    return PriceVersion.objects.listed().filter(offering=found, currency=settings.CURRENCY).order_by("-valid", "-pk")


def _preview_price(request: OperatorRequest, found: Offering) -> PricePreview:
    nano = price_list.parse_nano_per_hour(request.GET["try"])
    tiers = _parse_tiers(request.GET, nano)
    return price_impact.preview_price(
        found, currency=settings.CURRENCY, nano_per_hour=nano, now=request.now, tiers=tiers
    )


def _parse_tiers(typed: Any, nano: int) -> dict[str, Any]:
    """Parse the price model and its tiers from the form; flat if none is named."""
    return price_tiers.parse_tiers(
        typed.get("model", "") or PriceModel.FLAT, nano, price_tiers.parse_tier_lines(typed.get("tiers", ""))
    )


def version_period(row: PriceVersion, now: datetime) -> str:
    if row.valid.lower > now:
        return "scheduled"
    return "now" if row.valid.upper is None or row.valid.upper > now else "past"


def _change_offering(request: OperatorRequest, found: Offering) -> str:
    if "label" in request.POST:
        offering_admin.rename_offering(found, label=request.POST["label"], actor=request.actor, now=request.now)
        return _("The offering was renamed to {found_label}.").format(found_label=found.label)
    if is_resource_form(request.POST):
        wanted, version = parse_resources(request.POST), parse_version(request.POST)
        offering_admin.set_offering_resources(found, wanted, version=version, actor=request.actor, now=request.now)
        return _("Leases requested from now on have {amounts} for each slice.").format(
            amounts=format_resources(found.host_resources)
        )
    if is_spot_terms_form(request.POST):
        offering_admin.set_spot_terms(found, **parse_spot_terms(request.POST), actor=request.actor, now=request.now)
        return _("Spot leases requested from now on have these terms.")
    nano, since = (
        price_list.parse_nano_per_hour(request.POST.get("price", "")),
        parse_price_start(request.POST.get("from", ""), request.now),
    )
    price_list.publish_price(
        offering=found,
        currency=settings.CURRENCY,
        nano_per_hour=nano,
        since=since,
        tiers=_parse_tiers(request.POST, nano),
        actor=request.actor,
        now=request.now,
    )
    return _("The new price is valid from {since:%d %b %Y %H:%M} UTC.").format(since=since)


def parse_price_start(text: str, now: datetime, *, field: str = "from") -> datetime:
    """Parse when a price begins; empty means now."""
    if not text.strip():
        return now
    with suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(text.strip())
        if when.year in YEARS:  # other years may overflow when converted to another time zone
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    raise InvalidValue(
        field,
        _(
            "The time is not valid. Example: 2026-12-01T00:00, in UTC unless it has an offset, from {start} to {stop}."
        ).format(start=YEARS.start, stop=YEARS.stop - 1),
        fix=_("Select a time or leave the field empty."),
    )


def confirm_state_change(request: OperatorRequest, pk: str, state: OfferingState, *lines: str) -> HttpResponse:
    """Ask for confirmation, then set the state of an offering."""
    found = find_offering(pk)
    with staff_scope():
        live = Lease.objects.live().filter(offering=found).count()
    verb = _("Publish") if state is OfferingState.PUBLISHED else _("Retire")

    def act(_why: str) -> str:
        if state is OfferingState.PUBLISHED:  # raises without a price: nothing is sold for free by mistake
            price_list.price_of(found, currency=settings.CURRENCY, moment=request.now)
        offering_admin.set_offering_state(found, state, actor=request.actor, now=request.now)
        return _("{found_label} is now {label_lower}.").format(found_label=found.label, label_lower=state.label.lower())

    step = Confirmation(
        title=f"{verb} {found.label}, {price_class_text(found)}, {found.region}?",
        verb=f"{verb} {found.label}",
        back=reverse("ops-offering", args=[pk]),
        lines=(*lines, ngettext("{n} lease runs on it now.", "{n} leases run on it now.", live).format(n=live)),
        danger=state is OfferingState.RETIRED,
        needs_reason=False,
    )
    return confirm_action(request, step, act)


@operator_page("offering.publish", methods=SAFE_OR_POST)
def publish_offering(request: OperatorRequest, pk: str) -> HttpResponse:
    """Publish an offering; refused while it has no price."""
    return confirm_state_change(request, pk, OfferingState.PUBLISHED, _("Tenants see it in the catalogue at once."))


@operator_page("offering.retire", methods=SAFE_OR_POST)
def retire_offering(request: OperatorRequest, pk: str) -> HttpResponse:
    """Retire an offering."""
    effect = _("It takes no new leases. Running leases continue at its price until they end.")
    return confirm_state_change(request, pk, OfferingState.RETIRED, effect)
