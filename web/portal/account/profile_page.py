"""Account page: the user's name, with links to password, second factor and passkeys."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ports import clock
from tenants.services import own_accounts
from web.portal.authentication import enter_tenant_of_session, has_second_factor, sign_in_required
from web.portal.forms import NameForm


@require_http_methods(["GET", "POST"])
@sign_in_required
def edit_profile(request: Any) -> HttpResponse:
    """Show the user's account; a POST changes the name."""
    enter_tenant_of_session(request)  # for the layout; users without a tenant have an account too
    form = NameForm(request.POST or None, initial={"name": request.user.name})
    if request.method == "POST" and form.is_valid():
        own_accounts.rename(
            request.user, name=form.cleaned_data["name"], request_id=getattr(request, "id", ""), now=clock.now()
        )
        return redirect("account")
    context = {"form": form, "second_factor": has_second_factor(request.user)}
    return render(request, "account/profile.html", context)
