"""Form for notice and minimum runtime of a spot offering, in seconds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering
from tenants.services.errors import InvalidValue

SECONDS = re.compile(r"\d{1,9}", re.ASCII)
FIELDS = ("notice_s", "min_runtime_s")


@dataclass(frozen=True, slots=True)
class SpotTermsForm:
    """The typed or current terms; empty: those of the installation."""

    notice_s: str
    min_runtime_s: str

    @classmethod
    def of(cls, offering: Offering, typed: Mapping[str, str]) -> "SpotTermsForm | None":
        """Return the form of an offering's spot terms; None if not spot."""
        if offering.price_class != PriceClass.SPOT:
            return None
        current = (offering.spot_notice_s, offering.spot_min_runtime_s)
        return cls(
            *(typed.get(name, "" if value is None else str(value)) for name, value in zip(FIELDS, current, strict=True))
        )

    @property
    def usual_notice_s(self) -> int:
        """Return the notice of the installation."""
        return settings.SPOT_NOTICE_S

    @property
    def usual_runtime_s(self) -> int:
        """Return the minimum runtime of the installation."""
        return settings.SPOT_MIN_RUNTIME_S


def is_spot_terms_form(typed: Mapping[str, str]) -> bool:
    """Return whether a POST comes from this form."""
    return any(name in typed for name in FIELDS)


def parse_spot_terms(typed: Mapping[str, str]) -> dict[str, int | None]:
    """Parse the form; raise InvalidValue for text that is no number of seconds."""
    return {name: _parse(name, typed.get(name, "").strip()) for name in FIELDS}


def _parse(name: str, text: str) -> int | None:
    if not text:
        return None
    if not SECONDS.fullmatch(text):
        raise InvalidValue(
            name, _("This is not a whole number of seconds."), fix=_("Enter a number such as 300, or leave it empty.")
        )
    return int(text)
