"""Signing in with the company's own OpenID Connect server, when the settings name one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from tests.database import OwnDatabase

CODE = """
import django; django.setup()
from django.test import Client
from django.urls import reverse
answer = Client().get("/sign-in/")
assert answer.status_code == 200
assert b"Continue with Kestrel" in answer.content
address = reverse("openid_connect_login", args=["company"])
assert address.encode() in answer.content
assert "form-action 'self' https://id.example.org" in answer["Content-Security-Policy"]
asks = Client().get(address)
assert asks.status_code == 200, "a link signs nobody in: it asks first"
print("fine")
"""


@pytest.mark.deep
def test_single_sign_on_is_enabled_by_settings_alone(own_database: OwnDatabase) -> None:
    company = {
        "GPUBROKER_DATABASE_URL": own_database.web_url,
        "GPUBROKER_OIDC_NAME": "Kestrel",
        "GPUBROKER_OIDC_CLIENT_ID": "gpubroker",
        "GPUBROKER_OIDC_CLIENT_SECRET": "secret",
        "GPUBROKER_OIDC_SERVER_URL": "https://id.example.org/realms/kestrel",
        "GPUBROKER_ALLOWED_HOSTS": '["testserver"]',
    }
    found = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, **company},
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
    )
    assert found.stdout.strip() == "fine", found.stderr[-2000:]


@pytest.mark.django_db
def test_without_settings_single_sign_on_is_not_offered_and_its_urls_return_404() -> None:
    assert b"Continue with a passkey" in (page := Client().get("/sign-in/").content)
    assert page.count(b"Continue with") == 1
    for address in ("oidc/company/login/", "login/cancelled/", "signup/"):
        assert Client().get(f"/account/company/{address}").status_code == 404
