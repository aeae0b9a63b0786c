"""Form for CPU, memory and scratch of an offering: CPUs as decimals, sizes in GiB."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _

from broker.domain.geometry.host_resources import HostResources
from broker.models import Offering
from broker.services.inventory import offering_resources
from tenants.services.errors import InvalidValue
from web.ui.formatting import format_resources

NUMBER = re.compile(r"\d{1,7}(\.\d{1,6})?", re.ASCII)
VERSION = re.compile(r"\d{1,9}", re.ASCII)
MILLI, MEBI = 1000, 1024
# Column: its input, and how many units of the column one typed unit has.
INPUTS = {"cpu_milli": ("cpus", MILLI), "host_memory_mib": ("memory_gib", MEBI), "scratch_mib": ("scratch_gib", MEBI)}


@dataclass(frozen=True, slots=True)
class ResourceForm:
    """The typed or current amounts, and the most that every node can give."""

    cpus: str
    memory_gib: str
    scratch_gib: str
    limit: str

    @classmethod
    def of(cls, offering: Offering, typed: Mapping[str, str]) -> "ResourceForm":
        """Return the form with what was typed, else with the current amounts."""
        inputs = zip(INPUTS.values(), offering.host_resources.amounts(), strict=True)
        cpus, memory, scratch = (typed.get(name, _written(amount, unit)) for (name, unit), amount in inputs)
        return cls(cpus, memory, scratch, format_resources(offering_resources.largest_resources(offering)))


def is_resource_form(typed: Mapping[str, str]) -> bool:
    """Return whether a POST comes from this form."""
    return any(name in typed for name, _unit in INPUTS.values())


def parse_resources(typed: Mapping[str, str]) -> HostResources:
    """Parse the form; raise InvalidValue for text that is no number."""
    return HostResources(*(_parse(column, typed.get(name, ""), unit) for column, (name, unit) in INPUTS.items()))


def parse_version(typed: Mapping[str, str]) -> int | None:
    """Parse the version of the offering that the form was opened with; None without one."""
    text = typed.get("version", "")
    return int(text) if VERSION.fullmatch(text) else None


def _parse(column: str, typed: str, unit: int) -> int:
    text = typed.strip()
    if not NUMBER.fullmatch(text):
        raise InvalidValue(column, _("This is not a number."), fix=_("Enter a number such as 3.5."))
    return int((Decimal(text) * unit).to_integral_value())


def _written(amount: int, unit: int) -> str:
    """Return an amount as it is typed; exact when it is parsed again."""
    text = f"{Decimal(amount) / unit:.4f}"
    return text.rstrip("0").rstrip(".")
