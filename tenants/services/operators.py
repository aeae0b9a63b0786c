"""Who runs this installation: appointed and dismissed from its own machine, never from a page."""

from datetime import datetime
from typing import Any

from django.db import transaction

from tenants.models import User
from tenants.services import audit
from tenants.services.actors import SYSTEM
from tenants.services.refusals import Missing


@transaction.atomic
def appoint(email: str, *, now: datetime) -> bool:
    """Make a person an operator; tell whether that is new."""
    return _set(email, staff=True, action="operators.appoint", now=now)


@transaction.atomic
def dismiss(email: str, *, now: datetime) -> bool:
    """Let a person be an operator no longer; tell whether they were."""
    return _set(email, staff=False, action="operators.dismiss", now=now)


def _set(email: str, *, staff: bool, action: str, now: datetime) -> bool:
    user = User.objects.select_for_update().filter(email__iexact=email).first()
    if user is None:
        raise Missing(
            f"Nobody here has the address {email}.", fix="Sign up in the portal first, then try again."
        )
    if user.is_staff is staff:
        return False
    user.is_staff = staff
    user.save(update_fields=["is_staff"])
    audit.record(action, actor=SYSTEM, now=now, subject_id=user.pk, subject_label=user.email)
    return True


def has_second_factor(user: Any) -> bool:
    """Tell whether somebody has set up TOTP or a passkey."""
    from allauth.mfa.utils import is_mfa_enabled

    return bool(is_mfa_enabled(user))
