"""The secret scan finds keys, and allows tests to name their form."""

import pytest

from deploy.secret_scan import find_credentials

BANNER = "-----BEGIN {}PRIVATE KEY-----"
BODY = "c29tZXRoaW5nIHRoYXQgbG9va3MgbGlrZSBhIGtleQ"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH "])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\\n", '\\n"\n    "', "\nProc-Type: 4,ENCRYPTED\n"])
def test_a_private_key_is_found_in_every_notation(kind: str, between: str) -> None:
    assert [what for _, what in find_credentials(f"{BANNER.format(kind)}{between}{BODY}")] == ["private key"]


@pytest.mark.parametrize("after", ['"', '", "private half")', '"}, "ssh_keys")', "\n", " is refused"])
def test_the_banner_of_a_key_alone_is_not_reported(after: str) -> None:
    assert list(find_credentials(BANNER.format("") + after)) == []
