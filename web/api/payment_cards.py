"""API of the tenant's payment card, and of Stripe's form to add one."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import PaymentCardForm, PaymentCardFormState, StripeCustomer
from billing.services.payments.stripe import payment_cards
from web.api.base_views import WholeTenantViewSet, needs
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class PaymentCardOut(serializers.ModelSerializer[StripeCustomer]):
    """A saved payment card; only Stripe knows its number."""

    id = serializers.CharField(source="card_id")
    ends = serializers.CharField(help_text="Expiry month, for example 2029-07.")
    added_at = serializers.DateTimeField()

    class Meta:
        model = StripeCustomer
        fields = ("id", "brand", "last4", "ends", "added_at", "added_by")


class PaymentCardFormOut(serializers.ModelSerializer[PaymentCardForm]):
    """A form at Stripe.

    `url` is set while it is `open`: a person opens it in a browser, within a day.
    """

    url = serializers.SerializerMethodField(help_text="Set for users who may add a payment card; otherwise empty.")
    requested_at = serializers.DateTimeField(source="asked_at")
    requested_by_label = serializers.CharField(source="asked_by")
    reason = serializers.CharField(help_text="Why it failed or is not open yet, for people.")

    class Meta:
        model = PaymentCardForm
        fields = ("id", "state", "url", "reason", "requested_at", "requested_by_label", "settled_at")

    def get_url(self, form: PaymentCardForm) -> str:
        return form.url if self.context["request"].roles.may("billing.write", ()) else ""


class PaymentCardViewSet(ListModelMixin, WholeTenantViewSet):
    """The payment card invoices are collected with: one, or none.

    A newly saved card replaces it.
    """

    serializer_class = PaymentCardOut
    rows = StripeCustomer.objects.exclude(card_id="")
    sorts = ("id",)
    actions_needed = needs("billing.read", "list")


class PaymentCardFormViewSet(ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Forms at Stripe in which a person adds a payment card."""

    serializer_class = PaymentCardFormOut
    rows = PaymentCardForm.objects.all()
    filters = {"state": QueryFilter("state", choices=tuple(PaymentCardFormState.values))}
    actions_needed = needs("billing.read", "list", "retrieve") | needs("billing.write", "create")

    @extend_schema(request=None, responses={202: PaymentCardFormOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Request a form; it opens within seconds, and has its address then."""
        form = payment_cards.request_card_form(self.request.tenant, **self.by)
        where = {"Location": f"/api/v1/payment-card-forms/{form.pk}"}
        return Response(self.get_serializer(form).data, status=202, headers=where)
