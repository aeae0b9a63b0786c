"""What operators type to give credit, and what it means."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from billing.domain.money import NotAnAmount, minor_of
from billing.domain.periods import midnight
from billing.services.grants import giving
from billing.services.grants.giving import Terms
from broker.models import Offering
from tenants.models import Project, Tenant
from tenants.services.refusals import Invalid

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Form:
    """What was typed."""

    amount: str = ""
    reason: str = ""
    project: str = ""
    offering: str = ""
    priority: str = str(giving.USUAL)
    last_day: str = ""
    name: str = ""

    @classmethod
    def of(cls, typed: Any) -> "Form":
        return cls(**{field: str(typed.get(field, ""))[:200] for field in cls.__dataclass_fields__})


def terms_of(form: Form, tenant: Tenant, projects: list[Project], offerings: list[Offering]) -> Terms:
    try:
        minor = minor_of(form.amount, tenant.currency)
    except NotAnAmount as odd:
        raise Invalid("amount", str(odd), fix="Type an amount such as 100.00.") from odd
    project = next((each for each in projects if each.pk == form.project), None)
    offering = next((each for each in offerings if each.pk == form.offering), None)
    if form.project and project is None:
        raise Invalid("project", "There is no such project of this tenant.", fix="Choose one of the list.")
    if form.offering and offering is None:
        raise Invalid("offering", "There is no such offering.", fix="Choose one of the list.")
    if not (form.priority.isascii() and form.priority.isdigit() and len(form.priority) < 5):
        raise Invalid("priority", "A priority is a whole number.", fix=f"Type one from 0 to {giving.LAST}.")
    return Terms(minor, form.reason, project, offering, int(form.priority), _end(form.last_day, tenant))


def _end(last_day: str, tenant: Tenant) -> datetime | None:
    """Return where a day ends in the tenant's own time zone; None for no day at all."""
    if not last_day:
        return None
    try:
        return midnight(date.fromisoformat(last_day) + DAY, ZoneInfo(tenant.time_zone))
    except (ValueError, OverflowError) as odd:
        raise Invalid("last_day", "That is no day.", fix="Choose one, or none: then it never ends.") from odd


def name_of(form: Form) -> str:
    """Return the name that the form was given with its page: sent twice, it gives once."""
    if not form.name.startswith("gra_") or not form.name.isascii():
        raise Invalid("name", "The form does not say which grant it is.", fix="Open the page again.")
    return f"form {form.name[:60]}"
