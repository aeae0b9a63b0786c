"""Launch templates: created, changed, deleted, refused."""

import pytest
from django.db import IntegrityError, transaction

from broker.models import LaunchTemplate, OperatorTemplate
from broker.services.launch_templates import template_store
from broker.services.launch_templates.template_errors import TemplateNameTaken, TooManyTemplates
from broker.services.secrets.secret_errors import SecretInUse
from tenants.models import AuditEvent
from tenants.services.actors import SYSTEM
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import (
    COMFY,
    change_template,
    save_login,
    save_operator_template,
    save_template,
)
from tests.broker.services.secrets.saved_secrets import delete_secret, save_secret
from tests.simulation import NOW, TenantContext, create_tenant


def test_a_template_is_stored_as_written_and_audited(kestrel: TenantContext) -> None:
    template = save_template(kestrel)
    assert (template.name, template.version, template.contents.mount_path) == ("ComfyUI", 1, "/workspace")
    assert [port.number for port in template.contents.http_ports] == [7860, 9090]
    with tenant_scope(kestrel.tenant.pk):
        event = AuditEvent.objects.get(action="template.create")
    assert (event.subject_id, event.detail["version"]) == (template.pk, 1)


def test_a_change_raises_the_version_and_keeps_the_rest(kestrel: TenantContext) -> None:
    changed = change_template(kestrel, save_template(kestrel), image="ghcr.io/acme/comfy:2")
    assert (changed.version, changed.image, changed.icon) == (2, "ghcr.io/acme/comfy:2", "palette")


def test_a_name_is_used_once_per_project(kestrel: TenantContext) -> None:
    save_template(kestrel)
    save_template(kestrel, project=kestrel.create_project("team"))
    save_template(create_tenant("Swift"))
    with pytest.raises(TemplateNameTaken):
        save_template(kestrel)
    other = save_template(kestrel, name="Other")
    with pytest.raises(TemplateNameTaken):
        change_template(kestrel, other, name="ComfyUI")


def test_every_fault_of_a_template_is_reported(kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue) as refused:
        save_template(kestrel, icon="skull", image="no image", env={"HF_TOKEN": "hf_x"}, description="a\nb")
    assert [each["field"] for each in refused.value.extra["errors"]] == ["description", "icon", "image", "env"]


def test_an_unknown_kind_is_refused(kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue, match="The kind 'forever' does not exist"):
        save_template(kestrel, shape="forever")


def test_a_pull_secret_belongs_to_the_project_and_to_the_images_registry(kestrel: TenantContext) -> None:
    login = save_login(kestrel)
    assert save_template(kestrel, pull_secret=login.pk).pull_secret == login
    with pytest.raises(InvalidValue, match=r"pulled from docker\.io, but the login is for ghcr\.io"):
        save_template(kestrel, name="b", image="acme/comfy:1", pull_secret=login.pk)
    with pytest.raises(InvalidValue, match="is not the login of a registry"):
        save_template(kestrel, name="b", pull_secret=save_secret(kestrel).pk)
    with pytest.raises(ObjectNotFound):
        save_template(kestrel, name="b", pull_secret=save_login(create_tenant("Swift")).pk)


def test_a_pull_secret_is_removed_from_a_template_and_then_deleted(kestrel: TenantContext) -> None:
    login = save_login(kestrel)
    template = save_template(kestrel, pull_secret=login.pk)
    with pytest.raises(SecretInUse, match="The template ComfyUI pulls its image with GHCR"):
        delete_secret(kestrel, login)
    assert change_template(kestrel, template, pull_secret="").pull_secret is None
    delete_secret(kestrel, login)


def test_a_deleted_template_cannot_be_changed(kestrel: TenantContext) -> None:
    template = save_template(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        template_store.delete_template(template, actor=kestrel.actor, now=NOW)
        assert not LaunchTemplate.objects.exists()
    with pytest.raises(ObjectNotFound, match="This template was deleted"):
        change_template(kestrel, template, name="x")


def test_operators_templates_are_created_changed_and_deleted(kestrel: TenantContext) -> None:
    template = save_operator_template()
    with pytest.raises(TemplateNameTaken):
        save_operator_template()
    changed = template_store.change_operator_template(template, {"command": "x.py"}, actor=SYSTEM, now=NOW)
    assert (changed.version, changed.command, changed.image) == (2, "x.py", COMFY["image"])
    with tenant_scope(kestrel.tenant.pk):
        assert OperatorTemplate.objects.get().command == "x.py"  # every tenant reads it
    template_store.delete_operator_template(template, actor=SYSTEM, now=NOW)
    assert not OperatorTemplate.objects.exists()


def test_the_number_of_templates_is_limited(kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_store, "MAX_TEMPLATES", 1)
    save_template(kestrel)
    save_operator_template()
    with pytest.raises(TooManyTemplates):
        save_template(kestrel, name="b")
    with pytest.raises(TooManyTemplates):
        save_operator_template(name="b")


def test_another_tenant_does_not_see_a_template(kestrel: TenantContext) -> None:
    template, other = save_template(kestrel), create_tenant("Swift")
    with tenant_scope(other.tenant.pk):
        assert not LaunchTemplate.objects.exists()
        assert LaunchTemplate.objects.filter(pk=template.pk).update(name="mine") == 0


def test_the_database_refuses_an_unknown_shape(kestrel: TenantContext) -> None:
    template = save_template(kestrel)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(IntegrityError), transaction.atomic():
        LaunchTemplate.objects.filter(pk=template.pk).update(shape="forever")
