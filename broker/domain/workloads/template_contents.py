"""Contents of a saved launch template, and the workload template made of them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.domain.workloads.templates import (
    BATCH,
    HOME,
    OWN_IMAGE,
    ContainerPort,
    ReadinessProbe,
    WorkloadShape,
    WorkloadTemplate,
)

PATIENCE_S = 1200  # programs of others may load a model first
# Icons of the portal that suit a template; the first is the default.
ICONS = (
    *("package", "activity", "bolt", "chart-bar", "chart-line", "code", "cpu", "database", "flame", "message-chatbot"),
    *("notebook", "palette", "player-play", "robot", "rocket", "server-2", "stack-2", "terminal-2", "tool", "world"),
)


@dataclass(frozen=True, slots=True)
class TemplateContents:
    """What a saved template runs, as written; a lease keeps a copy."""

    image: str
    shape: WorkloadShape = WorkloadShape.SESSION
    entrypoint: str = ""  # replaces the image's own entry point
    command: str = ""  # batch: a shell line; else arguments
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    mount_path: str = HOME  # of the volume, else of scratch storage
    needs_volume: bool = False
    readiness_path: str = ""  # of the first HTTP port
    token_variable: str = ""  # in which the program expects the lease's access token

    @property
    def http_ports(self) -> tuple[ContainerPort, ...]:
        return tuple(each for each in self.ports if each.is_http)


def contents_as_json(contents: TemplateContents) -> dict[str, Any]:
    """Return contents as a lease stores them."""
    return {
        "image": contents.image,
        "shape": contents.shape.value,
        "entrypoint": contents.entrypoint,
        "command": contents.command,
        "ports": ports_as_json(contents.ports),
        "env": dict(contents.env),
        "mount_path": contents.mount_path,
        "needs_volume": contents.needs_volume,
        "readiness_path": contents.readiness_path,
        "token_variable": contents.token_variable,
    }


def contents_from_json(stored: Mapping[str, Any]) -> TemplateContents:
    """Return the contents that a lease stored."""
    return TemplateContents(
        image=stored["image"],
        shape=WorkloadShape(stored["shape"]),
        entrypoint=stored["entrypoint"],
        command=stored["command"],
        ports=ports_from_json(stored["ports"]),
        env=tuple(sorted(stored["env"].items())),
        mount_path=stored["mount_path"],
        needs_volume=stored["needs_volume"],
        readiness_path=stored["readiness_path"],
        token_variable=stored["token_variable"],
    )


def ports_as_json(ports: tuple[ContainerPort, ...]) -> list[dict[str, Any]]:
    """Return ports as a column stores them."""
    return [{"name": each.name, "number": each.number, "http": each.is_http} for each in ports]


def ports_from_json(stored: list[dict[str, Any]]) -> tuple[ContainerPort, ...]:
    """Return the ports that a column stored."""
    return tuple(ContainerPort(each["name"], each["number"], each["http"]) for each in stored)


def workload_template(name: str, label: str, contents: TemplateContents) -> WorkloadTemplate:
    """Return the workload template of some contents.

    A batch template's command is the default of its leases' own, so it is not part of it.
    """
    batch = contents.shape is WorkloadShape.BATCH
    return WorkloadTemplate(
        name=name,
        label=label,
        shape=contents.shape,
        image=contents.image,
        start=tuple(shlex.split(contents.entrypoint)),
        arguments=() if batch else tuple(shlex.split(contents.command)),
        in_shell=batch,
        ports=contents.ports,
        probe=_probe(contents),
        env=contents.env,
        token_env=contents.token_variable,
        home=contents.mount_path,
    )


def base_name(contents: TemplateContents) -> str:
    """Return the built-in template whose leases behave alike: a command that ends, or not."""
    return BATCH.name if contents.shape is WorkloadShape.BATCH else OWN_IMAGE.name


def _probe(contents: TemplateContents) -> ReadinessProbe | None:
    if not contents.ports or contents.shape is WorkloadShape.BATCH:
        return None
    first = next(iter(contents.http_ports), contents.ports[0])
    return ReadinessProbe(first.number, contents.readiness_path if first.is_http else "", PATIENCE_S)
