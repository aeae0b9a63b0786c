"""Billing details page: the tenant's name and address on invoices, and its tax treatment."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain import tax
from billing.domain.countries import COUNTRY_NAMES
from billing.domain.document_formats import LANGUAGE_NAMES
from billing.domain.parties import InvoiceParty
from billing.services.invoicing import billing_details
from billing.services.tax import tax_determination
from tenants.services.authentication import require
from tenants.services.errors import InvalidValue, StaleVersion
from web.portal import api_examples
from web.portal.invoices.invoice_pages import may_pay
from web.portal.page_context import GET_OR_POST, PageRequest, tenant_page

PARTY_FIELDS = ("name", "street", "address_line_2", "postcode", "city", "country", "vat_id", "email", "language")
MAX_FIELD_LENGTH = 254
EMAIL_CHOICES = ({"value": "yes", "label": gettext_lazy("On")}, {"value": "no", "label": gettext_lazy("Off")})
LANGUAGES = [(each.value, name) for each, name in LANGUAGE_NAMES.items()]
COUNTRIES = sorted(COUNTRY_NAMES.items(), key=lambda entry: entry[1].replace("Å", "A"))


@tenant_page("billing.read", methods=GET_OR_POST)
def edit_billing_details(request: PageRequest) -> HttpResponse:
    """Show the tenant's billing details; a POST changes them."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    details = tax_determination.get_customer(request.tenant).as_dict()
    values = {name: details[name] for name in PARTY_FIELDS}
    values["po_number"] = billing_details.po_number_of(request.tenant)
    version, wrong = billing_details.details_version(request.tenant), dict[str, str]()
    if request.method == "POST":
        require(request.roles, "billing.write", ())
        values = {name: request.POST.get(name, "")[:MAX_FIELD_LENGTH] for name in (*PARTY_FIELDS, "po_number")}
        party = InvoiceParty(**{name: values[name] for name in PARTY_FIELDS})
        try:
            return _save(request, party, po_number=values["po_number"], shown_version=request.POST.get("seen", ""))
        except InvalidValue as error:
            wrong = {str(error.field): f"{error.detail} {error.fix.text}"}
        except StaleVersion as stale:
            messages.warning(request, f"{stale.detail} {stale.fix.text}")
    page = build_billing_details_page(request, values, wrong, version)
    return render(request, "billing_details/billing_details.html", {"page": page}, status=400 if wrong else 200)


@dataclass(frozen=True, slots=True)
class BillingDetailsPage:
    """The form with a tenant's billing details, and how it is taxed at present."""

    values: dict[str, str]
    wrong: dict[str, str]
    shown_version: int  # the version that the form was filled from
    emails_enabled: str
    may_tell: bool
    supplier: InvoiceParty | None
    tax_status: tax.TaxStatus
    rate_bp: int | None

    email_choices = EMAIL_CHOICES
    countries = COUNTRIES
    languages = LANGUAGES

    @property
    def per_cent(self) -> str:
        return f"{tax.format_rate_percent(self.rate_bp)} %" if self.rate_bp is not None else ""

    @property
    def tax_text(self) -> str:
        """Return how the tenant is taxed."""
        if self.tax_status.treatment not in tax.TAXED_TREATMENTS:
            return tax.TREATMENT_TEXTS[self.tax_status.treatment]
        country = COUNTRY_NAMES.get(self.tax_status.jurisdiction, "")
        return (
            _("VAT of {country} is added to your charges.").format(country=country)
            if self.per_cent
            else _("VAT of {country} will be added.").format(country=country)
        )

    @property
    def call_put(self) -> str:
        return api_examples.curl_put("/billing-details", self.values)


def build_billing_details_page(
    request: PageRequest, values: dict[str, str], wrong: dict[str, str], version: int
) -> BillingDetailsPage:
    """Read how a tenant is taxed, beside what its form shows."""
    tax_status = tax_determination.get_tax_status(request.tenant)
    gets_emails = "yes" if billing_details.gets_invoice_emails(request.tenant) else "no"
    return BillingDetailsPage(
        values=values,
        wrong=wrong,
        shown_version=version,
        emails_enabled=request.POST.get("emails_enabled") or gets_emails,
        may_tell=may_pay(request),
        supplier=tax_determination.get_supplier(),
        tax_status=tax_status,
        rate_bp=tax_determination.standard_rate_on(tax_status, request.now),
    )


def _save(request: PageRequest, party: InvoiceParty, *, po_number: str, shown_version: str) -> HttpResponse:
    if shown_version != str(billing_details.details_version(request.tenant)):
        raise StaleVersion(
            _("The billing details were changed since you opened this page."),
            fix=_("Check the current details and save again."),
        )
    wants = request.POST.get("emails_enabled")
    emails_enabled = wants == "yes" if wants in ("yes", "no") else None
    billing_details.set_billing_details(
        request.tenant,
        party=party,
        actor=request.actor,
        now=request.now,
        emails_enabled=emails_enabled,
        po_number=po_number,
    )
    messages.success(
        request, _("Billing details saved. They apply to your next invoices; final invoices do not change.")
    )
    return redirect("billing-details")
