"""Form of a launch template, as tenants and operators fill it in."""

from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.domain.workloads.template_contents import ICONS
from broker.domain.workloads.templates import HOME, WorkloadShape
from broker.models import LaunchTemplate, SavedTemplate
from tenants.services.errors import ProblemError

MAX_TEXT_LENGTH = 40_000
TEXT_FIELDS = {  # the most characters that are read of each
    "name": 200,
    "description": 400,
    "icon": 40,
    "shape": 20,
    "image": 400,
    "entrypoint": 2100,
    "command": 2100,
    "mount_path": 300,
    "readiness_path": 300,
    "token_variable": 200,
    "pull_secret": 40,
}
SHAPE_LABELS = {
    WorkloadShape.SESSION.value: gettext_noop("Session: runs until you stop it"),
    WorkloadShape.BATCH.value: gettext_noop("Batch: ends with its command"),
    WorkloadShape.SERVICE.value: gettext_noop("Service: answers requests, is restarted"),
}


@dataclass
class TemplateForm:
    """Form values as written, and an error for each that is invalid."""

    texts: dict[str, str]
    ports: str  # a line each: name, number, and tcp unless it is HTTP
    env: str  # NAME=value, a line each
    needs_volume: bool
    errors: dict[str, str] = field(default_factory=dict)
    general_error: str = ""  # of no field

    icons = ICONS

    @property
    def shapes(self) -> list[tuple[str, str]]:
        return [(value, _(label)) for value, label in SHAPE_LABELS.items()]

    @property
    def has_errors(self) -> bool:
        return bool(self.errors or self.general_error)

    def values(self) -> dict[str, Any]:
        """Return the template's columns; records errors of unreadable lines."""
        return {
            **self.texts,
            "ports": self._ports(),
            "env": self._env(),
            "needs_volume": self.needs_volume,
        }

    def show_problem(self, problem: ProblemError) -> None:
        """Show each fault of a refused template beside its field."""
        shown = {*TEXT_FIELDS, "ports", "env"}
        text = f"{problem.detail} {problem.fix.text}"
        faults: Any = problem.extra.get("errors", [])
        texts = {fault["field"]: fault["message"] for fault in reversed(faults)}
        texts["name" if problem.code == "name-taken" else getattr(problem, "field", "")] = text
        for name, message in texts.items():
            if name in shown:
                self.errors.setdefault(name, message)
            else:
                self.general_error = message

    def _ports(self) -> list[dict[str, Any]]:
        found = []
        for words in (line.split() for line in self.ports.splitlines() if line.strip()):
            kind = words[2].lower() if len(words) == 3 else "http"
            is_number = len(words) > 1 and words[1].isascii() and words[1].isdigit() and len(words[1]) <= 5
            if len(words) not in (2, 3) or not is_number or kind not in ("http", "tcp"):
                self.errors["ports"] = _("Enter a name and a number per line, such as: web 8080")
                continue
            found.append({"name": words[0], "number": int(words[1]), "http": kind == "http"})
        return found

    def _env(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in (each for each in self.env.splitlines() if each.strip()):
            name, is_set, value = line.partition("=")
            if not is_set or name.strip() in found:
                self.errors["env"] = _("Enter NAME=value, one per line, each name once.")
            found[name.strip()] = value
        return found


def parse_template_form(fields: QueryDict) -> TemplateForm:
    """Parse a sent form."""
    return TemplateForm(
        texts={name: fields.get(name, "").strip()[:most] for name, most in TEXT_FIELDS.items()},
        ports=fields.get("ports", "")[:MAX_TEXT_LENGTH],
        env=fields.get("env", "")[:MAX_TEXT_LENGTH],
        needs_volume="needs_volume" in fields,
    )


def empty_form() -> TemplateForm:
    """Return the form of a new template."""
    defaults = {"icon": ICONS[0], "shape": WorkloadShape.SESSION.value, "mount_path": HOME}
    return TemplateForm({**dict.fromkeys(TEXT_FIELDS, ""), **defaults}, ports="", env="", needs_volume=False)


def form_of(template: SavedTemplate) -> TemplateForm:
    """Return the form of a saved template."""
    texts = {name: getattr(template, name) for name in TEXT_FIELDS if name != "pull_secret"}
    chosen = template.pull_secret_id if isinstance(template, LaunchTemplate) else ""
    return TemplateForm(
        texts={**texts, "pull_secret": chosen or ""},
        ports="\n".join(f"{p.name} {p.number}{'' if p.is_http else ' tcp'}" for p in template.contents.ports),
        env="\n".join(f"{name}={value}" for name, value in sorted(template.env.items())),
        needs_volume=template.needs_volume,
    )
