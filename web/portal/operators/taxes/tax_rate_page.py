"""Tax rates page: the rate of each country and category, from which day on."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.money import EXPONENTS, format_fixed_point
from billing.domain.parties import InvoiceParty
from billing.domain.tax import EU_MEMBERS, format_rate_percent
from billing.models import ExchangeRate, TaxCategory, TaxRate
from billing.services.tax import exchange_rates, tax_determination, tax_rates
from tenants.services.errors import InvalidValue
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, form_page, operator_page

PER_CENT = re.compile(r"(?P<whole>[0-9]{1,3})(?:\.(?P<part>[0-9]{1,2}))?")


def _rate_cells(each: TaxRate) -> tuple[object, ...]:
    return (
        *(each.pk, each.jurisdiction, COUNTRY_NAMES[each.jurisdiction], each.category),
        *(format_rate_percent(each.rate_bp), csv_time(each.valid.lower), csv_time(each.valid.upper)),
        *(each.created_by, csv_time(each.created_at)),
    )


def _exchange_rate_cells(each: ExchangeRate) -> tuple[object, ...]:
    return (
        *(each.pk, each.currency, each.own, csv_time(each.day)),
        *(format_fixed_point(each.rate, exchange_rates.RATE_PLACES), each.source, each.created_by),
    )


TAX_RATE_LIST = OperatorList(
    name="tax-rates",
    heads="tax_rate country country_name category percent since until added_by added_at",
    cells=_rate_cells,
    at="valid__lower",
    by_day=True,
    search=("jurisdiction", "category", "created_by", "pk"),
)
EXCHANGE_RATE_LIST = OperatorList(
    name="exchange-rates",
    heads="exchange_rate currency own_currency day rate source added_by",
    cells=_exchange_rate_cells,
    at="day",
    by_day=True,
    search=("currency", "source"),
)


@operator_page("taxes", methods=SAFE_OR_POST)
def list_tax_rates(request: OperatorRequest) -> Any:
    """List every tax rate; a POST adds one."""
    if wants_csv(request):
        lists = read_lists(request, TAX_RATE_LIST, EXCHANGE_RATE_LIST)
        return lists.csv((TAX_RATE_LIST, _tax_rates), (EXCHANGE_RATE_LIST, _exchange_rates))
    return form_page(
        request,
        "operators/taxes/tax_rates.html",
        lambda _: build_tax_rate_page(request),
        lambda: _add_exchange_rate(request) if "currency" in request.POST else _publish_rate(request),
        back=reverse("ops-tax-rates"),
    )


@dataclass(frozen=True, slots=True)
class ExchangeRateRow:
    """An exchange rate with its six decimals."""

    row: ExchangeRate
    rate: str


@dataclass(frozen=True, slots=True)
class TaxRatePage:
    """Every tax rate, the countries that lack one, and the form that adds one."""

    rates: FilteredList
    exchange_rates: FilteredList
    own_currency: str
    supplier: InvoiceParty | None
    missing: list[str]
    chosen: str

    countries = sorted(COUNTRY_NAMES.items(), key=lambda entry: entry[1])
    categories = TaxCategory.choices
    currencies = sorted(EXPONENTS)

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(_("Tax rates"), "ops/tax-rates", limit=API_PAGE_SIZE),
            operator_api_call(_("Exchange rates"), "ops/exchange-rates", sort="-id", limit=API_PAGE_SIZE),
        ]


def build_tax_rate_page(request: OperatorRequest) -> TaxRatePage:
    """Read every tax rate, by country, category and day."""
    supplier, today = tax_determination.get_supplier(), request.now.date()
    lists, rows = read_lists(request, TAX_RATE_LIST, EXCHANGE_RATE_LIST), _tax_rates()
    listing, exchanged = lists.read(TAX_RATE_LIST, rows), lists.read(EXCHANGE_RATE_LIST, _exchange_rates())
    return TaxRatePage(
        rates=listing.with_rows(
            [
                {
                    "rate": row,
                    "country": COUNTRY_NAMES[row.jurisdiction],
                    "per_cent": format_rate_percent(row.rate_bp),
                    "now": _rate_applies(row, today),
                    "ahead": row.valid.lower > today,
                }
                for row in listing.rows
            ]
        ),
        exchange_rates=exchanged.with_rows(
            [
                ExchangeRateRow(each, format_fixed_point(each.rate, exchange_rates.RATE_PLACES))
                for each in exchanged.rows
            ]
        ),
        own_currency=tax_determination.supplier_currency(),
        supplier=supplier,
        missing=_countries_without_rate(supplier, rows, today),
        chosen=request.POST.get("jurisdiction", supplier.country if supplier else ""),
    )


def _tax_rates() -> list[TaxRate]:
    """Return every rate by country, category and day."""
    return sorted(
        TaxRate.objects.all(),
        key=lambda row: (COUNTRY_NAMES[row.jurisdiction], row.category, -row.valid.lower.toordinal()),
    )


def _exchange_rates() -> QuerySet[ExchangeRate]:
    return ExchangeRate.objects.order_by("-pk")


def _countries_without_rate(supplier: InvoiceParty | None, rows: list[TaxRate], today: date) -> list[str]:
    """Return the countries without a rate, whose invoices cannot be finalized.

    A supplier in the EU needs the rates of all its member states.
    """
    if supplier is None:
        return []
    known = {row.jurisdiction for row in rows if row.category == TaxCategory.STANDARD and _rate_applies(row, today)}
    owed = EU_MEMBERS if supplier.country in EU_MEMBERS else {supplier.country}
    return sorted(COUNTRY_NAMES[country] for country in owed - known)


def _rate_applies(row: TaxRate, day: date) -> bool:
    return bool(row.valid.lower <= day and (row.valid.upper is None or day < row.valid.upper))


def _publish_rate(request: OperatorRequest) -> str:
    rate = tax_rates.publish_tax_rate(
        jurisdiction=request.POST.get("jurisdiction", ""),
        category=request.POST.get("category", ""),
        rate_bp=_parse_basis_points(request.POST.get("rate", "")),
        since=_parse_day(request.POST.get("since", "")),
        actor=request.actor,
        now=request.now,
    )
    country = COUNTRY_NAMES[rate.jurisdiction]
    return _("{country}: {rate_bp} % from {valid_lower:%d %b %Y}.").format(
        country=country, rate_bp=format_rate_percent(rate.rate_bp), valid_lower=rate.valid.lower
    )


def _add_exchange_rate(request: OperatorRequest) -> str:
    made = exchange_rates.add_exchange_rate(
        currency=request.POST.get("currency", ""),
        day=_parse_day(request.POST.get("day", ""), "day"),
        rate=exchange_rates.parse_rate(request.POST.get("exchange_rate", "")),
        source=request.POST.get("source", ""),
        actor=request.actor,
        now=request.now,
    )
    return _("{currency} on {day:%d %b %Y}: {rate} {own}.").format(
        currency=made.currency,
        day=made.day,
        rate=format_fixed_point(made.rate, exchange_rates.RATE_PLACES),
        own=made.own,
    )


def _parse_basis_points(text: str) -> int:
    """Parse a percentage such as 19 or 7.7 as basis points."""
    if not (found := PER_CENT.fullmatch(text.strip())):
        raise InvalidValue(
            "rate",
            _("The rate is not a number such as 19 or 7.7 with at most two decimals."),
            fix=_("Enter the rate again."),
        )
    return int(found["whole"] + (found["part"] or "").ljust(2, "0"))


def _parse_day(text: str, field: str = "since") -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidValue(field, _("The date is not valid. Example: 2026-12-01."), fix=_("Select the day.")) from None
