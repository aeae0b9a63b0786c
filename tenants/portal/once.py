"""A form that shows a secret is sent once: what a reload of its answer sends again makes nothing new."""

from datetime import datetime
from typing import Any

from ports import ids
from tenants.services import answers

FIELD = "once"  # hidden in the form; another for each page that shows it


def fresh() -> str:
    """Return what tells this form from every other."""
    return ids.secret()


def sent(request: Any) -> answers.Asked | None:
    """Return what makes the form the same one: all that is in it. None where it does not say which it is.

    Who goes back and fills in something else sends another form.
    """
    if not request.POST.get(FIELD):
        return None
    filled = {name: texts for name, texts in request.POST.lists() if name != "csrfmiddlewaretoken"}
    return answers.Asked(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=answers.digest_of(filled),
        digest="",
    )


def before(form: answers.Asked | None) -> bool:
    """Tell whether it was sent before; if not, it is ours to work on until the request ends."""
    return form is not None and answers.find(form) is not None


def done(form: answers.Asked | None, *, now: datetime) -> None:
    """Note, with its effect, that it was sent. The secret it made is not kept."""
    if form is not None:
        answers.keep(form, status=303, headers={}, body="", now=now)
