"""Weight of a profile in quota units, in thousandths.

Thousandths are exact where shares do not divide seven compute slices.
"""

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Profile, ProfileKind

MILLI = 1000


def quota_milli_units(profile: Profile, model: GpuModelSpec) -> int:
    """Return the quota weight in thousandths of a compute slice; shares count pro rata.

    CPUs without a GPU take no GPU quota.
    """
    if not model.has_gpu:
        return 0
    if profile.kind is not ProfileKind.SHARE:
        return profile.compute * MILLI
    weight, rest = divmod(model.compute * MILLI * profile.memory, model.grid)
    if rest:
        raise ValueError(
            f"{profile.name} of {model.name} is not a whole number of thousandths: {profile.memory} of"
            f" {model.grid} units of {model.compute} compute slices; use another share"
        )
    return weight
