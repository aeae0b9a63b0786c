"""Workload templates, and how one becomes a container with the tenant's choices."""

import shlex
from dataclasses import dataclass
from enum import StrEnum

from broker.domain.workloads.registry_logins import RegistryLogin
from broker.domain.workloads.secret_variables import SecretVariable

HOME = "/home/gpubroker"
USER_ID = 1000
SSH_KEYS_FILE, TOKEN_KEY = "authorized_keys", "token"


class WorkloadShape(StrEnum):
    """Lifetime of a workload: with its lease, until its command ends, or serving requests."""

    SESSION = "session"
    BATCH = "batch"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class ContainerPort:
    """A container port; people reach `http` by a link and `ssh` by the bastion."""

    name: str
    number: int
    is_http: bool = True


@dataclass(frozen=True, slots=True)
class ReadinessProbe:
    """Readiness test: the path responds, or without a path the port accepts connections."""

    port: int
    path: str = ""
    patience_s: int = 300  # seconds until the first response; loading a model takes minutes


@dataclass(frozen=True, slots=True)
class WorkloadTemplate:
    """A workload many people start from."""

    name: str
    label: str
    shape: WorkloadShape
    image: str  # empty: the tenant must name one
    start: tuple[str, ...] = ()  # replaces the image's own entry point
    arguments: tuple[str, ...] = ()  # come before the tenant's
    in_shell: bool = False  # the tenant's command is a shell line, not arguments of the image
    ports: tuple[ContainerPort, ...] = ()
    probe: ReadinessProbe | None = None
    env: tuple[tuple[str, str], ...] = ()
    token_env: str = ""  # variable in which the program expects its access secret
    wants_keys: bool = False
    home: str = HOME
    group_id: int = USER_ID


@dataclass(frozen=True, slots=True)
class Workload:
    """What a tenant wants to run: a template with overrides; empty: the template's."""

    template: str
    image: str = ""
    command: str = ""
    env: tuple[tuple[str, str], ...] = ()
    ssh_keys: tuple[str, ...] = ()
    secrets: tuple[SecretVariable, ...] = ()
    custom: WorkloadTemplate | None = None  # a saved template in place of the built-in one
    pull_secret: RegistryLogin | None = None


@dataclass(frozen=True, slots=True)
class ContainerProgram:
    """One container, with everything decided."""

    template: WorkloadTemplate
    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    ssh_keys: tuple[str, ...]
    secrets: tuple[SecretVariable, ...] = ()


SSH = WorkloadTemplate(
    name="ssh",
    label="SSH box",
    shape=WorkloadShape.SESSION,
    image="gpubroker/ssh-box:1",
    ports=(ContainerPort("ssh", 2222, is_http=False),),
    probe=ReadinessProbe(2222),
    wants_keys=True,
)
JUPYTER = WorkloadTemplate(
    name="jupyter",
    label="JupyterLab",
    shape=WorkloadShape.SESSION,
    image="jupyter/pytorch-notebook",
    start=("start-notebook.py",),
    arguments=("--ServerApp.ip=0.0.0.0", "--ServerApp.port=8888"),
    ports=(ContainerPort("http", 8888),),
    probe=ReadinessProbe(8888, "/api"),
    token_env="JUPYTER_TOKEN",
    home="/home/jovyan/work",
    group_id=100,  # the image's files belong to group users
)
VSCODE = WorkloadTemplate(
    name="vscode",
    label="VS Code",
    shape=WorkloadShape.SESSION,
    image="codercom/code-server",
    arguments=("--bind-addr", "0.0.0.0:8080", "--auth", "password", "--disable-telemetry"),
    ports=(ContainerPort("http", 8080),),
    probe=ReadinessProbe(8080, "/healthz"),
    token_env="PASSWORD",
    home="/home/coder",
)
VLLM = WorkloadTemplate(
    name="vllm",
    label="vLLM endpoint",
    shape=WorkloadShape.SERVICE,
    image="vllm/vllm-openai",
    arguments=("--host", "0.0.0.0", "--port", "8000"),
    ports=(ContainerPort("http", 8000),),
    probe=ReadinessProbe(8000, "/health", patience_s=1200),
    env=(("HF_HOME", f"{HOME}/.cache/huggingface"), ("VLLM_CACHE_ROOT", f"{HOME}/.cache/vllm")),
    token_env="VLLM_API_KEY",
)
BATCH = WorkloadTemplate(
    name="batch", label="Batch command", shape=WorkloadShape.BATCH, image="pytorch/pytorch:2.9-cuda13", in_shell=True
)
OWN_IMAGE = WorkloadTemplate(name="own", label="Own image", shape=WorkloadShape.SESSION, image="")
TEMPLATES = {each.name: each for each in (SSH, JUPYTER, VSCODE, VLLM, BATCH, OWN_IMAGE)}


def template_name_for(image: str) -> str:
    """Return the name of the template that uses an image, else of `own`.

    Without an image it is the SSH template.
    """
    if not image:
        return SSH.name
    return next((each.name for each in TEMPLATES.values() if each.image == image), OWN_IMAGE.name)


def template_of(workload: Workload) -> WorkloadTemplate | None:
    """Return the template of a workload; None for an unknown name."""
    return workload.custom or TEMPLATES.get(workload.template)


def build_program(workload: Workload) -> ContainerProgram:
    """Return the container to run.

    Raises ValueError for an unknown template or a command that cannot be parsed.
    """
    template = template_of(workload)
    if template is None:
        raise ValueError(f"unknown workload template {workload.template!r}; known templates: {', '.join(TEMPLATES)}")
    command, arguments = template.start, template.arguments
    if workload.command and template.in_shell:
        command = ("/bin/sh", "-c", workload.command)
    elif workload.command:
        arguments += tuple(shlex.split(workload.command))
    from_secrets = {each.name for each in workload.secrets}
    env = {name: value for name, value in (*template.env, *workload.env) if name not in from_secrets}
    return ContainerProgram(
        template=template,
        image=workload.image or template.image,
        command=command,
        arguments=arguments,
        env=tuple(sorted(env.items())),
        ssh_keys=workload.ssh_keys if template.wants_keys else (),
        secrets=tuple(sorted(workload.secrets, key=lambda each: each.name)),
    )
