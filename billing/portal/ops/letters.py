"""Letters that reached nobody: having one tried again, once what kept it is mended."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from billing.models import Letter
from billing.services.post import delivering
from broker.portal.operations import OpsRequest, page
from tenants.services.refusals import Missing, Refused
from tenants.services.walls import as_staff


@require_POST
@page("letter.again")
def again(request: OpsRequest, pk: str) -> HttpResponse:
    """Have a letter that waits for a person tried again."""
    with as_staff():
        letter = Letter.objects.filter(pk=pk).first()
    if letter is None:
        raise Missing(f"There is no letter {pk!r}.", fix="Go to the list of those that wait.")
    try:
        delivering.try_again(letter, actor=request.actor, now=request.now)
    except Refused as said:
        messages.error(request, said.detail)
    else:
        messages.success(request, "It is tried again within a minute.")
    return redirect("ops-system")
