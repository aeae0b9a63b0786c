"""The account page: one's name, and the way to password, second factor and passkeys."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ports import clock
from tenants.portal.doors import enter, has_second_factor, signed_in
from tenants.portal.forms import NameForm
from tenants.services import own_accounts


@require_http_methods(["GET", "POST"])
@signed_in
def page(request: Any) -> HttpResponse:
    """Show who one is; change the name."""
    enter(request)  # for the frame; somebody without a tenant has an account too
    form = NameForm(request.POST or None, initial={"name": request.user.name})
    if request.method == "POST" and form.is_valid():
        own_accounts.rename(
            request.user,
            name=form.cleaned_data["name"],
            request_id=getattr(request, "id", ""),
            now=clock.now(),
        )
        return redirect("account")
    told = {"form": form, "second_factor": has_second_factor(request.user)}
    return render(request, "tenants/account.html", told)
