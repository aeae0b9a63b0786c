"""VAT by country, rate and month, for domestic, One Stop Shop and recapitulative returns.

An invoice counts in the month of its supply, a credit note in the month it was issued. A write-off lowers
net and tax in its month, and money that comes in later raises them again in the month of its receipt.
Requires staff scope.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.tax import TaxTreatment
from billing.services.reports.accounting import bad_debts
from billing.services.tax import exchange_rates, tax_determination
from ports.postgres.sql_statements import query_rows

VAT_HEADS = (
    "month", "treatment", "country", "category", "rate_percent", "currency", "tenant", "tenant_name", "vat_id", "net",
    "tax", "invoices", "credit_notes", "own_currency", "net_own", "tax_own", "net_bad_debts", "tax_bad_debts",
)  # fmt: skip
RETURN_NAMES = {
    TaxTreatment.DOMESTIC: "Domestic return",
    TaxTreatment.DESTINATION: "One Stop Shop",
    TaxTreatment.REVERSE_CHARGE: "Recapitulative statement",
    TaxTreatment.OUTSIDE: "Not taxable here",
}


@dataclass(frozen=True, slots=True)
class VatLine:
    """Amounts of a month of one treatment, country, rate, currency and customer; minor units."""

    month: str
    treatment: str
    country: str
    category: str
    rate_bp: int | None
    currency: str
    tenant_id: str
    tenant: str
    vat_id: str
    net: int
    tax: int
    invoices: int
    credit_notes: int
    own: str = ""  # the supplier's currency
    net_own: int | None = None  # None: there is no exchange rate for the month
    tax_own: int | None = None
    net_bad_debts: int = 0  # of net: written off, less what came in since
    tax_bad_debts: int = 0

    @property
    def return_name(self) -> str:
        """The return that it belongs into."""
        return RETURN_NAMES[TaxTreatment(self.treatment)]

    @property
    def country_name(self) -> str:
        return COUNTRY_NAMES.get(self.country, self.country)


def vat_lines(first: str, last: str, *, tenant: str = "") -> list[VatLine]:
    """Return the lines of months such as `2026-10`, both included, in the supplier's currency besides."""
    own, rates = tax_determination.supplier_currency(), dict[tuple[str, str], int | None]()
    billed = [VatLine(*row) for row in query_rows("billing/reports/vat", first=first, last=last, tenant=tenant)]
    lines = _summed([*billed, *_bad_debt_lines(first, last, tenant)], _line_key)
    for line in lines:
        if (key := (line.currency, line.month)) not in rates:
            rates[key] = _month_rate(*key, own)
    return [_converted(line, own, rates[line.currency, line.month]) for line in lines]


def sum_by_return(lines: Iterable[VatLine]) -> list[VatLine]:
    """Return the lines of each return, country, rate and currency, over all months and customers."""
    return _summed(lines, lambda line: (line.treatment, line.country, line.category, line.rate_bp or 0, line.currency))


def sum_by_customer(lines: Iterable[VatLine]) -> list[VatLine]:
    """Return what customers in other member states owe the tax of, by VAT number."""
    owed = (line for line in lines if line.treatment == TaxTreatment.REVERSE_CHARGE)
    return _summed(owed, lambda line: (line.country, line.vat_id, line.tenant_id, line.currency))


def _bad_debt_lines(first: str, last: str, tenant: str) -> Iterator[VatLine]:
    for each in bad_debts.bad_debts(first, last, tenant=tenant):
        yield VatLine(
            month=each.month,
            treatment=each.treatment,
            country=each.country,
            category=each.category,
            rate_bp=each.rate_bp,
            currency=each.currency,
            tenant_id=each.tenant_id,
            tenant=each.tenant,
            vat_id=each.vat_id,
            net=each.net,
            tax=each.tax,
            invoices=0,
            credit_notes=0,
            net_bad_debts=each.net,
            tax_bad_debts=each.tax,
        )


def _line_key(line: VatLine) -> tuple[object, ...]:
    place = line.month, line.treatment, line.country, line.category, line.rate_bp or 0, line.currency
    return *place, line.tenant, line.tenant_id, line.vat_id


def _summed(lines: Iterable[VatLine], key: Callable[[VatLine], tuple[object, ...]]) -> list[VatLine]:
    found = dict[tuple[object, ...], VatLine]()
    for line in lines:
        before = found.get(key(line))
        found[key(line)] = _added(before, line) if before else line
    return [found[each] for each in sorted(found, key=str)]


def _added(a: VatLine, b: VatLine) -> VatLine:
    return replace(
        a,
        net=a.net + b.net,
        tax=a.tax + b.tax,
        invoices=a.invoices + b.invoices,
        credit_notes=a.credit_notes + b.credit_notes,
        net_own=None if a.net_own is None or b.net_own is None else a.net_own + b.net_own,
        tax_own=None if a.tax_own is None or b.tax_own is None else a.tax_own + b.tax_own,
        net_bad_debts=a.net_bad_debts + b.net_bad_debts,
        tax_bad_debts=a.tax_bad_debts + b.tax_bad_debts,
    )


def _month_rate(currency: str, month: str, own: str) -> int | None:
    """Return the rate of the last day of a month, in 10⁻⁶."""
    if currency == own:
        return int(10**exchange_rates.RATE_PLACES)
    following = (date.fromisoformat(f"{month}-01") + timedelta(days=31)).replace(day=1)
    found = exchange_rates.rate_on(currency, own, following - timedelta(days=1))
    return int(found.rate) if found else None


def _converted(line: VatLine, own: str, rate: int | None) -> VatLine:
    if rate is None:
        return replace(line, own=own)
    net, tax = (exchange_rates.convert(minor, line.currency, own, rate) for minor in (line.net, line.tax))
    return replace(line, own=own, net_own=net, tax_own=tax)
