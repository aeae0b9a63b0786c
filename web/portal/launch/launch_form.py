"""Launch form: its fields, their parsing, and their errors."""

import re
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.domain.lifecycle.states import PriceClass
from broker.domain.workloads.credential_detection import embedded_credentials, looks_like_credential
from broker.domain.workloads.templates import BATCH, JUPYTER, OWN_IMAGE, SSH, VLLM, VSCODE, WorkloadTemplate
from broker.models import Offering
from broker.services.leases.lease_requests import LeaseRequest, never_relocated_reason
from web.portal.durations import parse_duration
from web.portal.launch.launch_terms import LaunchTerms, parse_local_time
from web.portal.page_context import PageRequest

DEFAULT_DURATION = "8 h"
MAX_TEXT_LENGTH = 100_000  # characters of a multi-line field; the service's limits are lower


@dataclass(frozen=True)
class WorkloadChoice:
    """A workload template on offer; the first needs no further input."""

    template: WorkloadTemplate
    icon: str

    @property
    def tag(self) -> str:
        return self.template.image.rpartition("/")[2] or _("named below")


WORKLOAD_CHOICES = (
    WorkloadChoice(JUPYTER, "notebook"),
    WorkloadChoice(VSCODE, "code"),
    WorkloadChoice(SSH, "key"),
    WorkloadChoice(VLLM, "message-chatbot"),
    WorkloadChoice(BATCH, "player-play"),
    WorkloadChoice(OWN_IMAGE, "package"),
)


TOPOLOGY_CHOICES = (
    ("nvlink", gettext_noop("NVLink between all of them")),
    ("numa", gettext_noop("All on one CPU socket")),
)
SECRET_VARIABLE = "variable_of_"  # prefix of the field with a secret's variable name
SAVED_TEMPLATE = "tpl_"  # beginning of a saved template's id
NEW_VOLUME = "new"  # create a volume along with the lease


