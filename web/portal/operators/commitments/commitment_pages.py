"""Commitments of all tenants, as operators agree on them and end them."""

import re
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.documents import NANO_DIGITS
from billing.domain.money import format_fixed_point
from billing.models import Commitment
from billing.services.agreements import commitments
from billing.services.catalogue import price_list
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering, OfferingState
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.commitments.commitment_page import commitment_badge
from web.portal.operators.discounts.discount_pages import find_form_tenant, parse_optional_moment
from web.portal.operators.grants.grant_list_page import MAX_TENANTS
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    form_page,
    operator_page,
)

UNITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def _commitment_cells(each: Commitment) -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, each.offering_id, each.offering.label, each.units),
        *(format_fixed_point(each.nano_per_hour, NANO_DIGITS), each.currency, csv_time(each.valid.lower)),
        *(csv_time(each.valid.upper), each.agreed_by, csv_time(each.agreed_at)),
    )


COMMITMENT_LIST = OperatorList(
    name="commitments",
    heads=(
        "commitment tenant tenant_name offering offering_name units price_per_hour currency since until "
        "agreed_by agreed_at"
    ),
    cells=_commitment_cells,
    tenant="tenant_id",
    at="agreed_at",
    search=("offering__label", "pk"),
)


@operator_page("commitments", methods=SAFE_OR_POST)
def list_commitments(request: OperatorRequest) -> Any:
    """List the commitments of all tenants; a POST agrees on a new one."""
    if wants_csv(request):
        return read_lists(request, COMMITMENT_LIST).csv((COMMITMENT_LIST, _commitments))
    return form_page(
        request,
        "operators/commitments/commitments.html",
        lambda _: build_commitment_page(request),
        lambda: _agree_commitment(request),
        back=reverse("ops-commitments"),
    )


@dataclass(frozen=True, slots=True)
class TenantCommitmentPage:
    """Commitments of all tenants, with the form that agrees on one."""

    listing: FilteredList
    tenants: list[Tenant]
    offerings: list[Offering]

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Commitments of all tenants"), "ops/commitments", sort="-id", limit=API_PAGE_SIZE)]


def build_commitment_page(request: OperatorRequest) -> TenantCommitmentPage:
    """Read one page of the commitments, and what the form offers."""
    found = read_lists(request, COMMITMENT_LIST).read(COMMITMENT_LIST, _commitments())
    sold = Offering.objects.filter(state=OfferingState.PUBLISHED).exclude(price_class=PriceClass.SPOT)
    return TenantCommitmentPage(
        listing=found.with_rows([{"row": each, "state": commitment_badge(each, request.now)} for each in found.rows]),
        tenants=list(Tenant.objects.order_by("name", "pk")[:MAX_TENANTS]),
        offerings=list(sold.order_by("label", "pk")),
    )


def _commitments() -> QuerySet[Commitment]:
    return Commitment.objects.select_related("tenant", "offering").order_by("-agreed_at", "-pk")


def _agree_commitment(request: OperatorRequest) -> str:
    typed = request.POST
    with staff_scope():
        offering = Offering.objects.filter(pk=typed.get("offering", "")).first()
    if offering is None:
        raise InvalidValue("offering", _("The offering was not found."), fix=_("Select an offering from the list."))
    if not UNITS.fullmatch(units := typed.get("units", "").strip()):
        raise InvalidValue(
            "units", _("The number of units is not a whole number."), fix=_("Enter a whole number such as 8.")
        )
    made = commitments.create_commitment(
        find_form_tenant(request),
        offering,
        units=int(units),
        nano_per_hour=price_list.parse_nano_per_hour(typed.get("price", "")),
        since=parse_optional_moment("since", typed.get("since", "")) or request.now,
        until=parse_optional_moment("until", typed.get("until", "")),
        actor=request.actor,
        now=request.now,
    )
    what = f"{made.units} × {made.offering.label}"
    return _("{tenant_name} has a commitment of {what} from {valid_lower:%d %b %Y %H:%M} UTC.").format(
        tenant_name=made.tenant.name, what=what, valid_lower=made.valid.lower
    )


@operator_page("commitment", methods=SAFE_OR_POST)
def end_commitment(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then end a commitment."""
    with staff_scope():
        found = commitments.find_commitment(pk)
    what = _("{units} × {offering_label} of {tenant_name}").format(
        units=found.units, offering_label=found.offering.label, tenant_name=found.tenant.name
    )

    def do(why: str) -> str:
        commitments.end_commitment(found, at=request.now, actor=request.actor, now=request.now)
        return _("{what} ended.").format(what=what)

    step = Confirmation(
        title=_("End {what}?").format(what=what),
        verb=_("End commitment"),
        back=reverse("ops-commitments"),
        lines=(
            _("The commitment ends immediately. Usage covered so far stays covered; unused units so far are billed."),
        ),
        danger=True,
        needs_reason=False,
    )
    return confirm_action(request, step, do)
