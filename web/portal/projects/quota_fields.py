"""The quotas of a project as forms show them: today's value, and what is used."""

from dataclasses import dataclass
from datetime import datetime

from tenants.domain import quota_limits
from tenants.models import Quota


@dataclass(frozen=True, slots=True)
class QuotaField:
    """A quota of a project with its form; no limit if none is set."""

    kind: str
    name: str
    unit: str
    limit: str  # as the form takes it; empty without one
    used_count: int
    limit_count: int

    @classmethod
    def of(cls, kind: str, quota: Quota | None, now: datetime) -> "QuotaField":
        name, _, unit = quota_limits.QUOTA_UNITS[kind]
        if quota is None:
            return cls(kind, name, unit, "", 0, 0)
        shown = f"{quota_limits.to_displayed(kind, quota.soft_limit):f}"
        return cls(kind, name, unit, shown, quota.used_at(now), quota.soft_limit)

    @property
    def used(self) -> str:
        return quota_limits.format_count(self.kind, self.used_count)

    @property
    def limit_text(self) -> str:
        return quota_limits.format_count(self.kind, self.limit_count)

    @property
    def bar_limit(self) -> int:
        return max(self.limit_count, 1)
