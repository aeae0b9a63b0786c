"""The weight of a profile in quota units, exact in thousandths because shares do not divide seven slices."""

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import Profile, ProfileKind

MILLI = 1000


def milli_units(profile: Profile, model: GpuModelSpec) -> int:
    """Return the weight: compute slices for a card or slice, its part of the card's for a share."""
    if profile.kind is not ProfileKind.SHARE:
        return profile.compute * MILLI
    weight, rest = divmod(model.compute * MILLI * profile.memory, model.grid)
    if rest:
        raise ValueError(
            f"{profile.name} of {model.name} weighs no whole number of thousandths: {profile.memory} of"
            f" {model.grid} units of {model.compute} compute slices; sell it in another share"
        )
    return weight
