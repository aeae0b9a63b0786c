"""allauth's views and account adapter, with our rules for sign-up and account changes."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.account.views import LoginView, PasswordResetFromKeyView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView
from django.contrib.sites.shortcuts import get_current_site
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from ports import clock
from tenants.domain.mailboxes import mailbox_of
from tenants.models import User
from tenants.services import own_accounts
from web.http.rate_limits import client_ip
from web.portal.account import known_devices
from web.portal.account.pending_invitations import SESSION_JOIN, pending_invitation
from web.portal.account.sign_up import create_wanted_tenant, keep_wanted_tenant, may_create_account

# allauth's e-mails about account changes -> their actions in the audit log.
AUDIT_ACTIONS = {
    "account/email/password_changed": "account.password",
    "account/email/password_set": "account.password",
    "account/email/password_reset": "account.password_reset",
    "account/email/email_changed": "account.email",
    "account/email/email_deleted": "account.email_remove",
    "mfa/email/totp_activated": "account.app_add",
    "mfa/email/totp_deactivated": "account.app_remove",
    "mfa/email/webauthn_added": "account.passkey_add",
    "mfa/email/webauthn_removed": "account.passkey_remove",
    "mfa/email/recovery_codes_generated": "account.recovery_codes",
}
SENT_AFTER_COMMIT = {  # sent after the commit, too late for the audit record: the views below write it with the change
    "mfa/email/totp_activated",
    "mfa/email/recovery_codes_generated",
}
MAX_EMAIL_LENGTH = User._meta.get_field("email").max_length or 254


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth adapter: lower-case addresses, a tenant for who confirms uninvited, redirects."""

    def clean_email(self, email: str) -> str:
        if len(email) > MAX_EMAIL_LENGTH:  # allauth would truncate it, and write to somebody else
            raise ValidationError(
                _("An address has at most {max_email_length} characters.").format(max_email_length=MAX_EMAIL_LENGTH)
            )
        return str(super().clean_email(email)).lower()

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send after the request's transaction commits, so that it never waits for a mail server."""
        around = {"request": self.request, "email": email, "current_site": get_current_site(self.request)}
        message = self.render_mail(template_prefix, email, {**around, **context})

        def post() -> None:
            message.send()

        transaction.on_commit(post, robust=True)

    def send_notification_mail(
        self, template_prefix: str, user: User, context: dict[str, Any] | None = None, email: str | None = None
    ) -> None:
        """Record an account change in the audit log whenever allauth would notify of it."""
        if template_prefix in AUDIT_ACTIONS and template_prefix not in SENT_AFTER_COMMIT:
            record_account_change(self.request, user, template_prefix)
        super().send_notification_mail(template_prefix, user, context, email)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the visitor's IP address as all limits count it."""
        return client_ip(request)

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        return known_devices.failure_key(request, credentials.get("email", ""))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse a sign-in after too many failures of this device, or of unknown devices together."""
        super().pre_authenticate(request, **credentials)
        usage = known_devices.consume_account_limit(request, credentials.get("email", ""))
        if usage is None:
            raise self.validation_error("too_many_login_attempts")
        self._login_failed_rl_usage.usage += usage.usage  # undone after a right password

    def post_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse:
        """Remember the browser, so that failures elsewhere do not keep its user out."""
        answer: HttpResponse = super().post_login(request, user, **options)
        known_devices.remember_device(request, answer, user.email)
        return answer

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return may_create_account(request)

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Save a new user, and the tenant they want once their address is confirmed."""
        now = clock.now()
        user.joined_at, user.mailbox = now, mailbox_of(form.cleaned_data["email"])
        saved: User = super().save_user(request, user, form, commit)
        if commit:
            keep_wanted_tenant(saved, form, now=now)
        return saved

    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        """Confirm an address, and create the tenant that its account asked for."""
        confirmed = bool(super().confirm_email(request, email_address))
        if confirmed:
            create_wanted_tenant(request, email_address.user)
        return confirmed

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the URL of the pending invitation, else home."""
        if secret := request.session.get(SESSION_JOIN):
            return reverse("join", args=[secret])
        return str(super().get_login_redirect_url(request))

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        return self.get_login_redirect_url(request)


def record_account_change(request: HttpRequest, user: User, message: str) -> None:
    """Record the account change that an allauth e-mail reports in the audit log."""
    own_accounts.audit_own_account(
        AUDIT_ACTIONS[message], user=user, request_id=getattr(request, "id", ""), now=clock.now()
    )


class SignInView(LoginView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "invitation": pending_invitation(self.request)}


class ChooseNewPasswordView(PasswordResetFromKeyView):  # type: ignore[misc]
    """The page that a link of a password reset leads to."""

    def form_valid(self, form: Any) -> HttpResponse:
        """Remember the browser: whoever reads the account's mail is not kept out by failures elsewhere."""
        answer: HttpResponse = super().form_valid(form)
        known_devices.remember_device(self.request, answer, self.reset_user.email)
        return answer


class ActivateTotpView(ActivateTOTPView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        answer: HttpResponse = super().form_valid(form)
        record_account_change(self.request, self.request.user, "mfa/email/totp_activated")
        return answer


class RecoveryCodesView(GenerateRecoveryCodesView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        answer: HttpResponse = super().form_valid(form)
        record_account_change(self.request, self.request.user, "mfa/email/recovery_codes_generated")
        return answer
