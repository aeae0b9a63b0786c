"""Saved templates for tests."""

from typing import Any

from broker.models import LaunchTemplate, OperatorTemplate, Secret
from broker.services.launch_templates import template_store
from broker.services.secrets import registry_secrets
from tenants.models import Project
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.simulation import NOW, TenantContext

WEB = {"name": "web", "number": 7860, "http": True}
METRICS = {"name": "metrics", "number": 9090, "http": True}
DATABASE = {"name": "db", "number": 5432, "http": False}
COMFY: dict[str, Any] = {
    "name": "ComfyUI",
    "description": "Pictures from text",
    "icon": "palette",
    "shape": "session",
    "image": "ghcr.io/acme/comfy:1",
    "entrypoint": "python -u",
    "command": "main.py --listen",
    "ports": [WEB, METRICS, DATABASE],
    "env": {"MODE": "fast"},
    "mount_path": "/workspace",
    "readiness_path": "/health",
    "token_variable": "COMFY_TOKEN",
}
PASSWORD = "registry-password-nobody-may-see"


def save_template(owner: TenantContext, *, project: Project | None = None, **values: Any) -> LaunchTemplate:
    """Save a template of a tenant's project."""
    with tenant_scope(owner.tenant.pk):
        return template_store.create_template(
            project=project or owner.project, values={**COMFY, **values}, actor=owner.actor, now=NOW
        )


def save_operator_template(**values: Any) -> OperatorTemplate:
    return template_store.create_operator_template(values={**COMFY, **values}, actor=SYSTEM, now=NOW)


def change_template(owner: TenantContext, template: LaunchTemplate, **values: Any) -> LaunchTemplate:
    with tenant_scope(owner.tenant.pk):
        return template_store.change_template(template, values, actor=owner.actor, now=NOW)


def save_login(owner: TenantContext, name: str = "GHCR", *, registry: str = "ghcr.io") -> Secret:
    """Save the login of a registry."""
    with tenant_scope(owner.tenant.pk):
        return registry_secrets.create_registry_secret(
            project=owner.project,
            name=name,
            registry=registry,
            username="acme",
            password=PASSWORD,
            actor=owner.actor,
            now=NOW,
        )
