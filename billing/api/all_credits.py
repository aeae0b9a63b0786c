"""Credit notes that operators issue: what of a final invoice should not have been charged."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.all_invoices import CreditNoteSeenOut
from billing.api.all_moves import Because
from billing.api.credit_notes import with_lines
from billing.domain.money import NotAnAmount, minor_of
from billing.models import CreditNote, Invoice
from billing.services import crediting
from tenants.api.fields import Strict
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls
from tenants.services.refusals import Invalid

LONGEST_AMOUNT, MOST_LINES, BIGGEST = 20, 1000, 10**9


class CreditedLine(Strict):
    n = serializers.IntegerField(min_value=1, max_value=BIGGEST, help_text="The line's number.")
    amount = serializers.CharField(max_length=LONGEST_AMOUNT, help_text="Of it, before tax, such as 12.50.")


class CreditWanted(Because):
    lines = serializers.ListField(
        child=CreditedLine(),
        required=False,
        min_length=1,
        max_length=MOST_LINES,
        help_text="What goes back of which lines. Left out: all that is left of the invoice.",
    )
    seen = serializers.CharField(
        max_length=LONGEST_AMOUNT,
        help_text="How much of it, before tax, was given back when you looked, so that asked twice it goes back once.",
    )


class OpsCredits(AllTenants):
    """A credit note of an invoice."""

    serializer_class, rows, visit = CreditNoteSeenOut, Invoice, "invoices"

    @extend_schema(
        request=CreditWanted,
        responses={200: CreditNoteSeenOut},
        description=(
            "Give back so much of some lines of a final invoice, with the tax on it, or all that is left of it. It"
            " cannot be taken back. 409 for a draft, a void invoice, while a payment of it is under way, and where more"
            " was given back than was seen."
        ),
        filters=False,
    )
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give it back."""
        with walls.as_staff():
            invoice: Invoice = self.get_object()
        asked = shape(CreditWanted, request)
        made = crediting.credit(
            invoice,
            wanted=_wanted(asked["lines"], invoice.currency) if "lines" in asked else None,
            seen=_minor(asked["seen"], invoice.currency, "seen"),
            why=asked["reason"],
            actor=self.actor,
            now=self.now,
        )
        with walls.as_staff():
            notes: QuerySet[CreditNote] = with_lines(CreditNote.objects.select_related("tenant"))
            return Response(CreditNoteSeenOut(notes.get(pk=made.pk)).data)


def _wanted(lines: list[dict[str, Any]], currency: str) -> dict[int, int]:
    """Return the amounts by number of line, or raise Invalid for one that is named twice."""
    found = dict[int, int]()
    for line in lines:
        if line["n"] in found:
            raise Invalid("lines", f"Line {line['n']} is named twice.", fix="Name each line once.")
        found[line["n"]] = _minor(line["amount"], currency, "lines")
    return found


def _minor(text: str, currency: str, field: str) -> int:
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid(field, str(odd), fix="Send an amount such as 12.50.") from odd
