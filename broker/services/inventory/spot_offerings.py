"""Terms of spot offerings: their own, or those of the installation."""

from django.conf import settings

from broker.domain.lifecycle.spot_terms import SpotTerms
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering


def spot_terms_of(offering: Offering) -> SpotTerms | None:
    """Return the spot terms of a new lease; None if it is never reclaimed."""
    if offering.price_class != PriceClass.SPOT:
        return None
    notice_s, min_runtime_s = offering.spot_notice_s, offering.spot_min_runtime_s
    return SpotTerms(
        settings.SPOT_NOTICE_S if notice_s is None else notice_s,
        settings.SPOT_MIN_RUNTIME_S if min_runtime_s is None else min_runtime_s,
    )
