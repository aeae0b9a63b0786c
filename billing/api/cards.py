"""The card that a tenant pays with, and Stripe's form to type one into."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import CardForm, CardFormState, StripeCustomer
from billing.services.stripe import cards
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.views import TenantViewSet


class SavedCardOut(serializers.ModelSerializer[StripeCustomer]):
    """A saved card. Its number is known to Stripe alone."""

    id = serializers.CharField(source="card_id")
    ends = serializers.CharField(help_text="The last month in which it is good, such as 2029-07.")
    added_at = serializers.DateTimeField()

    class Meta:
        model = StripeCustomer
        fields = ("id", "brand", "last4", "ends", "added_at", "added_by")


class CardFormOut(serializers.ModelSerializer[CardForm]):
    """A form at Stripe. `url` is there while it is `open`: a person opens it in a browser, within a day."""

    url = serializers.SerializerMethodField(help_text="For those who may add a card; to others it is empty.")
    reason = serializers.CharField(help_text="Why it failed, or why it is not open yet, for people.")

    class Meta:
        model = CardForm
        fields = ("id", "state", "url", "reason", "asked_at", "asked_by", "settled_at")

    def get_url(self, form: CardForm) -> str:
        return form.url if self.context["request"].roles.may("billing.write", ()) else ""


class Cards(ListModelMixin, TenantViewSet):
    """The card that invoices are collected with: one, or none. Another takes its place once it is saved."""

    serializer_class = SavedCardOut
    sorts: ClassVar[tuple[str, ...]] = ("id",)
    actions_needed = {"list": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[StripeCustomer]:
        return self.visible(StripeCustomer.objects.exclude(card_id=""))


class CardForms(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Forms in which somebody adds a card, at Stripe."""

    serializer_class = CardFormOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"state": Filter("state", choices=tuple(CardFormState.values))}
    actions_needed = {"list": "billing.read", "retrieve": "billing.read", "create": "billing.write"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[CardForm]:
        return self.visible(CardForm.objects.all())

    @extend_schema(request=None, responses={202: CardFormOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Ask for a form; it is open within seconds, and has its address then."""
        form = cards.ask(self.request.tenant, actor=self.request.actor, now=self.now)
        where = {"Location": f"/api/v1/card-forms/{form.pk}"}
        return Response(self.get_serializer(form).data, status=202, headers=where)
