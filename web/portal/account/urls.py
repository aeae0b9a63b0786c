"""URLs of accounts, tenants, teams and projects."""

from allauth.account import urls as account_urls
from allauth.account.views import logout
from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path, re_path

from web.portal.account import profile_page, session_pages
from web.portal.account.allauth_overrides import (
    ActivateTotpView,
    ChooseNewPasswordView,
    RecoveryCodesView,
    SignInView,
)
from web.portal.account.sign_up import SignUpView, VerificationSentView
from web.portal.audit import audit_pages
from web.portal.operators.tenants import new_tenant_pages, tenant_page, tenant_pages
from web.portal.projects import project_pages
from web.portal.ssh_keys import ssh_key_pages
from web.portal.team import team_pages
from web.portal.tokens import token_pages

OWN = {
    "account_login",
    "account_signup",
    "account_logout",
    "account_email_verification_sent",
    "account_reset_password_from_key",
}

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", SignInView.as_view(), name="account_login"),
    path("sign-up/", SignUpView.as_view(), name="account_signup"),
    path("sign-out/", logout, name="account_logout"),
    path("account/", profile_page.edit_profile, name="account"),
    path("account/ssh-keys/", ssh_key_pages.list_ssh_keys, name="ssh-keys"),
    path("account/ssh-keys/<str:pk>/delete/", ssh_key_pages.delete_ssh_key, name="ssh-key-delete"),
    path("account/confirm-email/", VerificationSentView.as_view(), name="account_email_verification_sent"),
    re_path(  # allauth's own does not match an id with "_"
        r"^account/password/reset/key/(?P<uidb36>\w+)-(?P<key>[\w-]+)/$",
        ChooseNewPasswordView.as_view(),
        name="account_reset_password_from_key",
    ),
    path("account/", include([p for p in account_urls.urlpatterns if p.name not in OWN])),
    path("account/security/totp/activate/", ActivateTotpView.as_view(), name="mfa_activate_totp"),
    path("account/security/recovery-codes/generate/", RecoveryCodesView.as_view(), name="mfa_generate_recovery_codes"),
    path("account/security/", include("allauth.mfa.urls")),
    path("join/<str:secret>/", session_pages.join_by_invitation, name="join"),
    path("create-tenant/", session_pages.create_own_tenant, name="create-tenant"),
    path("switch-project/", session_pages.switch_project, name="switch-project"),
    path("team/", team_pages.show_team, name="team"),
    path("team/invitations/", team_pages.invite_member, name="invitation-create"),
    path("team/invitations/<str:pk>/revoke/", team_pages.revoke_invitation, name="invitation-revoke"),
    path("team/members/<str:pk>/", team_pages.show_member, name="member"),
    path("team/members/<str:pk>/role/", team_pages.change_member_role, name="member-role"),
    path("team/members/<str:pk>/remove/", team_pages.remove_member, name="member-remove"),
    path("team/service-accounts/", team_pages.create_service_account, name="service-account-create"),
    path("team/service-accounts/<str:pk>/close/", team_pages.close_service_account, name="service-account-close"),
    path("tokens/<str:pk>/revoke/", token_pages.revoke_token, name="token-revoke"),
    path("projects/", project_pages.list_projects, name="projects"),
    path("projects/new/", project_pages.create_project, name="project-create"),
    path("projects/tenant/", project_pages.edit_tenant, name="tenant-edit"),
    path("projects/<str:pk>/", project_pages.show_project, name="project"),
    path("projects/<str:pk>/name/", project_pages.rename_project, name="project-rename"),
    path("projects/<str:pk>/archive/", project_pages.archive_project, name="project-archive"),
    path("projects/<str:pk>/unarchive/", project_pages.unarchive_project, name="project-unarchive"),
    path("projects/<str:pk>/quota/", project_pages.set_project_quota, name="project-quota"),
    path("audit/", audit_pages.show_audit_log, name="audit"),
    path("audit.csv", audit_pages.download_audit_log, name="audit-csv"),
    path("ops/tenants/", tenant_pages.list_tenants, name="ops-tenants"),
    path("ops/tenants/new/", new_tenant_pages.create_tenant, name="ops-tenant-create"),
    path("ops/tenants/<str:pk>/release/", new_tenant_pages.release_tenant, name="ops-tenant-release"),
    path("ops/tenants/<str:pk>/currency/", new_tenant_pages.edit_currency, name="ops-tenant-currency"),
    path("ops/tenants/<str:pk>/", tenant_page.show_tenant, name="ops-tenant"),
    path("ops/tenants/<str:pk>/quota/", tenant_pages.set_tenant_quota, name="ops-tenant-quota"),
    path("ops/tenants/<str:pk>/suspend/", tenant_pages.suspend_tenant, name="ops-tenant-suspend"),
    path("ops/tenants/<str:pk>/resume/", tenant_pages.resume_tenant, name="ops-tenant-resume"),
]
# `account/company/oidc/` calls another server, so it has no request transaction (web/http/middleware.py).
OIDC_URLS: list[URLPattern | URLResolver] = [
    path("account/company/", include("allauth.socialaccount.urls")),
    path("account/company/", include("allauth.socialaccount.providers.openid_connect.urls")),
]
if settings.SOCIALACCOUNT_PROVIDERS:
    urlpatterns += OIDC_URLS
