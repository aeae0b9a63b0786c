"""Content of electronic invoices and credit notes, as business terms of EN 16931."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from billing.domain import e_invoices
from billing.domain.e_invoices import TaxCode
from billing.domain.money import exponent_of, format_fixed_point
from billing.domain.parties import BankAccount
from billing.domain.tax import TREATMENT_TEXTS, TaxTreatment
from billing.models import BalanceDraw, CreditNote, GrantDraw, Invoice, InvoiceStatus, TaxCategory
from billing.services.documents.e_invoices.invoice_parties import (
    XRECHNUNG,
    EInvoiceImpossible,
    Terms,
    buyer_terms,
    invoice_parties,
    seller_terms,
)
from billing.services.documents.line_names import NamedLine, name_lines
from billing.services.tax import exchange_rates

SECOND = timedelta(seconds=1)


def invoice_terms(invoice: Invoice, profile: str) -> Terms:
    """Return the content of a final invoice whose period is prefetched.

    Call in the tenant's RLS scope. Raises EInvoiceImpossible if a party lacks what the profile requires.
    """
    if invoice.status == InvoiceStatus.REPORTED:
        raise EInvoiceImpossible(
            "This is a cost report, not an invoice.", fix="Download it as PDF or CSV; nobody has to pay it."
        )
    if invoice.number is None or invoice.finalized_at is None:
        raise EInvoiceImpossible(
            "This invoice is a draft.", fix="Close its month first; a draft changes until its month is closed."
        )
    currency, zone = invoice.currency, ZoneInfo(invoice.period.time_zone)
    shared = _shared_terms(invoice, profile, str(invoice), invoice.finalized_at, e_invoices.INVOICE_CODE)
    codes = _tax_codes(invoice)
    named = name_lines(invoice)
    lines = [_invoice_line(each, codes[each.line.tax_category], currency) for each in named]
    settled = sum(
        minor
        for draws in (GrantDraw.objects, BalanceDraw.objects)
        for minor in draws.filter(invoice=invoice).values_list("minor", flat=True)
    )
    span = invoice.period.span
    taxes = _merged((codes[each.line.tax_category], each.line.minor, each.line.tax_minor) for each in named)
    return {
        **shared,
        "BT-73": span.lower.astimezone(zone).date(),
        "BT-74": _last_day(invoice),
        **({"BT-9": invoice.due_at.astimezone(zone).date()} if invoice.due_at else {"BT-20": "Payable on receipt"}),
        **_payment_means(invoice),
        "BT-83": invoice.payment_reference,
        "BG-25": lines,
        **_totals(taxes, currency, paid=settled),
        **_converted_tax(invoice, invoice.tax),
    }


def credit_note_terms(note: CreditNote, profile: str) -> Terms:
    """Return the content of a credit note whose invoice and lines are prefetched.

    Call in the tenant's RLS scope. Raises EInvoiceImpossible as for its invoice.
    """
    invoice, currency = note.invoice, note.currency
    shared = _shared_terms(invoice, profile, str(note), note.issued_at, e_invoices.CREDIT_NOTE_CODE)
    codes = _tax_codes(invoice)
    given = {each.line_id: each for each in note.lines.all()}
    credited = [(each, given[each.line.pk]) for each in name_lines(invoice) if each.line.pk in given]
    taxes = _merged((codes[each.line.tax_category], part.minor, part.tax_minor) for each, part in credited)
    zone = ZoneInfo(invoice.period.time_zone)
    return {
        **shared,
        "BG-1": [{"BT-22": words} for words in (note.reason, _treatment_text(invoice)) if words],
        "BG-3": [{"BT-25": str(invoice), **_invoice_day(invoice, zone)}],
        "BT-20": "Reduces the amount due, or is added to your balance or credits",
        "BT-81": e_invoices.CLEARING_CODE,
        "BG-25": [_single_line(each, codes[each.line.tax_category], part.minor, currency) for each, part in credited],
        **_totals(taxes, currency, paid=0),
        **_converted_tax(invoice, note.tax),
    }


def _payment_means(invoice: Invoice) -> Terms:
    """Return how it is paid: automatically, or by transfer to the supplier's account."""
    if invoice.collected:
        return {"BT-81": e_invoices.MUTUAL_CODE, "BT-82": "Collected automatically"}
    if not invoice.bank_account:
        return {"BT-81": e_invoices.MUTUAL_CODE, "BT-82": "Bank transfer"}
    account = BankAccount(**invoice.bank_account)
    bank = {"BT-86": account.bic} if account.bic else {}
    return {"BT-81": e_invoices.CREDIT_TRANSFER_CODE, "BT-84": account.iban, "BT-85": account.holder, **bank}


def _last_day(invoice: Invoice) -> date:
    """Return the last day of the month, on which its supply counts."""
    day: date = (invoice.period.span.upper - SECOND).astimezone(ZoneInfo(invoice.period.time_zone)).date()
    return day


def _treatment_text(invoice: Invoice) -> str:
    return TREATMENT_TEXTS[TaxTreatment(invoice.treatment)]


