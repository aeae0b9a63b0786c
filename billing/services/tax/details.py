"""What a tenant says of itself for its next invoices."""

from dataclasses import fields
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from billing.domain.countries import NAMES
from billing.domain.parties import NotAVatNumber, Party, vat_number
from billing.models import BillingDetails
from billing.models.details import LONGEST
from billing.services import drafts, turns
from billing.services.tax import standings
from billing.services.wallets import retaxing
from tenants.domain.text import has_control
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid

NEEDED = ("name", "street", "city", "country")
LIMITS = {"postcode": 20, "country": 2, "email": 254}


def version(tenant: Tenant) -> int:
    """Return how often it was told; nought while it never was."""
    return BillingDetails.objects.filter(tenant=tenant).values_list("version", flat=True).first() or 0


def letters(tenant: Tenant) -> bool:
    """Return whether a tenant has letters about its invoices; it has while it says nothing."""
    told = BillingDetails.objects.filter(tenant=tenant).values_list("letters", flat=True).first()
    return told is not False


@transaction.atomic
def tell(
    tenant: Tenant, *, told: Party, actor: Actor, now: datetime, letters: bool | None = None
) -> BillingDetails:
    """Keep who a tenant is on paper; its drafts follow at once, final invoices stay as they are.

    `letters` says whether it is written to about its invoices; left out, that stays as it is.

    Raises Invalid, which names the field, for what is missing or cannot be, and where a tenant that pays beforehand
    would owe more tax by it than its wallet holds.
    """
    told = _checked(told)
    turns.take()  # no month closes meanwhile: it is taxed as whoever it is made out to
    BillingDetails.objects.get_or_create(tenant=tenant, defaults={"version": 0, "changed_at": now})
    row = BillingDetails.objects.select_for_update().get(tenant=tenant)
    wanted = row.letters if letters is None else letters
    if row.party == told and row.letters == wanted:
        return row
    before, taxed = row.party.as_dict(), standings.standing(tenant)
    for name, value in told.as_dict().items():
        setattr(row, name, value)
    said, row.letters = row.letters, wanted
    row.version, row.changed_at = row.version + 1, now
    row.save()
    retaxing.follow(tenant, taxed, standings.standing(tenant), now=now)
    changed = {name: value for name, value in told.as_dict().items() if before[name] != value}
    if said != wanted:
        changed["letters"] = "yes" if wanted else "no"
    audit.record(
        "billing.details",
        actor=actor,
        now=now,
        tenant_id=tenant.pk,
        subject_id=tenant.pk,
        subject_label=f"billing details of {tenant.name}",
        **changed,
    )
    drafts.refresh(tenant, now=now)
    return row


def _checked(told: Party) -> Party:
    texts = {each.name: " ".join(getattr(told, each.name).split()) for each in fields(told)}
    for name, text in texts.items():
        if has_control(text):
            raise Invalid(name, "It holds a character that nobody sees.", fix="Type it anew.")
        if len(text) > LIMITS.get(name, LONGEST):
            raise Invalid(name, f"It is longer than {LIMITS.get(name, LONGEST)} letters.", fix="Shorten it.")
        if name in NEEDED and not text:
            raise Invalid(name, "An invoice needs it.", fix="Fill it in.")
    texts["country"] = texts["country"].upper()
    if texts["country"] not in NAMES:
        raise Invalid("country", "There is no such country.", fix="Choose one, or send its two letters.")
    if texts["vat_id"]:
        texts["vat_id"] = _number(texts)
    if texts["email"]:
        try:
            validate_email(texts["email"])
        except ValidationError:
            raise Invalid("email", "It is no e-mail address.", fix="Correct it, or leave it empty.") from None
    return Party(**texts)


def _number(texts: dict[str, str]) -> str:
    try:
        return vat_number(texts["vat_id"], texts["country"])
    except NotAVatNumber as odd:
        raise Invalid(
            "vat_id", str(odd), fix="Correct it, or leave it empty: VAT is then charged as of people."
        ) from odd
