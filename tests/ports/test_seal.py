from typing import Any

import pytest
from cryptography.fernet import Fernet

from ports import seal

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_what_is_sealed_can_be_opened_and_not_read(settings: Any) -> None:
    settings.CREDENTIAL_KEYS = OLD
    sealed = seal.seal(b"token: secret")
    assert b"secret" not in sealed
    assert seal.opened(sealed) == b"token: secret"


def test_a_new_key_opens_the_old_seals_until_they_are_renewed(settings: Any) -> None:
    settings.CREDENTIAL_KEYS = OLD
    sealed = seal.seal(b"secret")
    settings.CREDENTIAL_KEYS = f"{NEW},{OLD}"
    renewed = seal.resealed(sealed)
    settings.CREDENTIAL_KEYS = NEW
    assert seal.opened(renewed) == b"secret"
    with pytest.raises(seal.Unsealable, match="None of the keys") as told:
        seal.opened(sealed)
    assert NEW not in str(told.value)


@pytest.mark.parametrize(("keys", "says"), [("", "there is no key"), ("my-password", "is no Fernet key")])
def test_without_a_key_nothing_is_kept_in_the_clear(settings: Any, keys: str, says: str) -> None:
    settings.CREDENTIAL_KEYS = keys
    with pytest.raises(seal.Unsealable, match=says) as told:
        seal.seal(b"secret")
    assert "Fernet.generate_key()" in str(told.value)
    assert "my-password" not in str(told.value)
