"""What runs on a lease: the templates people start from, and how one with their wishes becomes one container."""

import shlex
from dataclasses import dataclass
from enum import StrEnum

HOME = "/home/gpubroker"
USER_ID = 1000
KEYS_AT, TOKEN = "authorized_keys", "token"


class Shape(StrEnum):
    """How long it lives: as long as the lease, until its command ends, or for as many requests as come."""

    SESSION = "session"
    BATCH = "batch"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Port:
    """A door into the container; people reach `http` by a link and `ssh` by the bastion."""

    name: str
    number: int
    is_http: bool = True


@dataclass(frozen=True, slots=True)
class Probe:
    """How to tell that it is ready: this path answers, or, without a path, the port takes connections."""

    port: int
    path: str = ""
    patience_s: int = 300  # until the first answer; loading a model takes minutes


@dataclass(frozen=True, slots=True)
class Template:
    """A workload many people start with."""

    name: str
    label: str
    shape: Shape
    image: str  # empty: the tenant names one
    start: tuple[str, ...] = ()  # instead of the image's own entry point
    arguments: tuple[str, ...] = ()  # before the tenant's
    in_shell: bool = False  # the tenant's command is a line of shell, not arguments of the image
    ports: tuple[Port, ...] = ()
    probe: Probe | None = None
    env: tuple[tuple[str, str], ...] = ()
    token_env: str = ""  # where the program expects the secret that opens it
    wants_keys: bool = False
    home: str = HOME
    group_id: int = USER_ID


@dataclass(frozen=True, slots=True)
class Workload:
    """What a tenant wants to run: a template and their own wishes. Empty means the template's."""

    template: str
    image: str = ""
    command: str = ""
    env: tuple[tuple[str, str], ...] = ()
    ssh_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """One container, as decided: nothing is left to choose."""

    template: Template
    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    ssh_keys: tuple[str, ...]


SSH = Template(
    name="ssh",
    label="SSH box",
    shape=Shape.SESSION,
    image="gpubroker/ssh-box:1",
    ports=(Port("ssh", 2222, is_http=False),),
    probe=Probe(2222),
    wants_keys=True,
)
JUPYTER = Template(
    name="jupyter",
    label="JupyterLab",
    shape=Shape.SESSION,
    image="jupyter/pytorch-notebook",
    start=("start-notebook.py",),
    arguments=("--ServerApp.ip=0.0.0.0", "--ServerApp.port=8888"),
    ports=(Port("http", 8888),),
    probe=Probe(8888, "/api"),
    token_env="JUPYTER_TOKEN",
    home="/home/jovyan/work",
    group_id=100,  # the image's files belong to group users
)
VSCODE = Template(
    name="vscode",
    label="VS Code",
    shape=Shape.SESSION,
    image="codercom/code-server",
    arguments=("--bind-addr", "0.0.0.0:8080", "--auth", "password", "--disable-telemetry"),
    ports=(Port("http", 8080),),
    probe=Probe(8080, "/healthz"),
    token_env="PASSWORD",
    home="/home/coder",
)
VLLM = Template(
    name="vllm",
    label="vLLM endpoint",
    shape=Shape.SERVICE,
    image="vllm/vllm-openai",
    arguments=("--host", "0.0.0.0", "--port", "8000"),
    ports=(Port("http", 8000),),
    probe=Probe(8000, "/health", patience_s=1200),
    env=(("HF_HOME", f"{HOME}/.cache/huggingface"), ("VLLM_CACHE_ROOT", f"{HOME}/.cache/vllm")),
    token_env="VLLM_API_KEY",
)
BATCH = Template(
    name="batch",
    label="Batch command",
    shape=Shape.BATCH,
    image="pytorch/pytorch:2.9-cuda13",
    in_shell=True,
)
OWN = Template(name="own", label="Own image", shape=Shape.SESSION, image="")
TEMPLATES = {each.name: each for each in (SSH, JUPYTER, VSCODE, VLLM, BATCH, OWN)}


def template_for(image: str) -> str:
    """Name the template of an image that was chosen by itself: the one that starts it, else the tenant's own."""
    if not image:
        return SSH.name
    return next((each.name for each in TEMPLATES.values() if each.image == image), OWN.name)


def program(workload: Workload) -> Program:
    """Decide what runs, or raise ValueError for a template that is unknown or a command that cannot be read."""
    template = TEMPLATES.get(workload.template)
    if template is None:
        raise ValueError(f"no workload template {workload.template!r}; known are: {', '.join(TEMPLATES)}")
    command, arguments = template.start, template.arguments
    if workload.command and template.in_shell:
        command = ("/bin/sh", "-c", workload.command)
    elif workload.command:
        arguments += tuple(shlex.split(workload.command))
    asked = {**dict(template.env), **dict(workload.env)}
    return Program(
        template=template,
        image=workload.image or template.image,
        command=command,
        arguments=arguments,
        env=tuple(sorted(asked.items())),
        ssh_keys=workload.ssh_keys if template.wants_keys else (),
    )
