"""Public SSH keys: one line of an authorized_keys file, without options."""

import base64
import hashlib
import re
import struct

LONGEST_KEY = 8192
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
SSH_KEY_TYPES = {
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
}


def ssh_key_fault(key: str) -> str:
    """Return what is wrong with an authorized_keys line; empty if nothing.

    Options are refused, for they can run commands.
    """
    if "PRIVATE KEY" in key:
        return "this is a private key. Keep it secret and paste the public key."
    if len(key) > LONGEST_KEY or CONTROL.search(key) or "\n" in key or "\t" in key:
        return "a key must be one line of plain text."
    words = key.split(" ")
    if words[0] not in SSH_KEY_TYPES or len(words) < 2:
        return f"it must start with one of {', '.join(sorted(SSH_KEY_TYPES))}, followed by the key."
    try:
        body = base64.b64decode(words[1], validate=True)
    except ValueError:  # also of characters beyond ASCII
        return "the key is damaged."
    if _embedded_key_type(body) != words[0].encode():
        return "the key is damaged: its type does not match its prefix."
    return ""


def key_fingerprint(key: str) -> str:
    """Return the fingerprint of a valid key, as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(base64.b64decode(key.split(" ")[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def key_type(key: str) -> str:
    """Return the type of a valid key, such as ssh-ed25519."""
    return key.split(" ", 1)[0]


def key_comment(key: str) -> str:
    """Return the comment of a valid key; empty if it has none."""
    return key.split(" ", 2)[2].strip() if key.count(" ") >= 2 else ""


def _embedded_key_type(body: bytes) -> bytes:
    """Return the first length-prefixed field of a key, which repeats its type."""
    if len(body) < 4:
        return b""
    (length,) = struct.unpack(">I", body[:4])
    return body[4 : 4 + length]
