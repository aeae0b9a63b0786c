"""API tokens: issued and shown once, found by public prefix, invalid at once when revoked."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from ports import ids
from tenants.domain import credentials
from tenants.domain.roles import SCOPES, RoleGrants
from tenants.models import ApiToken, Project, ServiceAccount, Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.authentication import refuse
from tenants.services.errors import InvalidValue, NotAllowed

MAX_LIFETIME = timedelta(days=366)


def _validated_scopes(scopes: Iterable[str], *, expires_at: datetime, now: datetime) -> list[str]:
    wanted = sorted(set(scopes))
    if not wanted or set(wanted) - SCOPES:
        raise InvalidValue(
            "scopes",
            f"{', '.join(sorted(set(wanted) - SCOPES)) or 'An empty list'} is not a valid scope.",
            fix=f"Choose among {', '.join(sorted(SCOPES))}.",
        )
    if not now < expires_at <= now + MAX_LIFETIME:
        raise InvalidValue(
            "expires_at",
            "A token must expire in the future, within a year.",
            fix=f"Choose a date until {now + MAX_LIFETIME:%Y-%m-%d}.",
        )
    return wanted


@transaction.atomic
def issue(
    *,
    tenant: Tenant,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime,
    actor: Actor,
    now: datetime,
    user_id: str | None = None,
    service_account: ServiceAccount | None = None,
    project: Project | None = None,
) -> tuple[ApiToken, str]:
    """Create a token for a user or a service account.

    Its text is returned once and stored only as a hash. If a token creates it, it ends with that one at the latest.
    """
    wanted = _validated_scopes(scopes, expires_at=expires_at, now=now)
    parent = _parent_outliving(expires_at, actor=actor, now=now)
    made = credentials.compose_token(
        environment=settings.TOKEN_ENVIRONMENT,
        prefix=ids.random_token(credentials.PREFIX_LENGTH),
        secret=ids.random_token(credentials.SECRET_LENGTH),
    )
    token = ApiToken.objects.create(
        tenant=tenant,
        user_id=user_id,
        service_account=service_account,
        project=project,
        parent=parent,
        name=name,
        prefix=made.prefix,
        digest=made.digest,
        scopes=wanted,
        made_by=actor.id,
        made_by_label=actor.label,
        created_at=now,
        expires_at=expires_at,
    )
    audit.record(
        "token.create",
        token,
        name,
        actor=actor,
        now=now,
        scopes=wanted,
        bearer=user_id or (service_account.pk if service_account else ""),
        expires_at=expires_at.isoformat(),
        **({"parent": parent.pk} if parent else {}),
    )
    return token, made.text


def _parent_outliving(expires_at: datetime, *, actor: Actor, now: datetime) -> ApiToken | None:
    """Return the token that creates another, None for a person."""
    if not actor.token:
        return None
    # Locked, so that it is either revoked before or revokes the new token too.
    parent = ApiToken.objects.select_for_update(no_key=True).get(pk=actor.token)
    if parent.revoked_at is not None or parent.expires_at <= now:
        raise NotAllowed("The token of this request has ended in the meantime.", fix="Use another token.")
    if expires_at > parent.expires_at:
        raise InvalidValue(
            "expires_at",
            f"A token ends with the token it is created with, at {_moment_text(parent.expires_at)} at the latest.",
            fix=f"Send a time until {_moment_text(parent.expires_at)}, or create it on the Tokens page.",
        )
    return parent


def _moment_text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@transaction.atomic
def revoke(token: ApiToken, *, actor: Actor, now: datetime) -> ApiToken:
    """Revoke a token and those created with it for good; revoking it again changes nothing."""
    ended = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)
    if ended:
        token.revoked_at = now
        audit.record("token.revoke", token, token.name, actor=actor, now=now)
        for child in ApiToken.objects.filter(parent=token, revoked_at=None).order_by("id"):
            revoke(child, actor=actor, now=now)
    return token


def revoke_all_of(
    *, tenant: Tenant, actor: Actor, now: datetime, user_id: str = "", service_account_id: str = ""
) -> int:
    """Revoke every token of a user or service account that leaves the tenant."""
    theirs = ApiToken.objects.filter(tenant=tenant, revoked_at=None)
    theirs = theirs.filter(user_id=user_id) if user_id else theirs.filter(service_account=service_account_id)
    for token in (tokens := list(theirs)):
        revoke(token, actor=actor, now=now)
    return len(tokens)


def tokens_known_to(*, tenant: Tenant, user_id: str, now: datetime) -> QuerySet[ApiToken]:
    """Return valid service-account tokens whose secret a user may know.

    These outlive the user who created them. A service account's token can create further tokens of that
    account, so tokens created by such an account count as the user's too.
    """
    of_machines, owner_ids = ApiToken.objects.filter(tenant=tenant, user=None), {user_id}
    while (reach := owner_ids.union(_accounts_created_by(of_machines, owner_ids))) != owner_ids:
        owner_ids = reach
    alive = of_machines.filter(made_by__in=owner_ids, revoked_at=None, expires_at__gt=now)
    return alive.select_related("service_account").order_by("id")


def _accounts_created_by(rows: QuerySet[ApiToken], makers: Iterable[str]) -> list[str]:
    return [str(account) for account in rows.filter(made_by__in=makers).values_list("service_account", flat=True)]


@transaction.atomic
def revoke_tokens_known_to(*, tenant: Tenant, user_id: str, grants: RoleGrants, actor: Actor, now: datetime) -> int:
    """Revoke the tokens a user created for service accounts; the accounts stay."""
    if not grants.may("tokens.all"):
        refuse("tokens.all", grants)
    for token in (theirs := list(tokens_known_to(tenant=tenant, user_id=user_id, now=now))):
        revoke(token, actor=actor, now=now)
    return len(theirs)


def require_within(grants: RoleGrants, scopes: Iterable[str], project: Project | None) -> None:
    """Refuse a token that would reach further than the token used to create it."""
    if grants.scopes is None:
        return
    for scope in scopes:
        noun, _, verb = scope.partition(":")
        if scope in SCOPES and not grants.scopes & {
            scope,
            f"{noun}:write" if verb == "read" else scope,
            "tenant:admin",
        }:
            refuse(f"{noun}.{verb}", grants)
    if grants.within and (project is None or not set(grants.within) <= set(project.path)):
        raise NotAllowed(
            "A token restricted to a project can only create tokens restricted to it.",
            fix="Name a project below it in `project`.",
        )
