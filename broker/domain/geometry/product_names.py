"""GPU product names as drivers, node labels and clouds write them, in one form."""

import re
from dataclasses import dataclass
from functools import lru_cache

REPLICA_SUFFIX = re.compile(r"-(SHARED|REPLICA)$")
INVALID_MIG_SUFFIX = "-MIG-INVALID"
MIG_SUFFIX = re.compile(r"-MIG-(?:\d+c\.)?(\d+g\.\d+gb(?:[.+-][a-z.]+)?)$", re.ASCII | re.IGNORECASE)
VENDOR_WORDS = ("NVIDIA-", "Tesla-", "GeForce-", "GRID-")
# A virtual GPU in a virtual machine: A16-4Q, A100-1-5C, H100XM-1-10CME, RTX-Pro-6000-Blackwell-DC-4-96Q.
VIRTUAL_GPU = re.compile(r"[A-Za-z0-9-]+-\d{1,3}[ABCQ][A-Z]{0,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ProductName:
    """A product name without vendor, and what its suffixes say."""

    name: str  # H100-80GB-HBM3; empty: nothing was named
    mig_profile: str = ""  # 1g.10gb+me, where one MIG slice is labelled as a GPU
    mig_invalid: bool = False  # the MIG layout of the node breaks the strategy `single`
    replica: bool = False  # what is labelled as a GPU is one of several replicas

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual GPU, which a hypervisor shares with other machines."""
        return VIRTUAL_GPU.fullmatch(self.name) is not None


@lru_cache(maxsize=1024)
def parse_product_name(text: str) -> ProductName:
    """Parse a product name; separators may be spaces, hyphens or underscores."""
    name = re.sub(r"[\s_/-]+", "-", text.strip()).strip("-")
    replica = REPLICA_SUFFIX.search(name) is not None
    name = REPLICA_SUFFIX.sub("", name)
    invalid = name.endswith(INVALID_MIG_SUFFIX)
    name = name.removesuffix(INVALID_MIG_SUFFIX)
    slice_of = MIG_SUFFIX.search(name)
    name = MIG_SUFFIX.sub("", name)
    while vendor := next((word for word in VENDOR_WORDS if f"{name}-".upper().startswith(word.upper())), ""):
        name = name[len(vendor) :]
    return ProductName(name, mig_profile_name(slice_of[1]) if slice_of else "", invalid, replica)


def mig_profile_name(text: str) -> str:
    """Return a MIG profile's name as NVML writes it: 1g.10gb+me for 1g.10gb.me."""
    return re.sub(r"(?<=gb)\.", "+", text.lower())


def comparison_key(product: str) -> str:
    """Return a product name for comparison: letters and digits only, in lower case."""
    return re.sub(r"[^a-z0-9]", "", parse_product_name(product).name.lower())
