"""The shape of an API token: `gpb_<environment>_<8 public letters>_<secret>_<checksum>`."""

import hashlib
import re
import zlib
from dataclasses import dataclass, field

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
PREFIX_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH = 8, 52, 7  # 52 letters of five bits: 260 bits
SHAPE = re.compile(
    rf"gpb_[a-z]{{1,12}}_([{LETTERS}]{{{PREFIX_LENGTH}}})_[{LETTERS}]{{{SECRET_LENGTH}}}_([{LETTERS}]{{{CHECKSUM_LENGTH}}})"
)


@dataclass(frozen=True)
class Credential:
    """What is kept of a token, and what it is found by; the text itself only while it is made."""

    prefix: str
    digest: str
    text: str = field(default="", repr=False)


def digest(text: str) -> str:
    """Return the SHA-256 under which a secret is kept; 260 random bits need no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def checksum(text: str) -> str:
    """Return seven letters that tell a mistyped or cut token from a real one without a look-up."""
    number = zlib.crc32(text.encode())
    return "".join(LETTERS[number >> (5 * place) & 31] for place in range(CHECKSUM_LENGTH))


def make(*, environment: str, prefix: str, secret: str) -> Credential:
    """Put a token together from its random parts."""
    body = f"gpb_{environment}_{prefix}_{secret}"
    text = f"{body}_{checksum(body)}"
    return Credential(prefix, digest(text), text)


def read(text: str) -> Credential | None:
    """Read a token as it came over the wire; None when it cannot be one of ours."""
    found = SHAPE.fullmatch(text)
    if found is None or checksum(text.rpartition("_")[0]) != found[2]:
        return None
    return Credential(found[1], digest(text))
