"""Billing details of a tenant: the name, address and VAT number for its next invoices."""

from django.db import models
from django.db.models import Q

from billing.domain.parties import MAX_VAT_NUMBER_LENGTH, InvoiceParty
from billing.models.invoices import MAX_PO_NUMBER_LENGTH
from tenants.models import Tenant

MAX_LENGTH = 120


class BillingDetails(models.Model):
    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    name = models.CharField(max_length=MAX_LENGTH)
    street = models.CharField(max_length=MAX_LENGTH)
    address_line_2 = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    postcode = models.CharField(max_length=20, blank=True, default="")
    city = models.CharField(max_length=MAX_LENGTH)
    country = models.CharField(max_length=2)
    vat_id = models.CharField(max_length=MAX_VAT_NUMBER_LENGTH, blank=True, default="")
    email = models.EmailField(blank=True, default="")
    language = models.CharField(max_length=2, default="en", db_default="en")  # of invoices and other documents
    # The tenant's own order number, stated on its invoices.
    po_number = models.CharField(max_length=MAX_PO_NUMBER_LENGTH, blank=True, default="", db_default="")
    emails_enabled = models.BooleanField(default=True, db_default=True)  # whether invoices are e-mailed
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(language__in=["en", "de"]), name="billing_language_known")]

    def __str__(self) -> str:
        return self.name

    @property
    def party(self) -> InvoiceParty:
        return InvoiceParty(
            name=self.name,
            street=self.street,
            address_line_2=self.address_line_2,
            postcode=self.postcode,
            city=self.city,
            country=self.country,
            vat_id=self.vat_id,
            email=self.email,
            language=self.language,
        )
