"""Public SSH keys: fingerprint, type and comment."""

from tenants.domain.ssh_keys import key_comment, key_fingerprint, key_type

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtMiVqXvOjvXcR8wHYL4fWGfIuB9pYvQKYsEY6nFTZ9 ada at home"


def test_a_fingerprint_is_the_one_of_ssh_keygen() -> None:
    assert key_fingerprint(KEY) == "SHA256:GKbiBWRGiISa6Gyjm/ELyVdRvUrkcNc8/8OBloYCapQ"
    assert key_fingerprint(KEY.rpartition(" ")[0]) == key_fingerprint(KEY)


def test_type_and_comment_are_read_from_the_line() -> None:
    assert (key_type(KEY), key_comment(KEY)) == ("ssh-ed25519", "ada at home")
    assert key_comment(" ".join(KEY.split(" ")[:2])) == ""
