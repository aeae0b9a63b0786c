"""Node taints that pods of leases tolerate, as an operator writes them: `sku=gpu:NoSchedule`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from broker.provisioners.kubernetes.client.objects import Taint

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
TOLERATION = re.compile(
    rf"(?P<key>(?:[a-z0-9.-]{{1,253}}/)?{NAME})(?:=(?P<value>{NAME})?)?(?::(?P<effect>[A-Za-z]+))?", re.ASCII
)
MAX_TOLERATIONS = 16


class InvalidToleration(ValueError):
    """A text is no toleration; the message says how to write one."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that is tolerated; an empty value or effect stands for any."""

    key: str
    value: str = ""
    effect: str = ""

    def matches(self, taint: Taint) -> bool:
        """Tell whether this tolerates a taint, by the rules of Kubernetes."""
        return self.key == taint.key and self.value in ("", taint.value) and self.effect in ("", taint.effect)

    def manifest(self) -> dict[str, str]:
        """Return it as a pod's field."""
        operator = {"operator": "Equal", "value": self.value} if self.value else {"operator": "Exists"}
        return {**({"effect": self.effect} if self.effect else {}), "key": self.key, **operator}


# Clouds and NVIDIA's operator keep other pods off GPU nodes with this taint.
GPU_TOLERATION = Toleration("nvidia.com/gpu", effect="NoSchedule")


def parse_tolerations(text: str) -> tuple[Toleration, ...]:
    """Parse tolerations separated by spaces or commas, or raise InvalidToleration."""
    words = text.replace(",", " ").split()
    if len(words) > MAX_TOLERATIONS:
        raise InvalidToleration(f"There are more than {MAX_TOLERATIONS} tolerations.")
    return tuple(dict.fromkeys(map(_parse_toleration, words)))


def _parse_toleration(word: str) -> Toleration:
    found = TOLERATION.fullmatch(word)
    if found is None or (found["effect"] and found["effect"] not in EFFECTS):
        raise InvalidToleration(f"{word!r} is not a toleration; write it like sku=gpu:NoSchedule.")
    return Toleration(found["key"], found["value"] or "", found["effect"] or "")


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Tell whether pods of leases tolerate a taint, which may be one that only advises."""
    refuses = taint.effect in ("NoSchedule", "NoExecute")
    return not refuses or any(each.matches(taint) for each in (GPU_TOLERATION, *tolerations))
