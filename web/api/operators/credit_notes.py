"""Operators' API of all tenants' credit notes."""

from drf_spectacular.utils import extend_schema, extend_schema_view

from web.api import documents
from web.api.credit_notes import CreditNoteOut, CreditNoteRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, TenantNamed


class OperatorCreditNoteOut(TenantNamed, CreditNoteOut):
    """A credit note and its tenant."""


@extend_schema_view(
    pdf=extend_schema(
        responses=documents.PDF,
        filters=False,
        description="Return the credit note as PDF; the same as its tenant gets.",
    )
)
class OperatorCreditNoteViewSet(CreditNoteRows, CrossTenantViewSet):
    """Credit notes of all tenants."""

    area = "billing"
    serializer_class, audit_action = OperatorCreditNoteOut, "credit-notes"
    filters = TENANT_FILTER | CreditNoteRows.filters
