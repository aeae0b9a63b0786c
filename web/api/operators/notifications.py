"""Operators' API of queued and sent e-mails; undelivered ones may be retried."""

from typing import Any

from rest_framework import serializers

from billing.models import QueuedEmail, UndeliveredReason
from billing.services.emails import email_delivery
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, NamedOut, OperatorAct, require_field
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class QueuedEmailOut(serializers.ModelSerializer[QueuedEmail]):
    """An e-mail about budgets or invoices.

    It has no text here, since the text is written when it is sent.
    """

    tenant = NamedOut()
    kind = serializers.CharField(help_text="For example `invoice-final` or `budget-stop`.")
    subject_id = serializers.CharField(help_text="ID of the reported object.")
    created_at = serializers.DateTimeField(source="made_at")
    attempt_count = serializers.IntegerField(source="attempts")
    due_at = serializers.DateTimeField(allow_null=True, help_text="Next automatic retry; null: none.")
    last_error = serializers.CharField(help_text="Last error.")
    undelivered_reason = serializers.CharField(
        help_text=(
            "Why it is not sent: `unwanted` by the tenant, `outdated` by a later event, `no_recipient`, or"
            " `given_up` after days of attempts. The last two need attention."
        )
    )

    class Meta:
        model = QueuedEmail
        fields = (
            "tenant",
            "id",
            "kind",
            "subject_id",
            "created_at",
            "due_at",
            "attempt_count",
            "sent_at",
            "last_error",
            "undelivered_reason",
        )


class EmailRetry(StrictSerializer):
    status = serializers.ChoiceField(choices=["waiting"], help_text="Target state.")


class OperatorEmailViewSet(CrossTenantViewSet):
    """E-mails of all tenants.

    Those that need attention are `undelivered_reason=no_recipient` and `undelivered_reason=given_up`.
    """

    area = "system"
    serializer_class, audit_action = QueuedEmailOut, "notifications"
    rows = QueuedEmail.objects.select_related("tenant")
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | {
        "kind": QueryFilter("kind"),
        "undelivered_reason": QueryFilter("undelivered_reason", choices=tuple(UndeliveredReason.values)),
    }

    @OperatorAct(EmailRetry)
    def partial_update(self, email: QueuedEmail, body: dict[str, Any]) -> QueuedEmail:
        """Retry an e-mail that was not delivered. 409 for any other."""
        require_field(body, "status")
        return email_delivery.requeue_email(email, **self.by)
