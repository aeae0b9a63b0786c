"""Campaigns, discounts and minimums of all tenants, for operators."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import Campaign, Discount, Minimum
from billing.services.agreements import minimums
from billing.services.agreements.discounts import campaigns, tenant_discounts
from billing.services.agreements.discounts.campaigns import RedemptionLimits
from billing.services.agreements.discounts.discount_terms import DiscountTerms, parse_discount_amount, parse_percent_bp
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering, OfferingState
from tenants.models import Tenant
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.discounts.discount_page import discount_rows
from web.portal.operators.discounts.discount_lists import CODE_LIST, DISCOUNT_LIST, MINIMUM_LIST
from web.portal.operators.grants.grant_list_page import MAX_TENANTS
from web.portal.operators.operator_lists import FilteredList, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    form_page,
    operator_page,
)

NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)


@operator_page("discounts", methods=SAFE_OR_POST)
def list_discounts(request: OperatorRequest) -> Any:
    """List codes, discounts and minimums; a POST adds one."""
    if wants_csv(request):
        lists = read_lists(request, CODE_LIST, DISCOUNT_LIST, MINIMUM_LIST)
        return lists.csv((CODE_LIST, _codes), (DISCOUNT_LIST, _discounts), (MINIMUM_LIST, _minimums))
    return form_page(
        request,
        "operators/discounts/discounts.html",
        lambda _: build_discount_page(request),
        lambda: ADD_BY_KIND.get(request.POST.get("what", ""), _refuse_unknown_form)(request),
        back=reverse("ops-discounts"),
    )


@dataclass(frozen=True, slots=True)
class TenantDiscountPage:
    """Codes, discounts and minimums of all tenants, with a form for each."""

    discounts: FilteredList
    campaigns: FilteredList
    minimums: FilteredList
    tenants: list[Tenant]
    offerings: list[Offering]
    what: str  # the form that was sent
    sent: QueryDict

    classes = tuple((each.value, each.value.replace("_", "-")) for each in PriceClass)

    @property
    def opened(self) -> dict[str, bool]:
        return {form: self.what == form for form in ADD_BY_KIND}

    @property
    def typed(self) -> dict[str, QueryDict]:
        """Return the input of each form, which keeps only its own."""
        return {self.what: self.sent}

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(_("Codes"), "ops/campaigns", sort="-id", limit=API_PAGE_SIZE),
            operator_api_call(_("Discounts of all tenants"), "ops/discounts", sort="-id", limit=API_PAGE_SIZE),
            operator_api_call(_("Minimum spend of all tenants"), "ops/minimum-spends", sort="-id", limit=API_PAGE_SIZE),
        ]


def build_discount_page(request: OperatorRequest) -> TenantDiscountPage:
    """Read the codes, one page of the discounts, and the minimums."""
    lists = read_lists(request, CODE_LIST, DISCOUNT_LIST, MINIMUM_LIST)
    discounts, codes = lists.read(DISCOUNT_LIST, _discounts()), lists.read(CODE_LIST, _codes())
    return TenantDiscountPage(
        discounts=discounts.with_rows(discount_rows(discounts.rows, f"{request.now:%Y-%m}")),
        campaigns=codes.with_rows(
            [
                {"row": each, "size": tenant_discounts.format_discount(each), "over": _campaign_over(each, request.now)}
                for each in codes.rows
            ]
        ),
        minimums=lists.read(MINIMUM_LIST, _minimums()),
        tenants=list(Tenant.objects.order_by("name", "pk")[:MAX_TENANTS]),
        offerings=list(Offering.objects.filter(state=OfferingState.PUBLISHED).order_by("label", "pk")),
        what=request.POST.get("what", ""),
        sent=request.POST,
    )


def _codes() -> QuerySet[Campaign]:
    return Campaign.objects.order_by("-created_at", "-pk")


def _discounts() -> QuerySet[Discount]:
    return Discount.objects.select_related("tenant", "campaign").order_by("-given_at", "-pk")


def _minimums() -> QuerySet[Minimum]:
    return Minimum.objects.select_related("tenant").order_by("-agreed_at", "-pk")


def _campaign_over(campaign: Campaign, now: datetime) -> bool:
    used_up = campaign.most is not None and campaign.redeemed >= campaign.most
    return used_up or bool(campaign.until and campaign.until <= now)


def _create_campaign(request: OperatorRequest) -> str:
    typed = request.POST
    about = RedemptionLimits(
        until=parse_optional_moment("until", typed.get("until", "")),
        months=_parse_number("months", typed.get("months", "")),
        most=_parse_number("most", typed.get("most", "")),
    )
    terms = _parse_discount_terms(request, typed.get("currency", "").strip().upper())
    made = campaigns.create_campaign(typed.get("code", ""), terms, about, actor=request.actor, now=request.now)
    return _("{code} created: {made} off.").format(code=made.code, made=tenant_discounts.format_discount(made))


def _give_discount(request: OperatorRequest) -> str:
    tenant = find_form_tenant(request)
    given = tenant_discounts.give_discount(
        tenant,
        _parse_discount_terms(request, tenant.currency),
        first_month=request.POST.get("first_month", "").strip(),
        months=_parse_number("months", request.POST.get("months", "")),
        actor=request.actor,
        now=request.now,
    )
    return _("{tenant_name} gets {given} off from {first_month}.").format(
        tenant_name=tenant.name, given=tenant_discounts.format_discount(given), first_month=given.first_month
    )


def _agree_minimum(request: OperatorRequest) -> str:
    tenant = find_form_tenant(request)
    agreed = minimums.create_minimum(
        tenant,
        minor=parse_discount_amount(request.POST.get("amount", ""), tenant.currency),
        since=parse_optional_moment("since", request.POST.get("since", "")) or request.now,
        until=parse_optional_moment("until", request.POST.get("until", "")),
        actor=request.actor,
        now=request.now,
    )
    return _("Minimum spend of {tenant_name} starts {valid_lower:%d %b %Y %H:%M} UTC.").format(
        tenant_name=tenant.name, valid_lower=agreed.valid.lower
    )


def _refuse_unknown_form(request: OperatorRequest) -> str:
    raise InvalidValue("what", _("The form is incomplete."), fix=_("Reload the page."))


ADD_BY_KIND = {"campaign": _create_campaign, "discount": _give_discount, "minimum": _agree_minimum}


def _parse_discount_terms(request: OperatorRequest, currency: str) -> DiscountTerms:
    """Parse the discount from the form: a percentage or an amount."""
    percent, amount = (request.POST.get(name, "").strip() for name in ("percent", "amount"))
    return DiscountTerms(
        name=request.POST.get("name", ""),
        percent_bp=parse_percent_bp(percent) if percent else None,
        minor=parse_discount_amount(amount, currency) if amount else None,
        currency=currency,
        offerings=tuple(filter(None, request.POST.getlist("offerings"))),
        price_classes=tuple(filter(None, request.POST.getlist("price_classes"))),
    )


def find_form_tenant(request: OperatorRequest) -> Tenant:
    """Return the tenant that the form names, or raise InvalidValue."""
    with staff_scope():
        found = Tenant.objects.filter(pk=request.POST.get("tenant", "")).first()
    if found is None:
        raise InvalidValue("tenant", _("The tenant was not found."), fix=_("Select a tenant from the list."))
    return found


def _parse_number(field: str, text: str) -> int | None:
    if not text.strip():
        return None
    if not NUMBER.fullmatch(text.strip()):
        raise InvalidValue(
            field,
            _("The value is not a whole number."),
            fix=_("Enter a whole number, or leave the field empty for no limit."),
        )
    return int(text)


def parse_optional_moment(field: str, text: str) -> datetime | None:
    """Parse a moment from the form, by default in UTC; None if empty."""
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidValue(
            field,
            _("The time is not valid. Example: 2026-12-01T09:00."),
            fix=_("Select a time or leave the field empty."),
        ) from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


@operator_page("discount", methods=SAFE_OR_POST)
def end_agreement(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then end a code, a discount or a minimum."""
    with staff_scope():
        name, lines, act = _find_agreement(pk)

    def do(why: str) -> str:
        act(request)
        return _("{name} ended.").format(name=name)

    step = Confirmation(
        title=_("End {name}?").format(name=name), verb=_("End"), back=reverse("ops-discounts"), lines=lines, danger=True
    )
    return confirm_action(request, step, do)


def _find_agreement(pk: str) -> tuple[str, tuple[str, ...], Any]:
    """Return its name, the consequences of ending it, and the function that ends it."""
    if pk.startswith("cam_"):
        code = campaigns.get_campaign(pk)
        words = _("The code can no longer be redeemed. Existing discounts stay valid.")
        return code.code, (words,), lambda of: campaigns.end_campaign(code, actor=of.actor, now=of.now)
    if pk.startswith("min_"):
        agreed = minimums.find_minimum(pk)
        words = _("The minimum ends immediately and applies to this month up to now.")
        return (
            _("minimum spend of {tenant_name}").format(tenant_name=agreed.tenant.name),
            (words,),
            lambda of: minimums.end_minimum(agreed, at=of.now, actor=of.actor, now=of.now),
        )
    if not pk.startswith("dis_"):
        raise ObjectNotFound(_("The discount was not found."), fix=_("Select it from the list of discounts."))
    given = tenant_discounts.get_discount(pk)
    words = _("The discount still applies to this month, but not to later months.")
    return (
        _("{given_name} of {tenant_name}").format(given_name=given.name, tenant_name=given.tenant.name),
        (words,),
        lambda of: tenant_discounts.end_discount(given, actor=of.actor, now=of.now),
    )
