"""Who a tenant is on paper: the name, address and VAT number that its next invoices are made out to."""

from django.db import models

from billing.domain.parties import LONGEST_NUMBER, Party
from tenants.models import Tenant

LONGEST = 120


class BillingDetails(models.Model):
    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    name = models.CharField(max_length=LONGEST)
    street = models.CharField(max_length=LONGEST)
    extra = models.CharField(max_length=LONGEST, blank=True, default="")
    postcode = models.CharField(max_length=20, blank=True, default="")
    city = models.CharField(max_length=LONGEST)
    country = models.CharField(max_length=2)
    vat_id = models.CharField(max_length=LONGEST_NUMBER, blank=True, default="")
    email = models.EmailField(blank=True, default="")
    letters = models.BooleanField(default=True, db_default=True)  # whether invoices come by mail
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name

    @property
    def party(self) -> Party:
        return Party(
            name=self.name,
            street=self.street,
            extra=self.extra,
            postcode=self.postcode,
            city=self.city,
            country=self.country,
            vat_id=self.vat_id,
            email=self.email,
        )
