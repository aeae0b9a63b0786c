"""Letters that did not reach anybody, or not yet: those that wait for a person may be tried again."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Letter, Unsent
from billing.services.post import delivering
from broker.api.all_leases import Named
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls


class LetterOut(serializers.ModelSerializer[Letter]):
    """A letter about budgets or invoices, without its text: what it is about is worded when it is sent."""

    tenant = Named()
    kind = serializers.CharField(help_text="Such as `invoice-final` or `budget-stop`.")
    about = serializers.CharField(help_text="The id of what it tells of.")
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When it is tried next; null: no more by itself."
    )
    trouble = serializers.CharField(help_text="What went wrong last.")
    unsent = serializers.CharField(
        help_text=(
            "Why nothing more is done: `unwanted` by its tenant, `overtaken` by what came after, to `nobody`, or"
            " `given_up` after days. The last two wait for a person."
        )
    )

    class Meta:
        model = Letter
        fields = (
            "tenant",
            "id",
            "kind",
            "about",
            "made_at",
            "due_at",
            "tries",
            "sent_at",
            "trouble",
            "unsent",
        )


class OpsLetters(AllTenants):
    """Letters of all tenants. Those that wait for a person are `unsent=nobody` and `unsent=given_up`."""

    serializer_class, rows, visit = LetterOut, Letter, "letters"
    sorts = ("id", "-id")
    filters = {
        "tenant": Filter("tenant_id"),
        "kind": Filter("kind"),
        "unsent": Filter("unsent", choices=tuple(Unsent.values)),
    }

    def get_queryset(self) -> QuerySet[Letter]:
        return Letter.objects.select_related("tenant")


class Waits(Strict):
    status = serializers.ChoiceField(choices=["waiting"], help_text="What it is to be.")


class OpsLettersAgain(AllTenants):
    """A letter that waits for a person."""

    serializer_class, rows, visit = LetterOut, Letter, "letters"

    def get_queryset(self) -> QuerySet[Letter]:
        return Letter.objects.select_related("tenant")

    @extend_schema(
        request=Waits,
        responses={200: LetterOut},
        description="Have a letter that reached nobody tried again. 409 for any other.",
    )
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Try it again."""
        with walls.as_staff():
            row = self.get_object()
        shape(Waits, request)
        delivering.try_again(row, actor=self.actor, now=self.now)
        with walls.as_staff():
            return Response(LetterOut(self.get_object()).data)