@dataclass
class LaunchForm:
    """Form values as written, and an error for each that is invalid."""

    offering: str
    price_class: str
    name: str
    count: str
    same_node: bool
    topology: str
    relocatable: bool
    requeue_when_preempted: bool
    checkpoint_command: str
    workload: str  # the name of a built-in template, or the id of a saved one
    image: str
    command: str
    env: str  # NAME=value, a line each
    ssh_keys: str  # a public key each line
    ssh_key_ids: list[str]  # chosen saved keys
    secrets: list[str]  # ids of chosen secrets
    pull_secret: str  # id of the login of the image's registry
    secret_variables: dict[str, str]  # variable of each secret, by the secret's id
    volume: str  # a volume's id, NEW, or empty
    volume_gib: str  # size of a new volume
    duration: str
    until: str
    terms: LaunchTerms  # start, end and retries
    quote: str  # the signed quote of the page
    errors: dict[str, str] = field(default_factory=dict)
    batch_templates: set[str] = field(default_factory=set)  # ids of saved templates that end with their command
    array_size: int = 0  # leases requested together, once the form is read; 0 or 1: a single one

    def lease_request(self, offering: Offering, zone: ZoneInfo) -> LeaseRequest:
        """Return the lease request of the form; records errors of unreadable fields."""
        quantity = self._count()
        self.array_size = self.terms.array(workload=self._base_workload, errors=self.errors)
        is_spot = offering.price_class == PriceClass.SPOT
        lasts = parse_duration(self.duration)
        if lasts is None:
            self.errors["lasts"] = _("This is not a valid duration. Enter, for example, 90 min, 8 h or 1 d 12 h.")
        return LeaseRequest(
            offering_id=offering.pk,
            name=self.name,
            max_duration_s=lasts or 3600,
            quantity=quantity,
            same_node=self.same_node and quantity > 1,
            topology=self.topology if quantity > 1 else "",
            end_date=parse_local_time(self.until, "until", zone, self.errors),
            image=self.image.strip(),
            command=self.command.strip(),
            workload="" if self.is_saved_template else self.workload,
            template_id=self.workload if self.is_saved_template else "",
            pull_secret=self.pull_secret,
            env=self._env(),
            secrets=self._secrets(),
            ssh_key_ids=self.ssh_key_ids,
            ssh_keys=[line.strip() for line in self.ssh_keys.splitlines() if line.strip()],
            volume="" if self.volume == NEW_VOLUME else self.volume,
            relocatable=self.relocatable and not never_relocated_reason(offering, quantity),
            requeue_when_preempted=is_spot and self.requeue_when_preempted,
            checkpoint_command=self.checkpoint_command.strip() if is_spot else "",
            quote=self.quote,
            **self.terms.request_values(workload=self._base_workload, zone=zone, errors=self.errors),
        )

    @property
    def _base_workload(self) -> str:
        return BATCH.name if self.workload in self.batch_templates else self.workload

    @property
    def is_saved_template(self) -> bool:
        return self.workload.startswith(SAVED_TEMPLATE)

    def _count(self) -> int:
        if self.count.isascii() and self.count.isdigit() and len(self.count) <= 6:
            return int(self.count)
        self.errors["count"] = _("This is not a whole number. Enter how many slices start together.")
        return 1

    def _env(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.env.splitlines():
            name, is_set, value = line.partition("=")
            if not line.strip():
                continue
            if not is_set or name.strip() in found:
                self.errors["env"] = _("Enter NAME=value, one per line, each name once.")
            found[name.strip()] = value
        return found

    def _secrets(self) -> dict[str, str]:
        """Return the chosen secrets by the variables that receive them."""
        found: dict[str, str] = {}
        for secret_id in self.secrets:
            variable = self.secret_variables.get(secret_id, "").strip()
            if not variable or variable in found:
                self.errors["secrets"] = _("Enter a variable name for each chosen secret, each name once.")
            found[variable] = secret_id
        return found

    @property
    def credentials_in_clear(self) -> list[str]:
        """Return the plain variables whose names or values suggest a credential."""
        stated = (line.partition("=") for line in self.env.splitlines() if "=" in line)
        return sorted(
            {
                name.strip()[:60]
                for name, _equals, value in stated
                if looks_like_credential(name.strip()) or any(embedded_credentials(value))
            }
        )


def parse_launch_form(request: PageRequest, fields: QueryDict) -> LaunchForm:
    """Parse the form; missing fields get common defaults."""
    errors: dict[str, str] = {}

    def text(field: str, most: int) -> str:
        """Cut a text that is too long and record an error."""
        sent = fields.get(field, "")
        if len(sent) > most:
            errors[field] = _(
                "This has {sent:,} characters; the maximum is {most:,}. "
                "Put longer content into the image or on a volume."
            ).format(sent=len(sent), most=most)
        return sent[:most]

    return LaunchForm(
        offering=fields.get("offering", ""),
        price_class=fields.get("class", ""),
        name=fields.get("name", "").strip() or suggest_name(request),
        count=fields.get("count", "1").strip() or "1",
        same_node="same_node" in fields,
        topology=fields.get("topology", "")[:10],
        relocatable="relocatable" in fields,
        requeue_when_preempted="requeue_when_preempted" in fields,
        checkpoint_command=text("checkpoint_command", 2000),
        workload=fields.get("runs", WORKLOAD_CHOICES[0].template.name)[:40],
        image=text("image", 300),
        command=text("command", 2000),
        env=text("env", MAX_TEXT_LENGTH),
        ssh_keys=text("ssh_keys", MAX_TEXT_LENGTH),
        ssh_key_ids=[each[:40] for each in fields.getlist("ssh_key_ids")],
        secrets=[each[:40] for each in fields.getlist("secrets")],
        pull_secret=fields.get("pull_secret", "")[:40],
        secret_variables={
            name.removeprefix(SECRET_VARIABLE): fields.get(name, "")[:200]
            for name in fields
            if name.startswith(SECRET_VARIABLE)
        },
        volume=fields.get("volume", "")[:40],
        volume_gib=fields.get("gib", "50").strip()[:9],
        duration=fields.get("lasts", DEFAULT_DURATION).strip(),
        until=fields.get("until", "").strip(),
        terms=LaunchTerms.of(fields),
        quote=fields.get("quote", "")[:1000],
        errors=errors,
    )


def suggest_name(request: PageRequest) -> str:
    """Return a default lease name: who, and when."""
    here = request.now.astimezone(ZoneInfo(request.tenant.time_zone))
    who = re.sub(r"[^a-z0-9]+", "-", request.actor.label.partition("@")[0].lower()).strip("-")
    return f"{who}-{here:%m%d-%H%M}"
