"""The style page as an operator in development gets it."""

from typing import Any

from django.test import Client, override_settings

from tenants.models import User


def get_style_page(query: str = "") -> Any:
    client = Client()
    client.force_login(User.objects.create_user(f"designer{query.strip('?')}@example.org", is_staff=True))
    with override_settings(STYLE_GUIDE=True):
        return client.get(f"/styleguide/{query}")
