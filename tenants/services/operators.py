"""Operators of this installation: appointed and dismissed by command line, never by a page."""

from datetime import datetime
from typing import Any

from django.db import transaction

from tenants.models import User
from tenants.services import audit, operator_tokens
from tenants.services.actors import SYSTEM
from tenants.services.errors import ObjectNotFound


@transaction.atomic
def appoint(email: str, *, now: datetime) -> bool:
    """Make a user an operator; return whether that is a change.

    This confirms their address, too: the first operator signs up before e-mails can be sent.
    """
    from allauth.account.models import EmailAddress

    EmailAddress.objects.filter(user__email__iexact=email, email__iexact=email).update(verified=True)
    return _set_staff(email, staff=True, action="operators.appoint", now=now)


@transaction.atomic
def dismiss(email: str, *, now: datetime) -> bool:
    """Remove a user's operator status and tokens; return whether they had it."""
    return _set_staff(email, staff=False, action="operators.dismiss", now=now)


def _set_staff(email: str, *, staff: bool, action: str, now: datetime) -> bool:
    user = User.objects.select_for_update().filter(email__iexact=email).first()
    if user is None:
        raise ObjectNotFound(
            f"No user has the e-mail address {email}.", fix="Sign up in the portal first, then try again."
        )
    if user.is_staff is staff:
        return False
    user.is_staff = staff
    user.save(update_fields=["is_staff"])
    audit.record(action, user, actor=SYSTEM, now=now)
    if not staff:
        operator_tokens.revoke_tokens_of(user, actor=SYSTEM, now=now)
    return True


def has_second_factor(user: Any) -> bool:
    """Return whether a user has set up TOTP or a passkey."""
    from allauth.mfa.utils import is_mfa_enabled

    return bool(is_mfa_enabled(user))
