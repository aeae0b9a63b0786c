"""Tokens page with the spend caps of tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from billing.domain.money import InvalidAmount, Money, parse_amount
from billing.services.funds.holds import token_caps
from billing.services.funds.holds.token_caps import TokenCapRequest, TokenCapUse
from broker.models import Offering, OfferingState
from ports import clock
from tenants.models import ApiToken, ServiceAccount
from tenants.services.errors import InvalidValue
from web.portal.authentication import GET_OR_POST, tenant_required
from web.portal.forms import TokenForm
from web.portal.tokens import token_pages
from web.portal.tokens.token_pages import CreatedToken


class CappedTokenForm(TokenForm):
    daily = forms.CharField(
        label=gettext_lazy("Daily cap"),
        required=False,
        max_length=20,
        help_text=gettext_lazy("Amount per day in your time zone. Leave empty for no cap."),
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    total = forms.CharField(
        label=gettext_lazy("Total cap"),
        required=False,
        max_length=20,
        help_text=gettext_lazy("Until the token expires. Reserved costs of its leases count."),
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    offerings = forms.MultipleChoiceField(
        label=gettext_lazy("Restrict offerings"),
        required=False,
        help_text=gettext_lazy("None selected: all offerings."),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sold = Offering.objects.filter(state=OfferingState.PUBLISHED).order_by("label", "price_class", "region")
        named = [(one.pk, f"{one.label}, {one.price_class.replace('_', '-')}, {one.region}") for one in sold]
        self.fields["offerings"].choices = named  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class TokenCapLine:
    """One spend cap of a token, in words and as a bar."""

    text: str
    used: int = 0
    limit: int = 0

    @property
    def kind(self) -> str:
        return "fill danger" if self.used >= self.limit else "fill"


@tenant_required("tokens.write", methods=GET_OR_POST)
def show_tokens(request: Any) -> HttpResponse:
    """List tokens with the use of their caps; a POST creates one.

    The new token's secret is shown this once.
    """
    return token_pages.tokens_page(request, form_of=CappedTokenForm, make=_create_token, annotate=_annotate_caps)


def _create_token(request: Any, form: Any, accounts: dict[str, ServiceAccount]) -> CreatedToken:
    lines, currency = form.cleaned_data, request.tenant.currency
    wanted = TokenCapRequest(
        _parse_minor("daily", lines["daily"], currency),
        _parse_minor("total", lines["total"], currency),
        lines["offerings"],
    )
    with transaction.atomic():
        token, text = token_pages.issue_token(request, form, accounts)
        token_caps.set_token_cap(token, wanted, actor=request.actor, now=clock.now())
    return token, text


def _annotate_caps(request: Any, rows: Iterable[ApiToken], now: datetime) -> None:
    shown: list[Any] = list(rows)
    used = token_caps.token_cap_use(shown, tenant=request.tenant, now=now)
    for row in shown:
        row.cap = cap_lines(used[row.pk]) if row.pk in used else []


def cap_lines(used: TokenCapUse) -> list[TokenCapLine]:
    """Return a token's caps in words, with what is used of them."""
    cap, lines = used.cap, []
    for minor, taken, when in ((cap.daily_minor, used.today, "today"), (cap.total_minor, used.in_all, "total")):
        if minor is not None:
            amounts = _("{amount} of {amount_2}").format(
                amount=Money(taken, cap.currency), amount_2=Money(minor, cap.currency)
            )
            lines.append(TokenCapLine(f"{amounts} {when}", taken, minor))
    if cap.offerings:
        many = len(cap.offerings)
        lines.append(TokenCapLine(ngettext("only {n} offering", "only {n} offerings", many).format(n=many)))
    return lines


def _parse_minor(field: str, text: str, currency: str) -> int | None:
    if not text.strip():
        return None
    try:
        return parse_amount(text, currency)
    except InvalidAmount as error:
        raise InvalidValue(field, str(error), fix=_("Enter an amount such as 20.00.")) from error
