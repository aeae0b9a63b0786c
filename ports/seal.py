"""Secrets at rest: sealed with the newest key of the secrets folder, opened with any that is still there."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

MAKE_ONE = (
    "Set GPUBROKER_CREDENTIAL_KEYS, or put a file credential_keys into the secrets folder. A new key:"
    ' python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)


class Unsealable(Exception):
    """There is no key, or none that fits: what was sealed cannot be read, and nothing new can be kept."""


def seal(secret: bytes) -> bytes:
    """Return a secret in the form in which it may be stored."""
    return _keys().encrypt(secret)


def opened(sealed: bytes) -> bytes:
    """Return a sealed secret."""
    try:
        return _keys().decrypt(sealed)
    except InvalidToken:
        raise Unsealable(
            "None of the keys in GPUBROKER_CREDENTIAL_KEYS opens what is stored. Add the key it was sealed with"
            " behind the newest, or enter the secret anew."
        ) from None


def resealed(sealed: bytes) -> bytes:
    """Return the same secret sealed with the newest key, so that older keys can be retired."""
    return seal(opened(sealed))


def _keys() -> MultiFernet:
    keys = [key for key in settings.CREDENTIAL_KEYS.split(",") if key]
    if not keys:
        raise Unsealable(f"Credentials cannot be kept: there is no key to seal them with. {MAKE_ONE}")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise Unsealable(f"A key in GPUBROKER_CREDENTIAL_KEYS is no Fernet key. {MAKE_ONE}") from None
