"""Tokens of operators: the list, creating one, and revoking it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from tenants.domain.operator_scopes import OPERATOR_AREAS, OPERATOR_SCOPES, READ, WRITE
from tenants.models import OperatorToken, User
from tenants.services import operator_tokens
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.idempotency import KeyedRequest, find_record, request_digest, store_record
from web.portal import form_tokens
from web.portal.actions import operator_api_call
from web.portal.forms import EXPIRY_CHOICES, name_field
from web.portal.operators.list_filters import ListFilter
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
    render_refused,
)

API_PAGE_SIZE = 500
AREA_LABELS = {
    "fleet": gettext_noop("Fleet"),
    "leases": gettext_noop("Leases"),
    "offerings": gettext_noop("Offerings and prices"),
    "tenants": gettext_noop("Tenants"),
    "billing": gettext_noop("Billing"),
    "system": gettext_noop("Audit log and system"),
}


class OperatorTokenForm(forms.Form):
    name = name_field()
    days = forms.ChoiceField(label=gettext_lazy("Expires in"), choices=EXPIRY_CHOICES, initial="90")
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"), choices=[(each, each) for each in sorted(OPERATOR_SCOPES)]
    )


def _token_cells(each: OperatorToken) -> tuple[object, ...]:
    times = (csv_time(at) for at in (each.created_at, each.expires_at, each.last_used_at, each.revoked_at))
    return each.pk, each.name, each.prefix, each.user.email, " ".join(each.scopes), *times


TOKEN_LIST = OperatorList(
    name="operator-tokens",
    heads="token name prefix owner scopes created_at expires_at last_used_at revoked_at",
    cells=_token_cells,
    at="created_at",
    states=(
        ListState("", gettext_lazy("All")),
        ListState("usable", gettext_lazy("Not revoked"), Q(revoked_at=None)),
        ListState("revoked", gettext_lazy("Revoked"), Q(revoked_at__isnull=False)),
    ),
    search=("name", "prefix", "user__email", "pk"),
)


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token and whether it still works."""

    token: OperatorToken
    alive: bool


@dataclass(frozen=True, slots=True)
class OperatorTokenPage:
    """The tokens of all operators, and the form of a new one."""

    listing: FilteredList
    filter: ListFilter
    form: OperatorTokenForm
    chosen: frozenset[str]
    once: str
    made: OperatorToken | None = None
    text: str = ""

    @property
    def areas(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Return each area with its scopes: name, label and whether it is chosen."""
        labels = {READ: _("read"), WRITE: _("change")}
        return [
            (
                _(AREA_LABELS[area]),
                [(f"{area}:{verb}", labels[verb], f"{area}:{verb}" in self.chosen) for verb in labels],
            )
            for area in OPERATOR_AREAS
        ]

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Tokens of operators"), "ops/tokens", limit=API_PAGE_SIZE)]


@operator_page("tokens", methods=SAFE_OR_POST)
def show_tokens(request: OperatorRequest) -> Any:
    """List the tokens of operators; a POST creates one and shows its text, this once."""
    if wants_csv(request):
        return read_lists(request, TOKEN_LIST).csv((TOKEN_LIST, _tokens))
    form = OperatorTokenForm(request.POST if request.method == "POST" else None)
    refusal: ProblemError | None = None
    made: tuple[OperatorToken, str] | None = None
    if request.method == "POST":
        try:
            made = _issue_once(request, form)
        except ProblemError as problem:
            refusal = problem

    def build(_refusal: ProblemError | None) -> OperatorTokenPage:
        return _build_page(request, form, made)

    response = render_refused(request, "operators/tokens/tokens.html", build, refusal)
    response["Cache-Control"] = "no-store"
    return response


def _issue_once(request: OperatorRequest, form: OperatorTokenForm) -> tuple[OperatorToken, str]:
    """Create the token of a form, once; raise InvalidValue for a faulty one."""
    if not form.is_valid():
        field, faults = next(iter(form.errors.items()))
        raise InvalidValue(field, f"{form.fields[field].label}: {faults[0]}", fix=_("Correct the form."))
    sent = _form_request(request)
    if find_record(sent) is not None:
        raise InvalidValue(
            form_tokens.TOKEN_FIELD,
            _("This form was already submitted; its token was shown once."),
            fix=_("If it is lost, revoke the token and create another."),
        )
    values = form.cleaned_data
    user: User = request.user  # type: ignore[assignment]  # operators only
    made = operator_tokens.issue_operator_token(
        user,
        name=values["name"],
        scopes=values["scopes"],
        expires_at=request.now + timedelta(days=int(values["days"])),
        actor=request.actor,
        now=request.now,
    )
    store_record(sent, status=303, headers={}, body="", now=request.now)
    return made


def _form_request(request: OperatorRequest) -> KeyedRequest:
    key = request_digest({name: texts for name, texts in request.POST.lists() if name != "csrfmiddlewaretoken"})
    return KeyedRequest(tenant_id="", bearer=request.actor.id, method="POST", path=request.path, key=key, digest="")


def _build_page(
    request: OperatorRequest, form: OperatorTokenForm, made: tuple[OperatorToken, str] | None
) -> OperatorTokenPage:
    lists = read_lists(request, TOKEN_LIST)
    listing = lists.read(TOKEN_LIST, _tokens())
    return OperatorTokenPage(
        listing=listing.with_rows(
            [TokenRow(each, each.revoked_at is None and each.expires_at > request.now) for each in listing.rows]
        ),
        filter=lists.count_states(TOKEN_LIST, _tokens()),
        form=OperatorTokenForm() if made else form,
        chosen=frozenset(request.POST.getlist("scopes")) if not made else frozenset(),
        once=form_tokens.new_form_token(),
        made=made[0] if made else None,
        text=made[1] if made else "",
    )


def _tokens() -> QuerySet[OperatorToken]:
    return OperatorToken.objects.select_related("user").order_by("-id")


@operator_page("tokens.revoke", methods=SAFE_OR_POST)
def revoke_token(request: OperatorRequest, pk: str) -> HttpResponse:
    """Revoke a token, after a confirmation page."""
    rows = OperatorToken.objects.select_related("user")
    token = find_row(rows, pk, _("Token"), fix=_("Choose one from the list of tokens."))

    def act(_why: str) -> str:
        operator_tokens.revoke_operator_token(token, actor=request.actor, now=request.now)
        return _("{name} was revoked.").format(name=token.name)

    step = Confirmation(
        title=_("Revoke {name} of {owner}?").format(name=token.name, owner=token.user.email),
        verb=_("Revoke token"),
        back=reverse("ops-tokens"),
        lines=(_("Programs that use it are refused at once. It cannot be restored."),),
        danger=True,
        needs_reason=False,
    )
    return confirm_action(request, step, act)
