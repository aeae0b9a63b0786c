"""Take back the unused rest of a grant, for operators."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.models import Grant
from billing.services.funds.grants import grant_balances
from billing.services.funds.wallets import grant_withdrawals
from tenants.services.rls import staff_scope
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
)


@operator_page("grant", methods=SAFE_OR_POST)
def revoke_grant(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then take back what is left of a grant."""
    rows = Grant.objects.select_related("tenant", "lapse")
    found = find_row(rows, pk, _("Credit"), fix=_("Select it from the list of credits."))
    with staff_scope():
        (balance,) = grant_balances.grant_balances([found], now=request.now)
    left = Money(balance.left, found.currency)

    def act(why: str) -> str:
        grant_withdrawals.take_back_grant(found, why=why, actor=request.actor, now=request.now)
        return _("{left} of credit taken back.").format(left=left)

    step = Confirmation(
        title=_("Take back {left} of credit of {tenant_name}?").format(left=left, tenant_name=found.tenant.name),
        verb=_("Take back {left}").format(left=left),
        back=f"{reverse('ops-grants')}?tenant={found.tenant_id}",
        lines=(_("What the credit paid stays paid. Usage of the open month that it would have paid is due instead."),),
        danger=True,
        hint=_("Visible to the tenant in the wallet and in the audit log."),
    )
    return confirm_action(request, step, act)
