"""What `make run` prints once everything answers."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def greeting(*, address: str, demo: Mapping[str, Any], logs: Path, seconds: float) -> str:
    """Say where it is, who may come in, and how to launch a lease from a shell."""
    accounts = demo.get("accounts", [])
    wide = max((len(account["email"]) for account in accounts), default=0)
    lines = [f"gpubroker runs at {address}  (ready in {seconds:.1f} s)", "", "Sign in as"]
    lines += [
        f"  {account['email']:<{wide}}  {account['password']}  {account['role']}" for account in accounts
    ]
    lines += ["", f"API token  {demo.get('token', '(none)')}"]
    if launch := demo.get("launch"):
        lines += ["Launch a lease", f"  {call(address, demo.get('token', ''), launch)}"]
    return "\n".join([*lines, "", f"Logs in {logs}", "Ctrl-C stops everything; what you did stays."])


def call(address: str, token: str, launch: Mapping[str, Any]) -> str:
    """Write the request for a shell: for the address of this start, and with a key that no start before it printed.

    An old key would be answered with the lease that it launched then, running or long gone.
    """
    key = f"first-launch-{secrets.token_hex(4)}"
    return (
        f"curl -s -X POST {address}/api/v1/leases -H 'Authorization: Bearer {token}'"
        f" -H 'Idempotency-Key: {key}' -H 'Content-Type: application/json' -d '{json.dumps(launch)}'"
    )
