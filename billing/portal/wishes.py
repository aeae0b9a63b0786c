"""The launch form: what its fields mean, and what is wrong with them, said beside the field."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.http import QueryDict

from billing.portal.pages import PageRequest
from broker.domain.moves import stays
from broker.domain.states import Isolation
from broker.domain.workloads import BATCH, JUPYTER, OWN, SSH, VLLM, VSCODE, Template
from broker.models import Offering
from broker.services.leases.request import Wanted

PART = re.compile(r"(\d{1,7})\s*(d|day|days|h|hour|hours|min|m|minute|minutes|s)?", re.ASCII)
AFTER_UNIT = re.compile(r"(?<=[a-z])\s*,")
SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
FIRST = "8 h"
YEARS = range(2000, 3000)
LONGEST_TEXT = 100_000  # of a field of several lines; the service's own bounds are narrower
CENTURIES_S = 10**10  # more than anybody can mean; the bounds of a lease refuse it


@dataclass(frozen=True)
class Choice:
    """A workload to start with; the first needs nothing more than a press."""

    template: Template
    icon: str

    @property
    def tag(self) -> str:
        return self.template.image.rpartition("/")[2] or "named below"


CHOICES = (
    Choice(JUPYTER, "notebook"),
    Choice(VSCODE, "code"),
    Choice(SSH, "key"),
    Choice(VLLM, "message-chatbot"),
    Choice(BATCH, "player-play"),
    Choice(OWN, "package"),
)


LINKS = (("nvlink", "NVLink between all of them"), ("numa", "All below one processor"))
NEW = "new"  # a volume that is made along with the lease


@dataclass
class Wish:
    """The form as it was filled in: every value as written, and an error for each that cannot be meant."""

    offering: str
    price_class: str
    name: str
    count: str
    same_node: bool
    topology: str
    movable: bool
    runs: str  # the name of a template
    image: str
    command: str
    env: str  # NAME=value, a line each
    keys: str  # a public key each line
    volume: str  # the id of one, NEW, or nothing
    gib: str  # of a new one
    lasts: str
    until: str
    quote: str  # the promise of its price, as the page had it
    errors: dict[str, str] = field(default_factory=dict)

    def wanted(self, offering: Offering, zone: ZoneInfo) -> Wanted:
        """Return the request it stands for; notes the errors of fields that cannot be read."""
        quantity = self._count()
        lasts = seconds(self.lasts)
        if lasts is None:
            self.errors["lasts"] = "That is no length of time. Write 90 min, 8 h or 1 d 12 h."
        return Wanted(
            offering_id=offering.pk,
            name=self.name,
            max_duration_s=lasts or SECONDS["h"],
            quantity=quantity,
            same_node=self.same_node and quantity > 1,
            topology=self.topology if quantity > 1 else "",
            end_date=self._until(zone),
            image=self.image.strip(),
            command=self.command.strip(),
            workload=self.runs,
            env=self._env(),
            ssh_keys=[line.strip() for line in self.keys.splitlines() if line.strip()],
            volume="" if self.volume == NEW else self.volume,
            movable=self.movable and not stays(Isolation(offering.isolation), quantity),
            quote=self.quote,
        )

    def _count(self) -> int:
        if self.count.isascii() and self.count.isdigit() and len(self.count) <= 6:
            return int(self.count)
        self.errors["count"] = "That is no whole number. Write how many slices start together."
        return 1

    def _env(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.env.splitlines():
            name, is_set, value = line.partition("=")
            if not line.strip():
                continue
            if not is_set or name.strip() in found:
                self.errors["env"] = "Write NAME=value, one a line, each name once."
            found[name.strip()] = value
        return found

    def _until(self, zone: ZoneInfo) -> datetime | None:
        if not self.until:
            return None
        with suppress(ValueError):
            when = datetime.fromisoformat(self.until)
            if when.year in YEARS:  # others may be beyond what a clock of another zone can show
                return (when if when.tzinfo else when.replace(tzinfo=zone)).astimezone(UTC)
        self.errors["until"] = "That is no date and time. Choose one, or leave it empty."
        return None


def read(request: PageRequest, asked: QueryDict) -> Wish:
    """Read the form from what was sent, with what most people want where nothing was."""
    errors: dict[str, str] = {}

    def text(field: str, most: int) -> str:
        """Cut what nobody can take, and say so: half a command is another command."""
        sent = asked.get(field, "")
        if len(sent) > most:
            errors[field] = (
                f"That has {len(sent):,} characters, and at most {most:,} can be taken."
                " Put what is longer into the image or onto a volume."
            )
        return sent[:most]

    return Wish(
        offering=asked.get("offering", ""),
        price_class=asked.get("class", ""),
        name=asked.get("name", "").strip() or suggested(request),
        count=asked.get("count", "1").strip() or "1",
        same_node="same_node" in asked,
        topology=asked.get("topology", "")[:10],
        movable="movable" in asked,
        runs=asked.get("runs", CHOICES[0].template.name),
        image=text("image", 300),
        command=text("command", 2000),
        env=text("env", LONGEST_TEXT),
        keys=text("ssh_keys", LONGEST_TEXT),
        volume=asked.get("volume", "")[:40],
        gib=asked.get("gib", "50").strip()[:9],
        lasts=asked.get("lasts", FIRST).strip(),
        until=asked.get("until", "").strip(),
        quote=asked.get("quote", "")[:1000],
        errors=errors,
    )


def suggested(request: PageRequest) -> str:
    """Return a name that nobody minds: who, and when."""
    here = request.now.astimezone(ZoneInfo(request.tenant.time_zone))
    who = re.sub(r"[^a-z0-9]+", "-", request.actor.label.partition("@")[0].lower()).strip("-")
    return f"{who}-{here:%m%d-%H%M}"


def seconds(text: str) -> int | None:
    """Read a length of time as people write it: 8 h, 90 min, 1 d, 12 h; a bare number counts hours.

    A comma between digits is refused: to some it parts a half off, to others thousands.
    """
    rest, total, found = AFTER_UNIT.sub(" ", text.strip().lower()), 0, False
    while rest:
        part = PART.match(rest)
        if part is None or (part[2] is None and part[0] != text.strip()):  # 1 000 h, or 8 h 30
            return None
        unit = (part[2] or "h")[0]
        total, found, rest = total + int(part[1]) * SECONDS[unit], True, rest[part.end() :].lstrip()
    return min(total, CENTURIES_S) if found else None


def written(length: timedelta) -> str:
    """Write a length as the field takes it."""
    minutes = int(length.total_seconds()) // 60
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours and rest else f"{hours} h" if hours else f"{minutes} min"
