"""Find credentials in tracked files: `python -m deploy.secret_scan`. A find fails the build."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

KINDS = {
    # The key itself, on the next line or in a string; a banner alone is what tests call one by.
    "private key": re.compile(
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:\s|\\[nr]|[\"'])*(?:[A-Za-z0-9+/]{16}|Proc-Type)"
    ),
    "AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    "Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{20,}\b"),
    "Stripe live key": re.compile(r"\b[rs]k_live_[0-9A-Za-z]{16,}\b"),
    "API token of ours": re.compile(r"\bgpb_[a-z]+_[0-9A-Za-z]{8}_[0-9A-Za-z]{32,}"),
    "JSON web token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}"),
    # user:password@host; a placeholder in <…>, {…} or $… is none, and neither is the word "password".
    "password in an address": re.compile(r"\b[a-z+]+://[^\s/:@{<$]+:(?!password@)[^\s/:@{<$]{6,}@[\w.-]+"),
    "registry address in a lock": re.compile(r"^(?:--(?:extra-)?index-url|--find-links)\b", re.MULTILINE),
}
BINARY = {".png", ".woff2", ".ico", ".gz", ".br", ".pdf"}


def tracked() -> list[Path]:
    """Return every file that git knows or would take."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        text=True,
    )
    return [Path(name) for name in told.stdout.split("\0") if name and Path(name).suffix not in BINARY]


def finds(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and kind of everything in a text that looks like a credential."""
    for kind, pattern in KINDS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, kind


def main() -> int:
    """Print what was found, never the credential itself."""
    found = [
        f"{file}:{line}: {kind}"
        for file in tracked()
        if file.is_file()
        for line, kind in finds(file.read_text(errors="replace"))
    ]
    print("\n".join(found) or "no secrets in tracked files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
