"""Billing details that a tenant sets for its next invoices."""

from dataclasses import fields
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.document_formats import Language
from billing.domain.parties import InvalidVatNumber, InvoiceParty, normalize_vat_number
from billing.models import BillingDetails
from billing.models.billing_details import MAX_LENGTH
from billing.models.invoices import MAX_PO_NUMBER_LENGTH
from billing.services.funds.wallets import tax_reserves
from billing.services.invoicing import drafts
from billing.services.periods import billing_periods
from billing.services.tax import tax_determination
from tenants.domain.single_line_text import has_control
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue

REQUIRED_FIELDS = ("name", "street", "city", "country")
MAX_LENGTHS = {"postcode": 20, "country": 2, "email": 254}


def details_version(tenant: Tenant) -> int:
    """Return the version of the billing details; 0 if they were never set."""
    return BillingDetails.objects.filter(tenant=tenant).values_list("version", flat=True).first() or 0


def gets_invoice_emails(tenant: Tenant) -> bool:
    """Return whether a tenant gets invoice e-mails; the default is yes."""
    emails_enabled = BillingDetails.objects.filter(tenant=tenant).values_list("emails_enabled", flat=True).first()
    return emails_enabled is not False


@transaction.atomic
def set_billing_details(
    tenant: Tenant,
    *,
    party: InvoiceParty,
    actor: Actor,
    now: datetime,
    emails_enabled: bool | None = None,
    po_number: str | None = None,
) -> BillingDetails:
    """Set a tenant's billing details; drafts change at once, final invoices never.

    `emails_enabled` turns invoice e-mails on or off, `po_number` is the tenant's own order number; None leaves
    them as they are.

    Raises InvalidValue, naming the field, for missing or impossible values, and if a prepaid tenant would owe
    more tax than its wallet holds.
    """
    party = _validated(party)
    # No month of the tenant closes meanwhile, so its tax matches its customer.
    billing_periods.take_tenant_billing_locks([tenant.pk])
    BillingDetails.objects.get_or_create(tenant=tenant, defaults={"version": 0, "changed_at": now})
    row = BillingDetails.objects.select_for_update().get(tenant=tenant)
    wanted = row.emails_enabled if emails_enabled is None else emails_enabled
    order = row.po_number if po_number is None else _checked_po_number(po_number)
    if row.party == party and row.emails_enabled == wanted and row.po_number == order:
        return row
    before, taxed = row.party.as_dict(), tax_determination.get_tax_status(tenant)
    for name, value in party.as_dict().items():
        setattr(row, name, value)
    had_emails, row.emails_enabled = row.emails_enabled, wanted
    had_order, row.po_number = row.po_number, order
    row.version, row.changed_at = row.version + 1, now
    row.save()
    tax_reserves.reserve_additional_tax(tenant, taxed, tax_determination.get_tax_status(tenant), now=now)
    changed = {name: value for name, value in party.as_dict().items() if before[name] != value}
    if had_emails != wanted:
        changed["emails_enabled"] = "yes" if wanted else "no"
    if had_order != order:
        changed["po_number"] = order
    audit.record("billing.details", tenant, f"billing details of {tenant.name}", actor=actor, now=now, **changed)
    drafts.refresh_drafts(tenant, now=now)
    return row


def po_number_of(tenant: Tenant) -> str:
    """Return the tenant's own order number on its next invoices; empty if it has none."""
    return tax_determination.get_po_numbers([tenant]).get(tenant.pk, "")


def _checked_po_number(text: str) -> str:
    number = " ".join(text.split())
    if len(number) > MAX_PO_NUMBER_LENGTH or has_control(number):
        raise InvalidValue(
            "po_number",
            f"An order number has at most {MAX_PO_NUMBER_LENGTH} characters, none of them invisible.",
            fix="Shorten the value.",
        )
    return number


def _validated(party: InvoiceParty) -> InvoiceParty:
    texts = {each.name: " ".join(getattr(party, each.name).split()) for each in fields(party)}
    for name, text in texts.items():
        if has_control(text):
            raise InvalidValue(name, "The value contains an invisible character.", fix="Enter it again.")
        if len(text) > MAX_LENGTHS.get(name, MAX_LENGTH):
            raise InvalidValue(
                name,
                f"The value is longer than {MAX_LENGTHS.get(name, MAX_LENGTH)} characters.",
                fix="Shorten the value.",
            )
        if name in REQUIRED_FIELDS and not text:
            raise InvalidValue(name, "This field is required on invoices.", fix="Fill in the field.")
    texts["country"] = texts["country"].upper()
    if texts["country"] not in COUNTRY_NAMES:
        raise InvalidValue(
            "country", "The country was not found.", fix="Select a country, or send its two-letter code."
        )
    texts["language"] = texts["language"] or Language.ENGLISH.value
    if texts["language"] not in set(Language):
        raise InvalidValue("language", "Documents are available in English and German.", fix="Send en or de.")
    if texts["vat_id"]:
        texts["vat_id"] = _validated_vat_number(texts)
    if texts["email"]:
        try:
            validate_email(texts["email"])
        except ValidationError:
            raise InvalidValue(
                "email", "The value is not an e-mail address.", fix="Correct it or leave it empty."
            ) from None
    return InvoiceParty(**texts)


def _validated_vat_number(texts: dict[str, str]) -> str:
    try:
        return normalize_vat_number(texts["vat_id"], texts["country"])
    except InvalidVatNumber as error:
        raise InvalidValue(
            "vat_id", str(error), fix="Correct it or leave it empty; VAT is then charged as for consumers."
        ) from error
