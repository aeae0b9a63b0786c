"""The tokens page with what tokens may spend."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from billing.domain.money import Money, NotAnAmount, minor_of
from billing.services.funds import caps
from billing.services.funds.caps import Used, Wanted
from broker.models import Offering, OfferingState
from ports import clock
from tenants.models import ApiToken, ServiceAccount
from tenants.portal import tokens
from tenants.portal.doors import in_tenant
from tenants.portal.forms import TokenForm
from tenants.portal.tokens import Made
from tenants.services.refusals import Invalid


class CappedTokenForm(TokenForm):
    daily = forms.CharField(
        label="May spend a day",
        required=False,
        max_length=20,
        help_text="An amount for each day of your time zone. Empty: no cap.",
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    total = forms.CharField(
        label="May spend in all",
        required=False,
        max_length=20,
        help_text="Until it ends. What its leases may still cost counts.",
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    offerings = forms.MultipleChoiceField(
        label="Leases only",
        required=False,
        help_text="None chosen: any offering.",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sold = Offering.objects.filter(state=OfferingState.PUBLISHED).order_by(
            "label", "price_class", "region"
        )
        named = [(one.pk, f"{one.label}, {one.price_class.replace('_', ' ')}, {one.region}") for one in sold]
        self.fields["offerings"].choices = named  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Line:
    """One ceiling of a token, in words and as a bar."""

    words: str
    taken: int = 0
    limit: int = 0

    @property
    def kind(self) -> str:
        return "fill bad" if self.taken >= self.limit else "fill"


@require_http_methods(["GET", "POST"])
@in_tenant("tokens.write")
def page(request: Any) -> HttpResponse:
    """Show the tokens and how much of their caps is taken; make one and show its secret, this once."""
    return tokens.page(request, form_of=CappedTokenForm, make=_make, tell=_tell)


def _make(request: Any, form: Any, accounts: dict[str, ServiceAccount]) -> Made:
    said, currency = form.cleaned_data, request.tenant.currency
    wanted = Wanted(
        _minor("daily", said["daily"], currency), _minor("total", said["total"], currency), said["offerings"]
    )
    with transaction.atomic():
        token, text = tokens.issue(request, form, accounts)
        caps.set_cap(token, wanted, actor=request.actor, now=clock.now())
    return token, text


def _tell(request: Any, rows: Iterable[ApiToken], now: datetime) -> None:
    shown: list[Any] = list(rows)
    used = caps.used(shown, tenant=request.tenant, now=now)
    for row in shown:
        row.cap = lines(used[row.pk]) if row.pk in used else []


def lines(used: Used) -> list[Line]:
    """Say what a token may spend, and what of it is taken."""
    cap, said = used.cap, []
    for minor, taken, when in (
        (cap.daily_minor, used.today, "today"),
        (cap.total_minor, used.in_all, "in all"),
    ):
        if minor is not None:
            amounts = f"{Money(taken, cap.currency)} of {Money(minor, cap.currency)}"
            said.append(Line(f"{amounts} {when}", taken, minor))
    if cap.offerings:
        many = len(cap.offerings)
        said.append(Line(f"only {many} offering{'' if many == 1 else 's'}"))
    return said


def _minor(field: str, text: str, currency: str) -> int | None:
    if not text.strip():
        return None
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid(field, str(odd), fix="Type an amount such as 20.00.") from odd
