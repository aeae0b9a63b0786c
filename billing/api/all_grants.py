"""Grants of all tenants, for operators."""

from typing import Any, ClassVar

from django.db.models import QuerySet

from billing.api.grant_shapes import CreditOut
from billing.api.grants import tell, whole
from billing.models import Grant
from broker.api.all_leases import Named
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants


class CreditSeenOut(CreditOut):
    """A grant, and whose."""

    tenant = Named()

    class Meta(CreditOut.Meta):
        fields = ("tenant", *CreditOut.Meta.fields, "given_by")  # type: ignore[assignment]


class OpsGrants(AllTenants):
    """Credit that tenants have, or had."""

    serializer_class, rows, visit = CreditSeenOut, Grant, "grants"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"tenant": Filter("tenant_id")}

    def get_queryset(self) -> QuerySet[Grant]:
        return whole(Grant.objects.select_related("tenant"))

    def paginate_queryset(self, queryset: Any) -> Any:
        return tell(super().paginate_queryset(queryset) or [], self.now)

    def get_object(self) -> Grant:
        (found,) = tell([super().get_object()], self.now)
        return found
