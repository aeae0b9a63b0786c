"""Validation of launch templates, and their stored form."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.domain.workloads.image_references import image_host
from broker.domain.workloads.registry_logins import image_login_fault, normalize_server
from broker.domain.workloads.template_contents import (
    ICONS,
    TemplateContents,
    base_name,
    contents_as_json,
    contents_from_json,
    workload_template,
)
from broker.domain.workloads.template_validation import find_template_faults, icon_fault
from broker.domain.workloads.templates import ContainerPort, WorkloadShape

WEB = ContainerPort("web", 8080)
GOOD = TemplateContents(
    "ghcr.io/acme/app:1",
    entrypoint="python -u",
    command="serve.py 'two words'",
    ports=(WEB, ContainerPort("db", 5432, is_http=False)),
    env=(("MODE", "fast"), ("HF_TOKEN", "")),
    mount_path="/srv/app",
    readiness_path="/health?full=1",
    token_variable="APP_TOKEN",
)
SPRITE = Path(__file__).parents[4] / "static" / "icons.svg"


def test_a_good_template_has_no_faults_and_survives_storage() -> None:
    assert find_template_faults(GOOD) == ()
    assert contents_from_json(contents_as_json(GOOD)) == replace(GOOD, env=tuple(sorted(GOOD.env)))


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"image": ""}, "image", "needs an image"),
        ({"image": "http://x"}, "image", "no scheme"),
        ({"image": "10.0.0.1/x"}, "image", "inside the cluster"),
        ({"entrypoint": "'open"}, "entrypoint", "not closed"),
        ({"entrypoint": "x" * 2001}, "entrypoint", "at most 2000"),
        ({"command": "'open"}, "command", "not closed"),
        ({"env": (("HF_TOKEN", "hf_x"),)}, "env", "looks like a credential"),
        ({"env": (("PGPASSWORD", "x"),)}, "env", "looks like a credential"),
        ({"env": (("DATABASE_URL", "postgres://u:p@h/d"),)}, "env", "contains a password"),
        ({"env": (("LD_PRELOAD", "x"),)}, "env", "cannot be set"),
        ({"ports": tuple(ContainerPort(f"p{n}", 2000 + n) for n in range(9))}, "ports", "the maximum is 8"),
        ({"ports": (ContainerPort("Web", 8080),)}, "ports", "not a valid port name"),
        ({"ports": (ContainerPort("a--b", 8080),)}, "ports", "not a valid port name"),
        ({"ports": (ContainerPort("x" * 16, 8080),)}, "ports", "not a valid port name"),
        ({"ports": (ContainerPort("web", 80),)}, "ports", "without root rights"),
        ({"ports": (ContainerPort("web", 70000),)}, "ports", "not possible"),
        ({"ports": (WEB, ContainerPort("web", 8081))}, "ports", "name web is used 2 times"),
        ({"ports": (WEB, ContainerPort("api", 8080))}, "ports", "number 8080 is used 2 times"),
        ({"mount_path": "workspace"}, "mount_path", "absolute path"),
        ({"mount_path": "/a/../etc"}, "mount_path", "absolute path"),
        ({"mount_path": "/etc/app"}, "mount_path", "below /etc"),
        ({"mount_path": "/"}, "mount_path", "absolute path"),
        ({"readiness_path": "health"}, "readiness_path", "begins with /"),
        ({"readiness_path": "/a", "ports": ()}, "readiness_path", "needs an HTTP port"),
        ({"token_variable": "KUBERNETES_X"}, "token_variable", "cannot be set"),
        ({"token_variable": "MODE"}, "token_variable", "plain variable"),
    ],
)
def test_a_fault_is_reported_at_its_field(changes: dict[str, Any], field: str, text: str) -> None:
    faults = find_template_faults(replace(GOOD, **changes))
    assert [each.field for each in faults] == [field]
    assert text in faults[0].text
    assert faults[0].fix


def test_variables_that_only_sound_like_credentials_are_accepted() -> None:
    env = (("TOKENIZERS_PARALLELISM", "false"), ("MAX_TOKENS", "4096"), ("DATABASE_URL", "postgres://u:$DB_PASS@h/d"))
    assert find_template_faults(replace(GOOD, env=env)) == ()


def test_a_batch_template_has_a_shell_line_and_no_readiness_test() -> None:
    batch = replace(GOOD, shape=WorkloadShape.BATCH, command="echo 'it''s' && ls", readiness_path="")
    template = workload_template("tpl_1", "Train", batch)
    assert find_template_faults(replace(batch, command="echo 'open")) == ()
    assert (template.in_shell, template.arguments, template.probe) == (True, (), None)
    assert (base_name(batch), base_name(GOOD)) == ("batch", "own")


def test_a_program_without_http_ports_is_ready_when_its_port_accepts_connections() -> None:
    probe = workload_template("tpl_1", "Db", replace(GOOD, ports=(GOOD.ports[1],), readiness_path="")).probe
    assert probe is not None
    assert (probe.port, probe.path) == (5432, "")
    assert workload_template("tpl_1", "Sleep", replace(GOOD, ports=(), readiness_path="")).probe is None


def test_every_icon_is_in_the_sprite() -> None:
    symbols = SPRITE.read_text()
    assert [name for name in ICONS if f'id="i-{name}"' not in symbols] == []
    assert icon_fault("skull") == "The icon 'skull' is not available."
    assert icon_fault("rocket") == ""


@pytest.mark.parametrize(
    ("image", "host"),
    [
        ("python:3", ""),
        ("acme/app", ""),
        ("docker.io/acme/app", ""),
        ("ghcr.io/acme/app:1", "ghcr.io"),
        ("Registry.example:5000/app", "registry.example:5000"),
    ],
)
def test_the_registry_of_an_image_is_found(image: str, host: str) -> None:
    assert image_host(image) == host


def test_a_login_fits_the_images_of_its_registry() -> None:
    assert normalize_server(" https://index.docker.io/v1/ ") == "docker.io"
    assert image_login_fault("acme/app", "docker.io") == ""
    assert image_login_fault("ghcr.io/acme/app", "ghcr.io") == ""
    assert "but the login is for ghcr.io" in image_login_fault("acme/app", "ghcr.io")
