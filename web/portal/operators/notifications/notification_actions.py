"""Form action that sends an undelivered e-mail again."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from billing.models import QueuedEmail
from billing.services.emails import email_delivery
from tenants.services.errors import ProblemError
from web.portal.operators.page_context import POST, OperatorRequest, find_row, operator_page


@operator_page("notification.resend", methods=POST)
def resend_notification(request: OperatorRequest, pk: str) -> HttpResponse:
    """Queue an undelivered e-mail again."""
    email = find_row(QueuedEmail.objects.all(), pk, _("E-mail"), fix=_("Select it from the list on the System page."))
    try:
        email_delivery.requeue_email(email, actor=request.actor, now=request.now)
    except ProblemError as problem:
        messages.error(request, problem.detail)
    else:
        messages.success(request, _("The e-mail is retried within a minute."))
    return redirect("ops-system")
