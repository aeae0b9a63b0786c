"""Credit notes: what of final invoices was given back, and why."""

from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request

from billing.api import papers
from billing.api.amounts import MoneyOut, money
from billing.models import CreditNote, CreditNoteLine
from billing.services.papers import keeping
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet


class CreditNoteLineOut(serializers.ModelSerializer[CreditNoteLine]):
    """What is given back of one line of the invoice."""

    n = serializers.IntegerField(source="line.n", help_text="The line's number on its invoice.")
    amount = serializers.SerializerMethodField()
    tax = serializers.SerializerMethodField(help_text="The tax that goes back with it, beside the amount.")

    class Meta:
        model = CreditNoteLine
        fields = ("n", "amount", "tax")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, line: CreditNoteLine) -> dict[str, str]:
        return money(line.minor, line.credit_note.currency)

    @extend_schema(responses=MoneyOut)
    def get_tax(self, line: CreditNoteLine) -> dict[str, str]:
        return money(line.tax_minor, line.credit_note.currency)


class CreditNoteOut(serializers.ModelSerializer[CreditNote]):
    """So much of an invoice is not owed after all. It never changes."""

    invoice = serializers.CharField(source="invoice_id")
    number = serializers.CharField(source="__str__")
    total = serializers.SerializerMethodField()
    tax = serializers.SerializerMethodField(help_text="Of it, the tax.")
    off_due = serializers.SerializerMethodField(help_text="Of it, what was still to be paid.")
    to_balance = serializers.SerializerMethodField(
        help_text="Of it, what was paid already: the next invoice that becomes final is settled from it first."
    )
    to_grants = serializers.SerializerMethodField(
        help_text="Of it, what grants had paid and have back; all money that was paid goes to the balance first."
    )
    lines = CreditNoteLineOut(many=True)

    class Meta:
        model = CreditNote
        fields = (
            "id",
            "number",
            "invoice",
            "reason",
            "total",
            "tax",
            "off_due",
            "to_balance",
            "to_grants",
            "lines",
            "issued_at",
        )

    @extend_schema(responses=MoneyOut)
    def get_total(self, note: CreditNote) -> dict[str, str]:
        return money(note.total, note.currency)

    @extend_schema(responses=MoneyOut)
    def get_tax(self, note: CreditNote) -> dict[str, str]:
        return money(note.tax, note.currency)

    @extend_schema(responses=MoneyOut)
    def get_off_due(self, note: CreditNote) -> dict[str, str]:
        return money(note.off_due, note.currency)

    @extend_schema(responses=MoneyOut)
    def get_to_balance(self, note: CreditNote) -> dict[str, str]:
        return money(note.to_balance, note.currency)

    @extend_schema(responses=MoneyOut)
    def get_to_grants(self, note: CreditNote) -> dict[str, str]:
        return money(note.to_grants, note.currency)


def with_lines(notes: QuerySet[CreditNote]) -> QuerySet[CreditNote]:
    """Have each note's lines at hand, by number; two queries."""
    lines = CreditNoteLine.objects.select_related("line", "credit_note").order_by("line__n")
    return notes.prefetch_related(Prefetch("lines", lines))


class CreditNotes(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Credit notes are the whole tenant's, as its invoices are. Operators issue them."""

    serializer_class = CreditNoteOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"invoice": Filter("invoice_id")}
    actions_needed = {"list": "billing.read", "retrieve": "billing.read", "pdf": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[CreditNote]:
        return self.visible(with_lines(CreditNote.objects.all()))

    @extend_schema(responses=papers.PDF, filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=papers.RENDERERS)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the credit note as PDF; it has the same bytes for ever."""
        return papers.sent(request, keeping.credit_note_paper(self.get_object(), now=self.now))
