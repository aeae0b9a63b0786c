"""Lists of codes, discounts and minimums: their filters, sums and CSV columns."""

from django.utils.translation import gettext_lazy

from billing.models import Campaign, Discount, Minimum
from billing.services.agreements.discounts import tenant_discounts
from web.portal.operators.list_specs import ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time


def _campaign_cells(each: Campaign) -> tuple[object, ...]:
    return (
        *(each.pk, each.code, each.name, csv_time(each.since), csv_time(each.until), each.months or ""),
        *(each.most or "", each.redeemed, *_size_cells(each), each.created_by, csv_time(each.created_at)),
    )


def _discount_cells(each: Discount) -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, each.name, each.campaign.code if each.campaign else ""),
        *(each.first_month, each.last_month or "", *_size_cells(each), each.given_by, csv_time(each.given_at)),
    )


def _minimum_cells(each: Minimum) -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, csv_time(each.valid.lower), csv_time(each.valid.upper)),
        *(each.currency, csv_money(each.minor, each.currency), each.agreed_by, csv_time(each.agreed_at)),
    )


def _size_cells(each: Campaign | Discount) -> tuple[str, str, str]:
    """Return percent, currency and amount of a discount, which has either."""
    if each.minor is None:
        return tenant_discounts.format_discount(each).removesuffix(" %"), "", ""
    return "", each.currency, csv_money(each.minor, each.currency)


CODE_LIST = OperatorList(
    name="codes",
    heads=("campaign code name since until months most redeemed percent currency amount created_by created_at"),
    cells=_campaign_cells,
    at="created_at",
    search=("code", "name", "pk"),
)
DISCOUNT_LIST = OperatorList(
    name="discounts",
    heads=("discount tenant tenant_name name code first_month last_month percent currency amount given_by given_at"),
    cells=_discount_cells,
    tenant="tenant_id",
    at="given_at",
    search=("name", "campaign__code", "pk"),
    sums=(ListSum(gettext_lazy("Amounts off"), "minor"),),
)
MINIMUM_LIST = OperatorList(
    name="minimums",
    heads="minimum tenant tenant_name since until currency amount agreed_by agreed_at",
    cells=_minimum_cells,
    tenant="tenant_id",
    at="agreed_at",
    search=("tenant__name", "pk"),
    sums=(ListSum(gettext_lazy("Minimum spend per month"), "minor"),),
)
