"""Since when storage is sold: since its first price on the list. What volumes were before is charged to nobody."""

from datetime import datetime

from django.db.models import Min
from django.db.models.functions import Lower

from billing.models import PriceVersion
from broker.models import OfferingState, VolumeStep
from tenants.services.walls import as_sweep


def sold_since() -> datetime | None:
    """Return when the first price of storage on the list begins; None where nobody has set one."""
    listed = PriceVersion.objects.listed().filter(offering__state=OfferingState.METERED)
    first: datetime | None = listed.aggregate(first=Min(Lower("valid")))["first"]
    return first


def was_counted(since: datetime) -> bool:
    """Tell whether volumes were counted beyond a moment already: storage can no longer begin to be sold then."""
    with as_sweep():
        return VolumeStep.objects.filter(seq__gt=0, at__gt=since).exists()
