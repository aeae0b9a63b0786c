"""Validation of launch templates: every fault is reported at once, with its fix."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator

from broker.domain.workloads.credential_detection import embedded_credentials, looks_like_credential
from broker.domain.workloads.image_references import image_reference_fault
from broker.domain.workloads.template_contents import ICONS, TemplateContents
from broker.domain.workloads.templates import BATCH, OWN_IMAGE, Workload, WorkloadShape
from broker.domain.workloads.validation import (
    LONGEST_COMMAND,
    WorkloadFault,
    find_workload_faults,
    variable_name_fault,
)
from tenants.domain.ssh_keys import CONTROL

MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_PATH_LENGTH = 60, 300, 200
MAX_PORTS = 8
PORT_NUMBERS = range(1024, 65536)  # programs of leases do not run as root
PORT_NAME = re.compile(r"[a-z](?:-?[a-z0-9])*", re.ASCII)
MAX_PORT_NAME_LENGTH = 15
MOUNT_PATH = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)+", re.ASCII)
URL_PATH = re.compile(r"/[!-~]*", re.ASCII)
# Folders that the cluster, the image's system or the broker need.
SYSTEM_FOLDERS = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr", "var")


def find_template_faults(contents: TemplateContents) -> tuple[WorkloadFault, ...]:
    """Return everything that is wrong with a template's contents."""
    return (
        *_program_faults(contents),
        *_env_faults(contents),
        *_port_faults(contents),
        *_path_faults(contents),
        *_token_faults(contents),
    )


def icon_fault(icon: str) -> str:
    """Return what is wrong with an icon; empty if nothing."""
    return "" if icon in ICONS else f"The icon {icon[:40]!r} is not available."


def _program_faults(contents: TemplateContents) -> Iterator[WorkloadFault]:
    if not contents.image:
        yield WorkloadFault("image", "A template needs an image.", "Enter an image.")
    elif text := image_reference_fault(contents.image):
        yield WorkloadFault("image", text, "Enter it as for docker pull.")
    if len(contents.entrypoint) > LONGEST_COMMAND or CONTROL.search(contents.entrypoint):
        text = f"An entry point can have at most {LONGEST_COMMAND} characters, and no control characters."
        yield WorkloadFault("entrypoint", text, "Put longer ones into a script in the image.")
    elif not _can_be_split(contents.entrypoint):
        yield WorkloadFault(
            "entrypoint", "A quote in the entry point is not closed.", "Close it, or escape it with \\."
        )


def _env_faults(contents: TemplateContents) -> Iterator[WorkloadFault]:
    """Find faults of command and variables, and credentials in clear text."""
    name = BATCH.name if contents.shape is WorkloadShape.BATCH else OWN_IMAGE.name
    as_launched = Workload(name, image="image", command=contents.command, env=contents.env)
    yield from find_workload_faults(as_launched)
    for variable, value in contents.env:
        if value and looks_like_credential(variable):
            text = f"{variable[:60]} looks like a credential, and everyone who sees the template could read it."
            yield WorkloadFault("env", text, "Save it under Secrets and choose it at each launch.")
        elif any(embedded_credentials(value)):
            text = f"{variable[:60]} contains a password, and everyone who sees the template could read it."
            yield WorkloadFault("env", text, "Save the whole value under Secrets and choose it at each launch.")


def _port_faults(contents: TemplateContents) -> Iterator[WorkloadFault]:
    if len(contents.ports) > MAX_PORTS:
        text = f"{len(contents.ports)} ports were given; the maximum is {MAX_PORTS}."
        yield WorkloadFault("ports", text, "Remove some ports.")
    for port in contents.ports:
        if not PORT_NAME.fullmatch(port.name) or len(port.name) > MAX_PORT_NAME_LENGTH:
            yield WorkloadFault(
                "ports",
                f"{port.name[:40]!r} is not a valid port name.",
                f"Use 1 to {MAX_PORT_NAME_LENGTH} lowercase letters, digits and single hyphens; begin with a letter.",
            )
        if port.number not in PORT_NUMBERS:
            text = f"Port {port.number} is not possible: programs run without root rights."
            yield WorkloadFault("ports", text, "Use a port from 1024 to 65535.")
    for what, values in (("name", [p.name for p in contents.ports]), ("number", [p.number for p in contents.ports])):
        for value, count in Counter(values).items():
            if count > 1:
                yield WorkloadFault("ports", f"The port {what} {value} is used {count} times.", "Use each once.")


def _path_faults(contents: TemplateContents) -> Iterator[WorkloadFault]:
    path = contents.mount_path
    if not MOUNT_PATH.fullmatch(path) or len(path) > MAX_PATH_LENGTH:
        text = "The mount path must be an absolute path of letters, digits, dots, hyphens and underscores."
        yield WorkloadFault("mount_path", text, "Enter a path such as /workspace.")
    elif path.split("/")[1] in SYSTEM_FOLDERS:
        text = f"Nothing can be mounted below /{path.split('/')[1]}: the program's system files are there."
        yield WorkloadFault("mount_path", text, "Enter a path such as /workspace.")
    probe = contents.readiness_path
    if probe and (not URL_PATH.fullmatch(probe) or len(probe) > MAX_PATH_LENGTH):
        text = f"A readiness path begins with / and has at most {MAX_PATH_LENGTH} characters without spaces."
        yield WorkloadFault("readiness_path", text, "Enter a path such as /health.")
    elif probe and not contents.http_ports:
        text = "A readiness path needs an HTTP port."
        yield WorkloadFault("readiness_path", text, "Add an HTTP port, or leave the path empty.")


def _token_faults(contents: TemplateContents) -> Iterator[WorkloadFault]:
    name = contents.token_variable
    if not name:
        return
    if fault := variable_name_fault("token_variable", name):
        yield fault
    elif name in dict(contents.env):
        text = f"{name} is set as a plain variable too."
        yield WorkloadFault("token_variable", text, "Remove one of the two.")


def _can_be_split(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:
        return False
    return True
