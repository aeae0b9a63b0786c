"""Serializers of an invoice's verification bundle."""

from typing import Any

from rest_framework import serializers


class BundleInvoiceOut(serializers.Serializer[Any]):
    """Head of an invoice; a draft has no number.

    `total` is in minor units, of which 10^decimals are one unit.
    """

    id = serializers.CharField()
    tenant = serializers.CharField()
    number = serializers.CharField(allow_null=True)
    month = serializers.CharField()
    currency = serializers.CharField()
    decimals = serializers.IntegerField()
    total = serializers.IntegerField()


class BundleMonthOut(serializers.Serializer[Any]):
    """A month; each boundary is midnight of the first in its time zone."""

    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    start_zone = serializers.CharField()
    end_zone = serializers.CharField()


class BundlePriceOut(serializers.Serializer[Any]):
    """A price in 10⁻⁹ currency units per hour, as digits.

    Without an end it lasts beyond these months.
    """

    id = serializers.IntegerField()
    offering = serializers.CharField()
    nano_per_hour = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)
    own = serializers.BooleanField(required=False)
    free_start_s = serializers.IntegerField(required=False)


class BundleLineOut(serializers.Serializer[Any]):
    """An invoice line.

    `exact` is the amount times 3600·10⁹, as digits; `minor` is that amount, rounded once, half up.
    """

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


class BundleLateOut(serializers.Serializer[Any]):
    """Interval begun by transition `seq`, as far as it fell into that month."""

    seq = serializers.IntegerField()
    month = serializers.CharField()


class BundleTransitionOut(serializers.Serializer[Any]):
    """A transition; its terms hold until the next one."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    state = serializers.CharField()
    offering = serializers.CharField()
    project = serializers.CharField()
    quantity = serializers.IntegerField()
    taken = serializers.BooleanField(required=False)


class BundleQuoteOut(serializers.Serializer[Any]):
    """Price fixed by the quote of a lease.

    `cap` is the amount for its whole duration, as one line.
    """

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


class BundleLeaseOut(serializers.Serializer[Any]):
    """A lease up to the end of its last charged interval.

    `late` are intervals of months that were closed before.
    """

    id = serializers.CharField()
    promised = BundleQuoteOut(allow_null=True)
    late = BundleLateOut(many=True)
    steps = BundleTransitionOut(many=True)


class BundleOut(serializers.Serializer[Any]):
    """Everything an invoice is computed from.

    `sha256` is the hash of all bytes before its own name.
    """

    format = serializers.CharField()
    version = serializers.IntegerField()
    invoice = BundleInvoiceOut()
    months = BundleMonthOut(many=True)
    prices = BundlePriceOut(many=True)
    lines = BundleLineOut(many=True)
    leases = BundleLeaseOut(many=True)
    sha256 = serializers.CharField()