def _invoice_day(invoice: Invoice, zone: ZoneInfo) -> Terms:
    return {"BT-26": invoice.finalized_at.astimezone(zone).date()} if invoice.finalized_at else {}


def _shared_terms(invoice: Invoice, profile: str, number: str, issued: datetime, kind: str) -> Terms:
    supplier, customer = invoice_parties(invoice, profile)
    day: date = issued.astimezone(ZoneInfo(invoice.period.time_zone)).date()
    words = _treatment_text(invoice)
    return {
        "BT-1": number,
        "BT-2": day,
        "BT-3": kind,
        "BT-5": invoice.currency,
        "BT-10": invoice.po_number or invoice.tenant_id,
        **({"BT-13": invoice.po_number} if invoice.po_number else {}),
        "BT-72": _last_day(invoice),
        "BT-23": e_invoices.BUSINESS_PROCESS if profile == XRECHNUNG else "",
        "BT-24": e_invoices.GUIDELINES["factur-x"],
        "BG-4": seller_terms(supplier, taxed_here=invoice.treatment != TaxTreatment.OUTSIDE),
        "BG-7": buyer_terms(customer, invoice),
        **({"BG-1": [{"BT-22": words}]} if words else {}),
    }


def _tax_codes(invoice: Invoice) -> Mapping[str, TaxCode]:
    """Return the tax code of each category on the invoice."""
    treatment = TaxTreatment(invoice.treatment)
    if treatment == TaxTreatment.NOT_CONFIGURED:
        return {}
    rates = dict(invoice.taxes.values_list("category", "rate_bp"))
    return {each: e_invoices.tax_code(treatment, each, rates.get(each)) for each in TaxCategory.values}


def _invoice_line(each: NamedLine, code: TaxCode, currency: str) -> Terms:
    """Return a line with quantity and price, and its reductions as allowance."""
    line = each.line
    quantity = each.quantity
    if quantity.unit_seconds is None or quantity.nano_per_hour is None:
        return _single_line(each, code, line.minor, currency)
    price = e_invoices.base_price(quantity.nano_per_hour)
    listed = e_invoices.usage_minor(quantity.unit_seconds, quantity.nano_per_hour, exponent_of(currency))
    difference = [{"amount": _amount(abs(listed - line.minor), currency), "reason": _reason(each)}]
    group = {"BG-27": difference} if listed > line.minor else {"BG-28": difference} if listed < line.minor else {}
    return {
        **_line_terms(each, code),
        "BT-129": str(quantity.unit_seconds),
        "BT-130": e_invoices.SECOND_UNIT if quantity.unit == "h" else e_invoices.ONE_UNIT,
        "BT-131": _amount(line.minor, currency),
        "BT-146": price.price,
        "BT-149": price.quantity,
        **group,
    }


def _single_line(each: NamedLine, code: TaxCode, minor: int, currency: str) -> Terms:
    amount = _amount(minor, currency)
    more = {"BT-129": "1", "BT-130": e_invoices.ONE_UNIT, "BT-131": amount, "BT-146": amount}
    return {**_line_terms(each, code), **more}


def _line_terms(each: NamedLine, code: TaxCode) -> Terms:
    return {
        "BT-126": str(each.line.n),
        "BT-153": each.title,
        "BT-154": ", ".join(filter(None, (each.project, each.all_terms))),
        "BT-151": code.code,
        **({"BT-152": code.rate} if code.rate else {}),
    }


def _reason(each: NamedLine) -> str:
    return ", ".join(each.reductions) or "Agreed price"


def _merged(parts: Iterable[tuple[TaxCode, int, int]]) -> dict[TaxCode, tuple[int, int]]:
    """Return amount and tax by tax code; two categories may have the same."""
    found = dict[TaxCode, tuple[int, int]]()
    for code, net, tax in parts:
        before = found.get(code, (0, 0))
        found[code] = before[0] + net, before[1] + tax
    return found


def _totals(taxes: Mapping[TaxCode, tuple[int, int]], currency: str, *, paid: int) -> Terms:
    net, tax = (sum(parts[n] for parts in taxes.values()) for n in (0, 1))
    return {
        "BG-23": [
            {
                "BT-116": _amount(part, currency),
                "BT-117": _amount(owed, currency),
                "BT-118": code.code,
                "BT-119": code.rate or "0",
                **({"BT-120": code.reason} if code.reason else {}),
                **({"BT-121": code.reason_code} if code.reason_code else {}),
            }
            for code, (part, owed) in sorted(taxes.items())
        ],
        "BT-106": _amount(net, currency),
        "BT-109": _amount(net, currency),
        "BT-110": _amount(tax, currency),
        "BT-112": _amount(net + tax, currency),
        **({"BT-113": _amount(paid, currency)} if paid else {}),
        "BT-115": _amount(net + tax - paid, currency),
    }


def _converted_tax(invoice: Invoice, tax: int) -> Terms:
    """Return the tax in the supplier's currency, if the invoice is in another one."""
    found = exchange_rates.converted_tax(invoice, tax)
    return {"BT-6": found.rate.own, "BT-111": _amount(found.minor, found.rate.own)} if found else {}


def _amount(minor: int, currency: str) -> str:
    return format_fixed_point(minor, exponent_of(currency))
