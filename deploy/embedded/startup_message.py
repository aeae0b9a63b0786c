"""Message that `make run` prints once everything is ready."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def startup_text(*, address: str, demo: Mapping[str, Any], logs: Path, seconds: float) -> str:
    """Return the message: address, accounts, and how to launch a lease from a shell."""
    accounts = demo.get("accounts", [])
    wide = max((len(account["email"]) for account in accounts), default=0)
    lines = [f"gpubroker runs at {address}  (ready in {seconds:.1f} s)", "", "Sign in as"]
    lines += [f"  {account['email']:<{wide}}  {account['password']}  {account['role']}" for account in accounts]
    lines += ["", f"API token  {demo.get('token', '(none)')}"]
    if launch := demo.get("launch"):
        lines += ["Launch a lease", f"  {launch_command(address, demo.get('token', ''), launch)}"]
    return "\n".join([*lines, "", f"Logs in {logs}", "Press Ctrl-C to stop. Your data is kept."])


def launch_command(address: str, token: str, launch: Mapping[str, Any]) -> str:
    """Return the curl command of a first lease, with a new idempotency key.

    A key that an earlier start printed would return the lease launched then, running or long gone.
    """
    key = f"first-launch-{secrets.token_hex(4)}"
    return (
        f"curl -s -X POST {address}/api/v1/leases -H 'Authorization: Bearer {token}'"
        f" -H 'Idempotency-Key: {key}' -H 'Content-Type: application/json' -d '{json.dumps(launch)}'"
    )
