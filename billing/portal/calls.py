"""The call behind a page: what the drawer "API / CLI" shows, with this page's own ids."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from billing.portal.pages import Scope, public

BEARER = '-H "Authorization: Bearer $GPB_TOKEN"'


def get(path: str) -> str:
    """Write a GET as it can be pasted into a shell."""
    return f"curl {BEARER} \\\n  '{public('/api/v1' + path)}'"


def listing(path: str, scope: Scope, **asked: object) -> str:
    """Write the GET of a list as a page shows it: of the open project with all below it."""
    if not scope.whole:
        asked["below"] = scope.project.pk
    query = urlencode({name: value for name, value in asked.items() if value != ""}, safe=",")
    return get(f"{path}?{query}" if query else path)


def put(path: str, body: Mapping[str, Any]) -> str:
    """Write a PUT of what has a version: who sends it must have seen the newest."""
    text = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''")
    head = [f"curl -X PUT '{public('/api/v1' + path)}' \\", f"  {BEARER} \\", '  -H "If-Match: $ETAG" \\']
    return "\n".join([*head, '  -H "Content-Type: application/json" \\', f"  -d '{text}'"])


def post(path: str, body: Mapping[str, Any], *, key: bool = True) -> str:
    """Write a POST; changes carry a key, so that a repeated one has no second effect."""
    lines = [f"curl -X POST '{public('/api/v1' + path)}' \\", f"  {BEARER} \\"]
    if key:
        lines.append('  -H "Idempotency-Key: $(uuidgen)" \\')
    lines.append('  -H "Content-Type: application/json" \\')
    text = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''")
    return "\n".join([*lines, f"  -d '{text}'"])
