"""Encryption of stored credentials, and key rotation."""

from typing import Any

import pytest
from cryptography.fernet import Fernet

from ports import crypto

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_an_encrypted_value_is_unreadable_and_decrypts(settings: Any) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = OLD
    sealed = crypto.encrypt(b"token: secret")
    assert b"secret" not in sealed
    assert crypto.decrypt(sealed) == b"token: secret"


def test_a_rotated_key_set_decrypts_old_values_until_they_are_re_encrypted(settings: Any) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = OLD
    sealed = crypto.encrypt(b"secret")
    settings.CREDENTIAL_ENCRYPTION_KEYS = f"{NEW},{OLD}"
    renewed = crypto.encrypt(crypto.decrypt(sealed))
    settings.CREDENTIAL_ENCRYPTION_KEYS = NEW
    assert crypto.decrypt(renewed) == b"secret"
    with pytest.raises(crypto.CredentialKeyError, match="None of the keys") as error:
        crypto.decrypt(sealed)
    assert NEW not in str(error.value)


@pytest.mark.parametrize(("keys", "says"), [("", "without an encryption key"), ("my-password", "is not a Fernet key")])
def test_encryption_without_a_valid_key_is_refused(settings: Any, keys: str, says: str) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = keys
    with pytest.raises(crypto.CredentialKeyError, match=says) as error:
        crypto.encrypt(b"secret")
    assert "Fernet.generate_key()" in str(error.value)
    assert "my-password" not in str(error.value)
