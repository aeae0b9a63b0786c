"""The invitation that a visitor opened before signing in or up."""

from django.http import HttpRequest

from ports import clock
from tenants.services import invitations
from tenants.services.errors import ObjectNotFound

SESSION_JOIN = "join"  # the pending invitation's secret, until sign-in


def pending_invitation(request: HttpRequest) -> dict[str, str] | None:
    """Return the visitor's pending invitation, for the text above the form."""
    secret = request.session.get(SESSION_JOIN)
    if not secret:
        return None
    try:
        offer = invitations.find_offer(secret, now=clock.now())
    except ObjectNotFound:
        del request.session[SESSION_JOIN]
        return None
    return {"tenant": offer.tenant_name, "role": offer.role.value, "email": offer.email}
