"""Local e-mails: what `make run` keeps on this machine instead of sending it."""

from collections.abc import Callable
from functools import wraps

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ports import local_mail
from web.http.middleware import is_proxied

LOOPBACK = ("127.0.0.1", "::1")
SHOWN = 50


def from_this_machine(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer only browsers on this machine: the links in e-mails sign people in."""

    @require_safe
    @never_cache
    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.META.get("REMOTE_ADDR") not in LOOPBACK or is_proxied(request):
            raise Http404
        return view(request, *args, **kwargs)

    return answer


@from_this_machine
def show_local_emails(request: HttpRequest) -> HttpResponse:
    """Show the latest e-mails."""
    return render(request, "local_mail/local_mail.html", {"emails": local_mail.read_local_emails()[:SHOWN]})


@from_this_machine
def download_attachment(request: HttpRequest, email_id: str, number: int) -> HttpResponse:
    """Download an attachment of an e-mail, by its number from 0 on."""
    found = next((email for email in local_mail.read_local_emails() if email.id == email_id), None)
    if found is None or number >= len(found.attachments):
        raise Http404
    attachment = found.attachments[number]
    return HttpResponse(
        attachment.body,
        content_type=attachment.kind,
        headers={"Content-Disposition": f'attachment; filename="{attachment.name}"'},
    )
