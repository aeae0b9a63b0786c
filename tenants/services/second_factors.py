"""Encryption of second factors at rest: seeds of authenticator apps and of recovery codes."""

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction

from ports import crypto

PREFIX = "encrypted:"  # before a text that is encrypted; without it, it was stored before
FIELDS = ("secret", "seed")
LISTS = ("migrated_codes",)


def encrypt_seed(text: str) -> str:
    """Return a seed as it is stored; unencrypted only where no key is configured."""
    return PREFIX + crypto.encrypt(text.encode()).decode() if settings.CREDENTIAL_ENCRYPTION_KEYS else text


def decrypt_seed(stored: str) -> str:
    """Return a stored seed; raise CredentialKeyError without its key."""
    return crypto.decrypt(stored.removeprefix(PREFIX).encode()).decode() if stored.startswith(PREFIX) else stored


@transaction.atomic
def reencrypt_second_factors() -> int:
    """Encrypt all stored seeds with the newest key; return of how many factors."""
    seeded = [Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES]
    rows = list(Authenticator.objects.select_for_update().filter(type__in=seeded).order_by("pk"))
    for row in rows:
        data = dict(row.data)
        data |= {name: _reencrypt(data[name]) for name in FIELDS if name in data}
        data |= {name: [_reencrypt(each) for each in data[name]] for name in LISTS if name in data}
        Authenticator.objects.filter(pk=row.pk).update(data=data)
    return len(rows)


def _reencrypt(stored: str) -> str:
    return encrypt_seed(decrypt_seed(stored))
