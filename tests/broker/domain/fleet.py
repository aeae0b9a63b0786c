"""GPU models and MIG profiles of the product's mig_geometry.json, for domain tests."""

from pathlib import Path

import broker
from broker.domain.geometry.gpu_models import GpuModelSpec, load_models, model_named
from broker.domain.geometry.profiles import WHOLE_GPU, Profile
from broker.domain.lifecycle.states import Isolation

DOCUMENT = (Path(broker.__file__).parent / "mig_geometry.json").read_text()
MODELS = load_models(DOCUMENT)
H100 = model_named(MODELS, "H100-80GB")
A30 = model_named(MODELS, "A30")
PRO_6000 = model_named(MODELS, "0x2BB510DE")
PRO_5000 = model_named(MODELS, "RTX PRO 5000 Blackwell")


def resource_name(profile: str) -> str:
    """Return the resource name under which the device plugin offers a profile."""
    return "nvidia.com/gpu" if profile == WHOLE_GPU else "nvidia.com/mig-" + profile.replace("+", ".", 1)


def cut(name: str, model: GpuModelSpec = H100) -> Profile:
    """Return a MIG profile of a model by its name."""
    return model.profile(name, Isolation.HARDWARE)


def plain(model: GpuModelSpec) -> tuple[Profile, ...]:
    """The slices without a suffix such as +me or -me."""
    return tuple(each for each in model.profiles if not set("+-") & set(each.name))


ONE, TWO, THREE, FOUR, SEVEN = (cut(n) for n in ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"))
ONE_ME, ONE_DOUBLE = cut("1g.10gb+me"), cut("1g.20gb")
