"""Addresses of people, tenants and projects in the portal."""

from allauth.account import urls as account_urls
from allauth.account.views import logout
from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from tenants.portal import audit, operations, profile, projects, sessions, team, tokens
from tenants.portal.accounts import AppAdded, LetterSent, NewRecoveryCodes, SignIn, SignUp

OWN = {"account_login", "account_signup", "account_logout", "account_email_verification_sent"}

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", SignIn.as_view(), name="account_login"),
    path("sign-up/", SignUp.as_view(), name="account_signup"),
    path("sign-out/", logout, name="account_logout"),
    path("account/", profile.page, name="account"),
    path("account/confirm-email/", LetterSent.as_view(), name="account_email_verification_sent"),
    path("account/", include([p for p in account_urls.urlpatterns if p.name not in OWN])),
    path("account/security/totp/activate/", AppAdded.as_view(), name="mfa_activate_totp"),
    path(
        "account/security/recovery-codes/generate/",
        NewRecoveryCodes.as_view(),
        name="mfa_generate_recovery_codes",
    ),
    path("account/security/", include("allauth.mfa.urls")),
    path("join/<str:secret>/", sessions.join, name="join"),
    path("start/", sessions.start, name="no-tenant"),
    path("switch/", sessions.switch, name="switch"),
    path("team/", team.team, name="team"),
    path("team/invitations/", team.invite, name="invite"),
    path("team/invitations/<str:pk>/revoke/", team.uninvite, name="uninvite"),
    path("team/members/<str:pk>/", team.one, name="member"),
    path("team/members/<str:pk>/role/", team.change_role, name="member-role"),
    path("team/members/<str:pk>/remove/", team.remove, name="member-remove"),
    path("team/machines/", team.add_machine, name="machine-add"),
    path("team/machines/<str:pk>/close/", team.close_machine, name="machine-close"),
    path("tokens/<str:pk>/revoke/", tokens.revoke, name="token-revoke"),
    path("projects/", projects.page, name="projects"),
    path("projects/new/", projects.create, name="project-create"),
    path("projects/tenant/", projects.change_tenant, name="tenant-change"),
    path("projects/<str:pk>/", projects.one, name="project"),
    path("projects/<str:pk>/name/", projects.rename, name="project-rename"),
    path("projects/<str:pk>/archive/", projects.archive, name="project-archive"),
    path("projects/<str:pk>/quota/", projects.limit, name="project-quota"),
    path("audit/", audit.page, name="audit"),
    path("audit.csv", audit.download, name="audit-csv"),
    path("ops/tenants/", operations.tenants_page, name="tenants"),
    path("ops/tenants/<str:pk>/quota/", operations.limit, name="ops-tenant-quota"),
    path("ops/tenants/<str:pk>/suspend/", operations.suspend, name="ops-tenant-suspend"),
    path("ops/tenants/<str:pk>/resume/", operations.resume, name="ops-tenant-resume"),
]
# At `account/company/oidc/` we speak with another server: the wall (wall.py) knows that address.
COMPANY: list[URLPattern | URLResolver] = [
    path("account/company/", include("allauth.socialaccount.urls")),
    path("account/company/", include("allauth.socialaccount.providers.openid_connect.urls")),
]
if settings.SOCIALACCOUNT_PROVIDERS:
    urlpatterns += COMPANY
