"""Withdraw a scheduled price before it begins, for operators."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import PriceVersion
from billing.services.catalogue import price_withdrawal
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
)


@operator_page("offering", methods=SAFE_OR_POST)
def withdraw_price(request: OperatorRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then withdraw a price that has not begun."""
    rows = PriceVersion.objects.select_related("offering")
    found = find_row(rows, str(pk), _("Price"), fix=_("Open the offering to see its prices."))
    page = "ops-tenant-prices" if found.tenant_id else "ops-offering"

    def act(_why: str) -> str:
        price_withdrawal.withdraw_price(found, actor=request.actor, now=request.now)
        return _("Price withdrawn.")

    step = Confirmation(
        title=_("Withdraw the price of {label} from {since:%d %b %Y %H:%M} UTC?").format(
            label=found.offering.label, since=found.valid.lower
        ),
        verb=_("Withdraw price"),
        back=reverse(page, args=[found.offering_id]),
        lines=(_("It never takes effect. The price that it would have replaced stays in force."),),
        danger=True,
        needs_reason=False,
    )
    return confirm_action(request, step, act)
