"""Fields of whoever creates a tenant: organisation, country, currency and time zone."""

from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.countries import COUNTRY_NAMES
from billing.services.catalogue import price_list
from billing.services.new_tenants.tenant_creation import WantedTenant
from billing.services.new_tenants.trial_credits import offered_trial_credit
from tenants.domain import time_zones
from web.portal.forms import name_field

ZONE_ERRORS = {
    "invalid_choice": gettext_lazy(
        "%(value)s is not a region's time zone, which billing needs. Use the nearest city, such as Europe/Berlin, or"
        " UTC."
    )
}


def tenant_fields(now: datetime) -> dict[str, forms.Field]:
    """Return the fields of a new tenant, in order; one query."""
    countries = sorted(COUNTRY_NAMES.items(), key=lambda pair: pair[1])
    organisation = name_field()
    organisation.label = _("Organisation")
    organisation.widget.attrs["autocomplete"] = "organization"
    return {
        "organisation": organisation,
        "country": forms.ChoiceField(
            label=_("Country"),
            choices=[("", _("Choose a country")), *countries],
            initial=settings.SUPPLIER["country"],
            widget=forms.Select(attrs={"autocomplete": "country"}),
        ),
        "currency": forms.ChoiceField(
            label=_("Currency"), choices=[(code, code) for code in price_list.listed_currencies(now)]
        ),
        "time_zone": forms.ChoiceField(
            label=_("Time zone"),
            choices=[(zone, zone) for zone in sorted(time_zones.permitted_zones())],
            initial=time_zones.UTC,
            error_messages=ZONE_ERRORS,
            help_text=_("Months of invoices begin at midnight there."),
            widget=forms.Select(attrs={"data-local-time-zone": ""}),
        ),
    }


def wanted_tenant(cleaned: dict[str, Any]) -> WantedTenant:
    """Return what was asked for in these fields."""
    return WantedTenant(cleaned["organisation"], cleaned["country"], cleaned["currency"], cleaned["time_zone"])


def trial_offers(now: datetime) -> list[str]:
    """Return the trial credit that new tenants get, in each currency that has some."""
    offered = map(offered_trial_credit, price_list.listed_currencies(now))
    return [str(credit) for credit in offered if credit is not None]


class TenantFieldsForm(forms.Form):
    """Form of a new tenant."""

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update(tenant_fields(now))
