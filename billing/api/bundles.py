"""The bundle of an invoice on the wire: its shape for programs, and how it is sent."""

from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework import serializers

from billing.models import Invoice
from billing.services import bundles

AT_ONCE = 1_000_000  # bytes


class HeadOut(serializers.Serializer[Any]):
    """`total` counts the smallest coin, of which 10^decimals are one unit; a draft has no number."""

    id = serializers.CharField()
    tenant = serializers.CharField()
    number = serializers.CharField(allow_null=True)
    month = serializers.CharField()
    currency = serializers.CharField()
    decimals = serializers.IntegerField()
    total = serializers.IntegerField()


class BundleMonthOut(serializers.Serializer[Any]):
    """Each border is midnight of the first in its zone."""

    label = serializers.CharField()  # type: ignore[assignment]  # DRF's own is set per instance
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    start_zone = serializers.CharField()
    end_zone = serializers.CharField()


class PricedOut(serializers.Serializer[Any]):
    """10⁻⁹ currency units an hour, in digits; without an end: beyond these months."""

    id = serializers.IntegerField()
    offering = serializers.CharField()
    nano_per_hour = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)
    own = serializers.BooleanField(required=False)
    free_start_s = serializers.IntegerField(required=False)


class FactsOfLineOut(serializers.Serializer[Any]):
    """`exact` is the amount over 3600·10⁹, in digits; `minor` is that, rounded once, half up."""

    n = serializers.IntegerField()
    project = serializers.CharField()
    offering = serializers.CharField()
    price = serializers.IntegerField()
    leases = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    given_back_s = serializers.IntegerField(required=False)
    given_back = serializers.CharField(required=False)
    exact = serializers.CharField()
    minor = serializers.IntegerField()


class LateOut(serializers.Serializer[Any]):
    """What transition `seq` began, as far as it fell into that month."""

    seq = serializers.IntegerField()
    month = serializers.CharField()


class StepOut(serializers.Serializer[Any]):
    """A transition; its terms hold until the next one."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    state = serializers.CharField()
    offering = serializers.CharField()
    project = serializers.CharField()
    quantity = serializers.IntegerField()
    taken = serializers.BooleanField(required=False)


class PromiseOut(serializers.Serializer[Any]):
    """The price that a lease keeps, of the quote that it cites; `cap` is what all of its time comes to, as a line."""

    quote = serializers.CharField()
    price = serializers.IntegerField()
    offering = serializers.CharField()
    nano_per_hour = serializers.CharField()
    quantity = serializers.IntegerField()
    max_duration_s = serializers.IntegerField()
    cap = serializers.IntegerField()
    made = serializers.DateTimeField()
    expires = serializers.DateTimeField()
    cited = serializers.DateTimeField()


class LifeOut(serializers.Serializer[Any]):
    """A lease up to the end of its last charged stretch; `late` are stretches of months that were closed before."""

    id = serializers.CharField()
    promised = PromiseOut(allow_null=True)
    late = LateOut(many=True)
    steps = StepOut(many=True)


class BundleOut(serializers.Serializer[Any]):
    """Everything that an invoice follows from; `sha256` is that of all bytes before its name."""

    format = serializers.CharField()
    version = serializers.IntegerField()
    invoice = HeadOut()
    months = BundleMonthOut(many=True)
    prices = PricedOut(many=True)
    lines = FactsOfLineOut(many=True)
    leases = LifeOut(many=True)
    sha256 = serializers.CharField()


def sent(invoice: Invoice) -> HttpResponseBase:
    """Answer with an invoice's bundle as a file; a large one is read and sent piece by piece."""
    made = bundles.bundle(invoice)
    whole = made.whole(most=AT_ONCE)
    answer = HttpResponse(whole) if whole is not None else StreamingHttpResponse(iter(made))
    answer["Content-Type"] = "application/json"
    answer["Content-Disposition"] = f'attachment; filename="{bundles.file_name(invoice)}"'
    return answer
