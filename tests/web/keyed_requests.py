"""Requests of operators' browsers to the API."""

import itertools
import json
from typing import Any

from django.test import Client

_keys = itertools.count()


def post_keyed(client: Client, path: str, body: Any = None, **headers: str) -> Any:
    """Send a POST with a new Idempotency-Key, unless the headers name one."""
    text = "" if body is None else json.dumps(body)
    named = {"Idempotency-Key": f"operator-{next(_keys)}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return client.post(path, text, content_type="application/json", headers=named)


def patch_json(client: Client, path: str, body: Any, **headers: str) -> Any:
    """Send a PATCH."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.patch(path, json.dumps(body), content_type="application/json", headers=named)
