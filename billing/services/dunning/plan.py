"""The steps that this installation takes, as its settings name them."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing.domain.dunning import Step, schedule


def steps() -> tuple[Step, ...]:
    """Return them in order, none where nobody is reminded; raise ImproperlyConfigured for what is no step."""
    try:
        return schedule(settings.DUNNING)
    except ValueError as odd:
        raise ImproperlyConfigured(f"GPUBROKER_DUNNING: {odd}.") from odd
