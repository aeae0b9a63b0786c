"""Tokens of operators: created in a session, scoped, expiring, and audited."""

import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from ports import ids
from tenants.domain import credentials
from tenants.domain.credentials import Credential
from tenants.domain.operator_scopes import OPERATOR_SCOPES, operator_scope_allows
from tenants.models import OperatorToken, User
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import Fix, InvalidValue, NotAllowed, ScopeMissing
from tenants.services.tokens import MAX_LIFETIME

ENVIRONMENT = "ops"  # the word in gpb_ops_…, which no tenant's token has
LAST_USED_INTERVAL = timedelta(minutes=1)


@transaction.atomic
def issue_operator_token(
    user: User, *, name: str, scopes: Iterable[str], expires_at: datetime, actor: Actor, now: datetime
) -> tuple[OperatorToken, str]:
    """Create a token of an operator.

    Its text is returned once and stored only as a hash.
    """
    wanted = sorted(set(scopes))
    if actor.token:
        raise NotAllowed("A token creates no operators' tokens.", fix="Sign in and create it on the Tokens page.")
    if not wanted or set(wanted) - OPERATOR_SCOPES:
        raise InvalidValue(
            "scopes",
            f"{', '.join(sorted(set(wanted) - OPERATOR_SCOPES)) or 'An empty list'} is not a valid scope.",
            fix=f"Choose among {', '.join(sorted(OPERATOR_SCOPES))}.",
        )
    if not now < expires_at <= now + MAX_LIFETIME:
        raise InvalidValue(
            "expires_at",
            "A token must expire in the future, within a year.",
            fix=f"Choose a date until {now + MAX_LIFETIME:%Y-%m-%d}.",
        )
    made = credentials.compose_token(
        environment=ENVIRONMENT,
        prefix=ids.random_token(credentials.PREFIX_LENGTH),
        secret=ids.random_token(credentials.SECRET_LENGTH),
    )
    token = OperatorToken.objects.create(
        user=user,
        name=name.strip(),
        prefix=made.prefix,
        digest=made.digest,
        scopes=wanted,
        created_at=now,
        expires_at=expires_at,
    )
    audit.record(
        "operators.token_create",
        token,
        token.name,
        actor=actor,
        now=now,
        scopes=wanted,
        expires_at=expires_at.isoformat(),
    )
    return token, made.text


@transaction.atomic
def revoke_operator_token(token: OperatorToken, *, actor: Actor, now: datetime) -> OperatorToken:
    """Revoke a token for good; revoking it again changes nothing."""
    if OperatorToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
        token.revoked_at = now
        audit.record("operators.token_revoke", token, token.name, actor=actor, now=now)
    return token


def revoke_tokens_of(user: User, *, actor: Actor, now: datetime) -> None:
    """Revoke every token of somebody who is no operator any more."""
    for token in OperatorToken.objects.filter(user=user, revoked_at=None).order_by("id"):
        revoke_operator_token(token, actor=actor, now=now)


def authenticate_operator_token(credential: Credential, *, now: datetime) -> OperatorToken | None:
    """Return the valid token of an active user, or None."""
    rows = OperatorToken.objects.select_related("user").filter(prefix=credential.prefix, revoked_at=None)
    token = rows.filter(expires_at__gt=now, user__is_active=True, user__is_staff=True).first()
    if token is None or not hmac.compare_digest(token.digest, credential.digest):
        return None
    if token.last_used_at is None or now - token.last_used_at >= LAST_USED_INTERVAL:
        free = OperatorToken.objects.filter(pk=token.pk).select_for_update(skip_locked=True)
        OperatorToken.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)
    return token


def require_operator_scope(token: OperatorToken, needed: str) -> None:
    """Raise ScopeMissing, which names it, if a token lacks a scope."""
    if not operator_scope_allows(frozenset(token.scopes), needed):
        raise ScopeMissing(
            f"This token lacks the scope {needed}.",
            fix=Fix(f"Sign in and create a token with the scope {needed}.", "POST", "/api/v1/ops/tokens"),
            rule=needed.replace(":", "."),
            scopes=[needed],
        )
