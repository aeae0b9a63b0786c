"""Opaque ids: numbers encrypted for one scope, which tell nobody how many there are.

The same number in the same scope has always the same id, and an id of another scope is none.
"""

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from django.conf import settings

BLOCK_BYTES, CHECK_BYTES = 16, 3
NUMBER_BYTES = BLOCK_BYTES - CHECK_BYTES  # the other bytes are zero, which shows that an id is one of ours
ID_LENGTH = 26
MAX_SCOPES = 4096


def encode_opaque_id(number: int, *, scope: str) -> str:
    """Return the id of a number below 2**104 in a scope."""
    block = number.to_bytes(NUMBER_BYTES, "big") + bytes(CHECK_BYTES)
    sealed = _cipher(scope).encryptor().update(block)
    return base64.b32encode(sealed).decode().rstrip("=").lower()


def decode_opaque_id(text: str, *, scope: str) -> int | None:
    """Return the number of an id; None if it is not one of this scope."""
    if len(text) != ID_LENGTH or not text.isascii():
        return None
    try:
        sealed = base64.b32decode(text.upper() + "=" * (-ID_LENGTH % 8))
    except binascii.Error:
        return None
    block = _cipher(scope).decryptor().update(sealed)
    if not hmac.compare_digest(block[NUMBER_BYTES:], bytes(CHECK_BYTES)):
        return None
    return int.from_bytes(block[:NUMBER_BYTES], "big")


@lru_cache(maxsize=MAX_SCOPES)
def _cipher(scope: str) -> Cipher[modes.ECB]:
    key = hmac.new(settings.SECRET_KEY.encode(), f"opaque-id:{scope}".encode(), hashlib.sha256).digest()
    # One block is encrypted on its own: as a permutation of numbers, which is what is wanted here.
    return Cipher(algorithms.AES(key), modes.ECB())
