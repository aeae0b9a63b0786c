"""Launch templates in the portal: list, create, change and delete."""

import pytest

from broker.models import LaunchTemplate
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import save_login, save_operator_template, save_template
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
FIELDS = {
    "name": "ComfyUI",
    "description": "Pictures from text",
    "icon": "palette",
    "shape": "session",
    "image": "ghcr.io/acme/comfy:1",
    "entrypoint": "python -u",
    "command": "main.py --listen",
    "ports": "web 7860\r\ndb 5432 tcp\r\n",
    "env": "MODE=fast",
    "mount_path": "/workspace",
    "readiness_path": "/health",
    "token_variable": "",
    "pull_secret": "",
}


def templates(portal: PortalSession) -> list[LaunchTemplate]:
    with tenant_scope(portal.owner.tenant.pk):
        return list(LaunchTemplate.objects.order_by("name"))


def test_a_template_is_created_and_listed(portal: PortalSession) -> None:
    assert "No templates yet" in portal.read("/templates/")
    assert portal.post("/templates/new/", **FIELDS)["Location"] == "/templates/"
    (template,) = templates(portal)
    assert [(port["name"], port["number"], port["http"]) for port in template.ports] == [
        ("web", 7860, True),
        ("db", 5432, False),
    ]
    text = portal.read("/templates/")
    assert "ComfyUI" in text
    assert "ghcr.io/acme/comfy:1" in text
    assert "db 5432 tcp" in text


def test_a_template_is_changed_by_its_form_and_deleted(portal: PortalSession) -> None:
    portal.post("/templates/new/", **FIELDS)
    (template,) = templates(portal)
    page = portal.get(f"/templates/{template.pk}/").content.decode()
    assert "db 5432 tcp" in page
    assert 'value="main.py --listen"' in page
    changed = {**FIELDS, "name": "Comfy", "needs_volume": "on"}
    assert portal.post(f"/templates/{template.pk}/", **changed)["Location"] == "/templates/"
    (template,) = templates(portal)
    assert (template.name, template.needs_volume, template.version) == ("Comfy", True, 2)
    assert "needs a volume" in portal.read("/templates/")
    assert "keep what it said" in portal.read(f"/templates/{template.pk}/delete/")
    portal.post(f"/templates/{template.pk}/delete/")
    assert templates(portal) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": "web"}, "Enter a name and a number per line"),
        ({"ports": "web 80"}, "run without root rights"),
        ({"env": "MODE"}, "Enter NAME=value"),
        ({"env": "HF_TOKEN=hf_x"}, "looks like a credential"),
        ({"image": "no image"}, "cannot contain spaces"),
        ({"icon": "skull"}, "is not available"),
        ({"pull_secret": "sec_0"}, "does not exist in this project"),
    ],
)
def test_an_invalid_template_is_refused_and_keeps_what_was_entered(
    change: dict[str, str], words: str, portal: PortalSession
) -> None:
    answer = portal.post("/templates/new/", **{**FIELDS, **change})
    assert answer.status_code == 400
    assert words in visible_text(answer)
    assert templates(portal) == []


def test_a_taken_name_is_refused_beside_its_field(portal: PortalSession) -> None:
    save_template(portal.owner)
    answer = portal.post("/templates/new/", **FIELDS)
    assert "There is a template ComfyUI already" in visible_text(answer)
    assert 'id="name-err"' in answer.content.decode()


def test_a_registry_login_is_chosen_by_name(portal: PortalSession) -> None:
    login = save_login(portal.owner)
    assert "GHCR (ghcr.io)" in portal.read("/templates/new/")
    portal.post("/templates/new/", **{**FIELDS, "pull_secret": login.pk})
    (template,) = templates(portal)
    assert template.pull_secret_id == login.pk
    assert "private registry" in portal.read("/templates/")


def test_members_see_templates_and_cannot_change_them(portal: PortalSession) -> None:
    template = save_template(portal.owner)
    save_operator_template(name="Shared")
    member = portal.sign_in_as(Role.MEMBER)
    text = member.read("/templates/")
    assert "ComfyUI" in text
    assert "Shared" in text
    assert "New template" not in text
    assert member.get("/templates/new/").status_code == 403
    assert member.post(f"/templates/{template.pk}/", **FIELDS).status_code == 403
    assert member.post(f"/templates/{template.pk}/delete/").status_code == 403
