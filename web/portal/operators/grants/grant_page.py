"""Page on which operators grant credit to a tenant."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.services.funds.grants import new_grants
from broker.models import Offering, OfferingState
from ports import ids
from tenants.models import Project, Tenant
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.grants.grant_form import GrantForm, idempotency_key, parse_grant_terms
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page
from web.portal.operators.pricing.offering_lists import price_class_text


@operator_page("grant", methods=SAFE_OR_POST)
def grant_credit(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show the grant form of a tenant; a POST grants the credit."""
    tenant = find_row(Tenant.objects.all(), pk, _("Tenant"), fix=_("Select it from the list of tenants."))
    with staff_scope():
        projects = list(Project.objects.filter(tenant=tenant).order_by("path__len", "name"))
    offerings = list(Offering.objects.filter(state=OfferingState.PUBLISHED).order_by("label", "pk"))
    form = GrantForm.of(request.POST) if request.method == "POST" else GrantForm(name=ids.new("gra"))

    def give() -> str:
        terms = parse_grant_terms(form, tenant, projects, offerings)
        grant = new_grants.give_grant(tenant, terms, idem=idempotency_key(form), actor=request.actor, now=request.now)
        return _("{amount} of credit granted to {tenant_name}.").format(
            amount=Money(grant.minor, grant.currency), tenant_name=tenant.name
        )

    return form_page(
        request,
        "operators/grants/grant.html",
        lambda refusal: GrantPage(tenant, projects, offerings, form, refusal),
        give,
        back=f"{reverse('ops-grants')}?tenant={tenant.pk}",
    )


@dataclass(frozen=True, slots=True)
class GrantPage:
    """The form that grants credit to a tenant."""

    tenant: Tenant
    projects: list[Project]
    offerings: list[Offering]
    form: GrantForm
    refusal: ProblemError | None

    @property
    def offering_choices(self) -> list[tuple[str, str]]:
        return [(each.pk, f"{each.label} · {price_class_text(each)} · {each.region}") for each in self.offerings]

    @property
    def field(self) -> str:
        """Return the refused field."""
        return self.refusal.field if isinstance(self.refusal, InvalidValue) else ""

    @property
    def said(self) -> str:
        return f"{self.refusal.detail} {self.refusal.fix.text}" if self.refusal else ""

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(
                _("Credits of this tenant"), "ops/grants", tenant=self.tenant.pk, sort="-id", limit=API_PAGE_SIZE
            )
        ]
