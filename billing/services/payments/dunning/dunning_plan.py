"""The dunning schedule from the settings."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing.domain.dunning import DunningStage, parse_schedule


def dunning_stages() -> tuple[DunningStage, ...]:
    """Return the configured stages in order; empty if there is no dunning.

    Raises ImproperlyConfigured for malformed ones.
    """
    try:
        return parse_schedule(settings.DUNNING_STEPS)
    except ValueError as error:
        raise ImproperlyConfigured(f"GPUBROKER_DUNNING_STEPS: {error}.") from error
