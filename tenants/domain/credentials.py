"""Format of an API token: `gpb_<environment>_<8 public letters>_<secret>_<checksum>`."""

import hashlib
import re
import zlib
from dataclasses import dataclass, field

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
PREFIX_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH = 8, 52, 7  # 52 letters of five bits: 260 bits
TOKEN_PATTERN = re.compile(
    rf"gpb_[a-z]{{1,12}}_([{ALPHABET}]{{{PREFIX_LENGTH}}})_[{ALPHABET}]{{{SECRET_LENGTH}}}_([{ALPHABET}]{{{CHECKSUM_LENGTH}}})"
)


@dataclass(frozen=True)
class Credential:
    """Prefix and digest of a token; its text only while it is created."""

    prefix: str
    digest: str
    text: str = field(default="", repr=False)


def digest(text: str) -> str:
    """Return the SHA-256 under which a secret is stored.

    With 260 random bits no slow hash is needed.
    """
    return hashlib.sha256(text.encode()).hexdigest()


def checksum(text: str) -> str:
    """Return seven letters that detect a mistyped or truncated token without a look-up."""
    number = zlib.crc32(text.encode())
    return "".join(ALPHABET[number >> (5 * place) & 31] for place in range(CHECKSUM_LENGTH))


def compose_token(*, environment: str, prefix: str, secret: str) -> Credential:
    """Compose a token from its random parts."""
    body = f"gpb_{environment}_{prefix}_{secret}"
    text = f"{body}_{checksum(body)}"
    return Credential(prefix, digest(text), text)


def parse_token(text: str) -> Credential | None:
    """Parse a token from a request; None when it cannot be one of ours."""
    found = TOKEN_PATTERN.fullmatch(text)
    if found is None or checksum(text.rpartition("_")[0]) != found[2]:
        return None
    return Credential(found[1], digest(text))
