"""Example API calls of a page, as its "API / CLI" drawer shows them."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from web.portal.page_context import Scope, public_url

BEARER = '-H "Authorization: Bearer $GPB_TOKEN"'


def curl_get(path: str) -> str:
    """Return a GET as a curl command."""
    return f"curl {BEARER} \\\n  '{public_url('/api/v1' + path)}'"


def curl_list(path: str, scope: Scope, **parameters: object) -> str:
    """Return the GET of a list, limited to the open project and those below it."""
    if not scope.whole:
        parameters["below"] = scope.project.pk
    query = urlencode({name: value for name, value in parameters.items() if value != ""}, safe=",")
    return curl_get(f"{path}?{query}" if query else path)


def curl_put(path: str, body: Mapping[str, Any]) -> str:
    """Return a PUT of a versioned resource; its `If-Match` must name the newest version."""
    text = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''")
    head = [f"curl -X PUT '{public_url('/api/v1' + path)}' \\", f"  {BEARER} \\", '  -H "If-Match: $ETAG" \\']
    return "\n".join([*head, '  -H "Content-Type: application/json" \\', f"  -d '{text}'"])


def curl_post(path: str, body: Mapping[str, Any], *, key: bool = True) -> str:
    """Return a POST; changes carry an Idempotency-Key, so that a repeat has no second effect."""
    lines = [f"curl -X POST '{public_url('/api/v1' + path)}' \\", f"  {BEARER} \\"]
    if key:
        lines.append('  -H "Idempotency-Key: $(uuidgen)" \\')
    lines.append('  -H "Content-Type: application/json" \\')
    text = json.dumps(body, ensure_ascii=False, indent=2).replace("'", "'\\''")
    return "\n".join([*lines, f"  -d '{text}'"])
