"""State of a simulated box that its shell and programs share."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from broker.domain.simulated_box.box_facts import BoxFacts
from broker.domain.simulated_box.box_files import BoxFiles, BoxLimitExceeded, WorkLimit

MAX_ENVIRONMENT = 256 * 1024  # characters


@dataclass
class BoxState:
    """Files, variables, directory and clock; the clock is kept by who runs the box."""

    facts: BoxFacts
    now: datetime
    started: datetime
    history: list[str] = field(default_factory=list)
    status: int = 0  # of the latest command

    def __post_init__(self) -> None:
        self.env = self.facts.environment()
        self.directory = self.facts.home
        self.limit = WorkLimit()
        self.files = BoxFiles(
            {
                f"{self.facts.home}/README.txt": f"{self.facts.notice}\nType help for the commands it knows.\n",
                "/etc/hostname": f"{self.facts.hostname}\n",
                "/etc/os-release": f'NAME="{self.facts.title}"\nID=simulated\n',
                "/tmp/.keep": "",
            },
            self.limit,
        )

    def spend(self, amount: int) -> None:
        """Count an amount of work of the present line, or raise BoxLimitExceeded."""
        self.limit.spend(amount)

    def resolve(self, path: str) -> str:
        """Return the absolute form of a path."""
        return "/" + posixpath.normpath(posixpath.join(self.directory, path)).lstrip("/")

    def set_variables(self, values: Mapping[str, str]) -> None:
        """Set variables, unless the environment would grow beyond its limit."""
        after = {**self.env, **values}
        if sum(len(name) + len(value) for name, value in after.items()) > MAX_ENVIRONMENT:
            raise BoxLimitExceeded
        self.env = after
