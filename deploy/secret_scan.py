"""Search tracked files for credentials: `python -m deploy.secret_scan`; any hit fails."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

KINDS = {
    # With key material, on the next line or in a string; tests contain the header alone.
    "private key": re.compile(
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:\s|\\[nr]|[\"'])*(?:[A-Za-z0-9+/]{16}|Proc-Type)"
    ),
    "AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    "Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{20,}\b"),
    "Stripe live key": re.compile(r"\b[rs]k_live_[0-9A-Za-z]{16,}\b"),
    "API token of ours": re.compile(r"\bgpb_[a-z]+_[0-9A-Za-z]{8}_[0-9A-Za-z]{32,}"),
    "JSON web token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}"),
    # user:password@host, except placeholders in <…>, {…} or $… and the word "password".
    "password in an address": re.compile(r"\b[a-z+]+://[^\s/:@{<$]+:(?!password@)[^\s/:@{<$]{6,}@[\w.-]+"),
    "registry address in a lock": re.compile(r"^(?:--(?:extra-)?index-url|--find-links)\b", re.MULTILINE),
}
BINARY = {".png", ".woff2", ".ico", ".gz", ".br", ".pdf"}


def tracked_files() -> list[Path]:
    """Return every file that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        text=True,
    )
    return [Path(name) for name in listed.stdout.split("\0") if name and Path(name).suffix not in BINARY]


def find_credentials(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and kind of everything in a text that looks like a credential."""
    for kind, pattern in KINDS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, kind


def main() -> int:
    """Print the hits, never the credentials themselves."""
    found = [
        f"{file}:{line}: {kind}"
        for file in tracked_files()
        if file.is_file()
        for line, kind in find_credentials(file.read_text(errors="replace"))
    ]
    print("\n".join(found) or "no secrets in tracked files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
