"""Form with which operators grant credit, and its validation."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from billing.domain.money import InvalidAmount, parse_amount
from billing.domain.periods import midnight
from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from broker.models import Offering
from tenants.models import Project, Tenant
from tenants.services.errors import InvalidValue

DAY = timedelta(days=1)


@dataclass(frozen=True)
class GrantForm:
    """Values of the grant form as typed."""

    amount: str = ""
    reason: str = ""
    project: str = ""
    offering: str = ""
    priority: str = str(new_grants.DEFAULT_PRIORITY)
    last_day: str = ""
    name: str = ""

    @classmethod
    def of(cls, typed: Any) -> "GrantForm":
        return cls(**{field: str(typed.get(field, ""))[:200] for field in cls.__dataclass_fields__})


def parse_grant_terms(
    form: GrantForm, tenant: Tenant, projects: list[Project], offerings: list[Offering]
) -> GrantTerms:
    try:
        minor = parse_amount(form.amount, tenant.currency)
    except InvalidAmount as error:
        raise InvalidValue("amount", str(error), fix=_("Enter an amount such as 100.00.")) from error
    project = next((each for each in projects if each.pk == form.project), None)
    offering = next((each for each in offerings if each.pk == form.offering), None)
    if form.project and project is None:
        raise InvalidValue(
            "project", _("The project was not found in this tenant."), fix=_("Select one from the list.")
        )
    if form.offering and offering is None:
        raise InvalidValue("offering", _("The offering was not found."), fix=_("Select one from the list."))
    if not (form.priority.isascii() and form.priority.isdigit() and len(form.priority) < 5):
        raise InvalidValue(
            "priority",
            _("The priority is not a whole number."),
            fix=_("Enter a number from 0 to {max_priority}.").format(max_priority=new_grants.MAX_PRIORITY),
        )
    return GrantTerms(minor, form.reason, project, offering, int(form.priority), _end_of_day(form.last_day, tenant))


def _end_of_day(last_day: str, tenant: Tenant) -> datetime | None:
    """Return when a day ends in the tenant's time zone; None if empty."""
    if not last_day:
        return None
    try:
        return midnight(date.fromisoformat(last_day) + DAY, ZoneInfo(tenant.time_zone))
    except (ValueError, OverflowError) as error:
        raise InvalidValue(
            "last_day", _("The date is not valid."), fix=_("Select a day, or leave the field empty for no expiry.")
        ) from error


def idempotency_key(form: GrantForm) -> str:
    """Return the form's unique name, its idempotency key: sent twice, it grants once."""
    if not form.name.startswith("gra_") or not form.name.isascii():
        raise InvalidValue("name", _("The form is incomplete."), fix=_("Reload the page."))
    return f"form {form.name[:60]}"
