"""How people's accounts come to be: allauth's views and adapter with our rules."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.views import EmailVerificationSentView, LoginView, SignupView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.sites.shortcuts import get_current_site
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from ports import clock
from tenants.domain.text import NAME_LENGTH
from tenants.models import User
from tenants.portal.sessions import SESSION_JOIN
from tenants.services import invitations, own_accounts, tenants
from tenants.services.actors import Actor
from tenants.services.refusals import Missing

# What allauth tells a person by mail of a change of their account, and what the trail calls it.
CHANGES = {
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
TOLD_LATE = {  # once the change is kept, when its row could be lost: the pages below write that along with the change
    "mfa/email/totp_activated",
    "mfa/email/recovery_codes_generated",
}
LONGEST_EMAIL = User._meta.get_field("email").max_length or 254


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth's adapter: addresses in lower case, a tenant for who comes uninvited, and where to go then."""

    def clean_email(self, email: str) -> str:
        if len(email) > LONGEST_EMAIL:  # allauth would cut it, and write to somebody else
            raise ValidationError(f"An address has at most {LONGEST_EMAIL} characters.")
        return str(super().clean_email(email)).lower()

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send once the request's transaction has ended: no mail server is waited for inside it."""
        around = {"request": self.request, "email": email, "current_site": get_current_site(self.request)}
        letter = self.render_mail(template_prefix, email, {**around, **context})

        def post() -> None:
            letter.send()

        transaction.on_commit(post, robust=True)

    def send_notification_mail(
        self,
        template_prefix: str,
        user: User,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        """Write a change of somebody's account into the trail, wherever allauth would tell them of it."""
        if template_prefix in CHANGES and template_prefix not in TOLD_LATE:
            note(self.request, user, template_prefix)
        super().send_notification_mail(template_prefix, user, context, email)

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Keep a new person; somebody without an invitation becomes owner of a tenant of their own."""
        now = clock.now()
        user.joined_at = now
        saved: User = super().save_user(request, user, form, commit)
        if commit and SESSION_JOIN not in request.session:
            actor = Actor("user", saved.pk, saved.email, getattr(request, "id", ""))
            tenants.create(name=saved.get_short_name()[:NAME_LENGTH], owner=saved, actor=actor, now=now)
        return saved

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Go on to the invitation one came with, or home."""
        if secret := request.session.get(SESSION_JOIN):
            return reverse("join", args=[secret])
        return str(super().get_login_redirect_url(request))

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        return self.get_login_redirect_url(request)


def note(request: HttpRequest, user: User, letter: str) -> None:
    """Write what a letter of allauth tells of into the trail."""
    own_accounts.note(CHANGES[letter], user=user, request_id=getattr(request, "id", ""), now=clock.now())


def invitation_of(request: HttpRequest) -> dict[str, str] | None:
    """Return the invitation the visitor came with, for the words above the form."""
    secret = request.session.get(SESSION_JOIN)
    if not secret:
        return None
    try:
        offer = invitations.look(secret, now=clock.now())
    except Missing:
        del request.session[SESSION_JOIN]
        return None
    return {"tenant": offer.tenant_name, "role": offer.role.value, "email": offer.email}


class SignIn(LoginView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "invitation": invitation_of(self.request)}


class SignUp(SignupView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        if form.account_already_exists:
            make_password(form.cleaned_data["password1"])  # it takes as long as for a new account
        answer: HttpResponse = super().form_valid(form)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "invitation": invitation_of(self.request)}


class LetterSent(EmailVerificationSentView):  # type: ignore[misc]
    """The answer to every sign-up, whether the address was known or not."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "mail_goes_out": settings.MAIL_GOES_OUT}


class AppAdded(ActivateTOTPView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        answer: HttpResponse = super().form_valid(form)
        note(self.request, self.request.user, "mfa/email/totp_activated")
        return answer


class NewRecoveryCodes(GenerateRecoveryCodesView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        answer: HttpResponse = super().form_valid(form)
        note(self.request, self.request.user, "mfa/email/recovery_codes_generated")
        return answer
