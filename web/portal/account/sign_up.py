"""Sign-up: form, page, and the tenant created once the address is confirmed."""

from datetime import datetime
from typing import Any

from allauth.account.forms import SignupForm
from allauth.account.stages import EmailVerificationStage, LoginStageController
from allauth.account.utils import has_verified_email
from allauth.account.views import EmailVerificationSentView, SignupView
from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.services.new_tenants import tenant_creation
from ports import clock
from tenants.models import User
from tenants.services import sign_ups
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.sign_ups import SignUpClosed
from web.portal.account.pending_invitations import pending_invitation
from web.portal.account.tenant_fields import tenant_fields, trial_offers


def client_address(request: HttpRequest) -> str:
    """Return the visitor's IP address, behind the proxies that are trusted."""
    return str(ratelimit.get_ip(request) or "")


def may_create_account(request: HttpRequest) -> bool:
    """Return whether a visitor may create an account, with an address that is allowed.

    The first operator may, since nobody could invite them.
    """
    if settings.SIGN_UP != sign_ups.BY_INVITATION or pending_invitation(request) is not None:
        return True
    return not User.objects.filter(is_staff=True).exists()


class SignUpForm(SignupForm):  # type: ignore[misc]
    """allauth's form, and the tenant to be created unless the visitor was invited."""

    def __init__(self, *args: Any, wants_tenant: bool = False, now: datetime | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.wants_tenant = wants_tenant
        if wants_tenant:
            self.fields.update(tenant_fields(now or clock.now()))

    def clean_email(self) -> str:
        """Refuse an address that may not sign up without an invitation."""
        email = str(super().clean_email())
        if self.wants_tenant:
            try:
                sign_ups.require_sign_up_open(email)
            except SignUpClosed as closed:
                raise ValidationError(f"{closed.detail} {closed.fix.text}") from None
        return email


class SignUpView(SignupView):  # type: ignore[misc]
    def get_form_kwargs(self) -> dict[str, Any]:
        """Ask for a tenant unless the visitor was invited, or sign-up is closed."""
        wants = settings.SIGN_UP != sign_ups.BY_INVITATION and pending_invitation(self.request) is None
        return {**super().get_form_kwargs(), "wants_tenant": wants, "now": clock.now()}

    def form_valid(self, form: Any) -> HttpResponse:
        if form.account_already_exists:
            make_password(form.cleaned_data["password1"])  # so that the response takes as long as for a new account
        answer: HttpResponse = super().form_valid(form)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        offers = trial_offers(clock.now()) if context["form"].wants_tenant else []
        return {**context, "invitation": pending_invitation(self.request), "trial_offers": offers}


class VerificationSentView(EmailVerificationSentView):  # type: ignore[misc]
    """Page shown after every sign-up, whether the address was known or not.

    Once its link was opened, maybe on another device, a POST signs in without asking for the password again.
    """

    def post(self, request: HttpRequest) -> HttpResponse:
        """Sign in whoever entered the right password here and has confirmed the address since."""
        stage = LoginStageController.enter(request, EmailVerificationStage.key)
        user = stage.login.user if stage else None
        if user is not None and has_verified_email(user, stage.login.email):
            answer: HttpResponse = stage.exit()
            return answer
        unchanged: HttpResponse = self.render_to_response(self.get_context_data(not_confirmed=True))
        return unchanged

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        local_mail_url = reverse("local-mail") if settings.LOCAL_MAIL else ""
        mail = {"mail_goes_out": settings.MAIL_IS_CONFIGURED, "local_mail_url": local_mail_url}
        return {**super().get_context_data(**kwargs), **mail}


def keep_wanted_tenant(user: User, form: Any, *, now: datetime) -> None:
    """Keep the tenant that a new account asked for, until its address is confirmed."""
    if getattr(form, "wants_tenant", False):
        given = form.cleaned_data
        sign_ups.remember_sign_up(
            user,
            organisation=given["organisation"],
            country=given["country"],
            currency=given["currency"],
            time_zone=given["time_zone"],
            now=now,
        )


def create_wanted_tenant(request: HttpRequest, user: User) -> None:
    """Create the tenant that a confirmed account asked for.

    A refusal is shown on the next page.
    """
    actor = Actor("user", user.pk, user.email, getattr(request, "id", ""))
    try:
        tenant = tenant_creation.found_wanted_tenant(
            user, ip_address=client_address(request), actor=actor, now=clock.now()
        )
    except ProblemError as refusal:
        messages.error(request, f"{refusal.detail} {refusal.fix.text}")
    else:
        if tenant is not None and tenant.is_new:
            messages.info(
                request,
                _(
                    "{name} is a new tenant: it pays in advance and holds few GPUs until an operator has released it."
                ).format(name=tenant.name),
            )
