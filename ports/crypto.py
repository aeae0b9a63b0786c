"""Encryption of secrets at rest with rotating Fernet keys.

The newest key encrypts; every configured key decrypts.
"""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

HOW_TO_MAKE_A_KEY = (
    "Set GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS, or put a file of that name into the secrets folder. A new key:"
    ' python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)


class CredentialKeyError(Exception):
    """No key, or none that fits.

    Stored secrets cannot be read and new ones cannot be stored.
    """


def encrypt(secret: bytes) -> bytes:
    """Encrypt a secret for storage."""
    return _fernet().encrypt(secret)


def decrypt(sealed: bytes) -> bytes:
    """Decrypt a stored secret."""
    try:
        return _fernet().decrypt(sealed)
    except InvalidToken:
        raise CredentialKeyError(
            "None of the keys in GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS can decrypt the stored credentials. Add the"
            " key they were encrypted with after the newest one, or enter the credentials again."
        ) from None


def reencrypt(sealed: bytes) -> bytes:
    """Return a stored secret encrypted with the newest key."""
    return encrypt(decrypt(sealed))


def _fernet() -> MultiFernet:
    keys = [key for key in settings.CREDENTIAL_ENCRYPTION_KEYS.split(",") if key]
    if not keys:
        raise CredentialKeyError(f"Credentials cannot be stored without an encryption key. {HOW_TO_MAKE_A_KEY}")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise CredentialKeyError(
            f"A key in GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS is not a Fernet key. {HOW_TO_MAKE_A_KEY}"
        ) from None
