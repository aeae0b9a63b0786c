"""Validation of workloads: every fault is reported at once, with its fix."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker.domain.workloads.image_references import image_reference_fault
from broker.domain.workloads.templates import TEMPLATES, Workload, WorkloadTemplate, template_of
from tenants.domain.ssh_keys import CONTROL, ssh_key_fault

MOST_VARIABLES, LONGEST_NAME, LONGEST_VALUE, LONGEST_ENV = 100, 128, 8192, 32_768
LONGEST_COMMAND = 2000
MOST_KEYS = 20
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Reserved prefixes of names, with the reason: others read them before the tenant's program.
RESERVED_VARIABLES = {
    "NVIDIA_": "it selects GPUs, which the lease does",
    "CUDA_DEVICE_": "it sets the limits of a shared GPU",
    "CUDA_DISABLE_CONTROL": "it removes the limits of a shared GPU",
    "CUDA_MPS_": "it connects to the daemon that shares a GPU",
    "CUDA_TASK_PRIORITY": "it sets priorities on a shared GPU",
    "GPU_CORE_UTILIZATION_POLICY": "it removes the limits of a shared GPU",
    "LIBCUDA_LOG_LEVEL": "it configures the library that shares a GPU",
    "LD_PRELOAD": "it loads code before the GPU libraries",
    "LD_AUDIT": "it loads code before the GPU libraries",
    "KUBERNETES_": "the cluster sets it",
    "GPUBROKER_": "the broker sets it",
}


@dataclass(frozen=True, slots=True)
class WorkloadFault:
    """One invalid value: the field, what is wrong, and how to fix it."""

    field: str
    text: str
    fix: str


def find_workload_faults(workload: Workload) -> tuple[WorkloadFault, ...]:
    """Return everything that is wrong with a workload; empty if it can be rendered."""
    template = template_of(workload)
    if template is None:
        known = ", ".join(TEMPLATES)
        text = f"Workload {workload.template[:60]!r} does not exist."
        return (WorkloadFault("workload", text, f"Use one of {known}."),)
    return (
        *_image_faults(workload, template),
        *_command_faults(workload, template),
        *_env_faults(dict(workload.env), twice=len(dict(workload.env)) < len(workload.env)),
        *_secret_faults(workload, template),
        *_ssh_key_faults(workload, template),
    )


def _image_faults(workload: Workload, template: WorkloadTemplate) -> Iterator[WorkloadFault]:
    if not workload.image and not template.image:
        yield WorkloadFault("image", f"{template.label} needs an image.", "Enter an image.")
    elif workload.image and (text := image_reference_fault(workload.image)):
        yield WorkloadFault("image", text, "Enter it as for docker pull.")


def _command_faults(workload: Workload, template: WorkloadTemplate) -> Iterator[WorkloadFault]:
    command = workload.command
    if len(command) > LONGEST_COMMAND:
        text = f"A command can have at most {LONGEST_COMMAND} characters."
        yield WorkloadFault("command", text, "Put longer commands into a script in the image.")
    if CONTROL.search(command):
        yield WorkloadFault("command", "A command must not contain control characters.", "Remove them.")
    elif not template.in_shell:
        try:
            shlex.split(command)
        except ValueError:
            yield WorkloadFault("command", "A quote in the command is not closed.", "Close it, or escape it with \\.")


def _env_faults(env: Mapping[str, str], *, twice: bool) -> Iterator[WorkloadFault]:
    if twice:
        yield WorkloadFault("env", "A variable is set twice.", "Set each variable once.")
    if len(env) > MOST_VARIABLES:
        text = f"{len(env)} variables are set; the maximum is {MOST_VARIABLES}."
        yield WorkloadFault("env", text, "Put the others into a file in the image or on a volume.")
        return
    if sum(len(name) + len(value) for name, value in env.items()) > LONGEST_ENV:
        text = f"All variables together can have at most {LONGEST_ENV} characters."
        yield WorkloadFault("env", text, "Put long values into a file in the image or on a volume.")
        return
    for name, value in env.items():
        yield from _variable_faults(name, value)


def _variable_faults(name: str, value: str) -> Iterator[WorkloadFault]:
    if fault := variable_name_fault("env", name):
        yield fault
    if not VARIABLE.fullmatch(name) or len(name) > LONGEST_NAME:
        return
    if len(value) > LONGEST_VALUE:
        text = f"The value of {name} has {len(value)} characters; the maximum is {LONGEST_VALUE}."
        yield WorkloadFault("env", text, "Put it into a file in the image or on a volume.")
    if CONTROL.search(value):
        yield WorkloadFault(
            "env", f"The value of {name} contains control characters.", "Encode it, for example as base64."
        )


def variable_name_fault(field: str, name: str) -> WorkloadFault | None:
    """Return why a tenant may not set a variable; None if it may."""
    if not VARIABLE.fullmatch(name) or len(name) > LONGEST_NAME:
        text = f"{name[:60]!r} is not a valid variable name."
        return WorkloadFault(
            field, text, f"Use letters, digits and _, at most {LONGEST_NAME}, not starting with a digit."
        )
    for beginning, why in RESERVED_VARIABLES.items():
        if name.upper().startswith(beginning):
            return WorkloadFault(field, f"{name} cannot be set: {why}.", f"Leave {name} out.")
    return None


def _secret_faults(workload: Workload, template: WorkloadTemplate) -> Iterator[WorkloadFault]:
    """Find secrets whose variable is invalid, reserved, or set otherwise."""
    plain = dict(workload.env)
    for name in (each.name for each in workload.secrets):
        if fault := variable_name_fault("secrets", name):
            yield fault
        elif name in plain:
            text = f"{name} is set both as a plain variable and from a secret."
            yield WorkloadFault("secrets", text, "Remove one of the two.")
        elif name == template.token_env:
            text = f"{name} cannot be set: {template.label} receives the lease's own access token in it."
            yield WorkloadFault("secrets", text, "Choose another variable name.")


def _ssh_key_faults(workload: Workload, template: WorkloadTemplate) -> Iterator[WorkloadFault]:
    if template.wants_keys and not workload.ssh_keys:
        text = f"{template.label} needs at least one public SSH key."
        yield WorkloadFault("ssh_keys", text, "Paste the line from ~/.ssh/id_ed25519.pub.")
    if len(workload.ssh_keys) > MOST_KEYS:
        text = f"{len(workload.ssh_keys)} keys were given; the maximum is {MOST_KEYS}."
        yield WorkloadFault("ssh_keys", text, "Remove some keys.")
        return
    for number, key in enumerate(workload.ssh_keys, start=1):
        if text := ssh_key_fault(key):
            yield WorkloadFault("ssh_keys", f"Key {number}: {text}", "Paste the line from ~/.ssh/id_ed25519.pub.")
