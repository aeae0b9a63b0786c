"""Refusal of misspelt names of settings, in the environment and the secrets directory."""

from collections.abc import Iterable
from difflib import get_close_matches

PREFIX = "GPUBROKER_"
SIMILARITY = 0.9  # of a name without the prefix, such as GPUBROKR_MAIL_URL


class UnknownSetting(ValueError):
    """A variable or secret file that looks like a setting and is none."""


def check_setting_names(found: Iterable[str], known: Iterable[str]) -> None:
    """Raise UnknownSetting if one of these names begins as a setting does and is none."""
    variables = {f"{PREFIX}{name.upper()}" for name in known}
    unknown = sorted(name for name in found if name.upper() not in variables and _is_meant(name.upper(), variables))
    if unknown:
        raise UnknownSetting("; ".join(_description(name, variables) for name in unknown))


def _is_meant(name: str, variables: Iterable[str]) -> bool:
    """Return whether a name that is no setting was meant as one."""
    if name.startswith(PREFIX):
        return True
    return name.startswith("GP") and bool(get_close_matches(name, variables, n=1, cutoff=SIMILARITY))


def _description(name: str, variables: Iterable[str]) -> str:
    similar = get_close_matches(name.upper(), variables, n=1)
    hint = f"did you mean {similar[0]}?" if similar else "see docs/reference/settings.md"
    return f"{name} is not a setting: {hint}"
