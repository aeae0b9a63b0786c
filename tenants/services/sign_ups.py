"""Sign-up: who may, and what they asked for until their address is confirmed."""

from datetime import datetime

from django.conf import settings

from tenants.domain.mailboxes import ascii_domain, mail_domain
from tenants.models import SignUp, User
from tenants.services.errors import ProblemError

OPEN, BY_INVITATION, BY_DOMAIN = "open", "invitation", "domains"  # values of the setting SIGN_UP
ASK_OPERATORS = "Ask an owner of your tenant for an invitation, or the operators of this installation for a tenant."


class SignUpClosed(ProblemError):
    """People cannot sign up, or create a tenant, with this address."""

    code, status, title = "sign-up-closed", 403, "Sign-up is not open to this address"


def require_sign_up_open(email: str) -> None:
    """Raise SignUpClosed unless a person with this address may create a tenant without an invitation."""
    if settings.SIGN_UP == BY_INVITATION:
        raise SignUpClosed("Accounts and tenants are created by invitation only.", fix=ASK_OPERATORS)
    if settings.SIGN_UP == BY_DOMAIN and mail_domain(email) not in map(ascii_domain, settings.SIGN_UP_DOMAINS):
        allowed = ", ".join(settings.SIGN_UP_DOMAINS) or "no domain"
        raise SignUpClosed(f"Only addresses of these domains can sign up: {allowed}.", fix=ASK_OPERATORS)


def remember_sign_up(
    user: User, *, organisation: str, country: str, currency: str, time_zone: str, now: datetime
) -> SignUp:
    """Keep what a person asked for until their address is confirmed."""
    return SignUp.objects.create(
        user=user,
        organisation=organisation,
        country=country,
        currency=currency,
        time_zone=time_zone,
        made_at=now,
    )


def take_sign_up(user: User) -> SignUp | None:
    """Return what a person asked for and forget it, so that it is done once."""
    wanted = SignUp.objects.select_for_update().filter(user=user).first()
    if wanted is not None:
        SignUp.objects.filter(user=user).delete()
    return wanted
