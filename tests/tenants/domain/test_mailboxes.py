"""Mailboxes behind addresses, and networks behind IP addresses."""

import pytest

from tenants.domain.mailboxes import mail_domain, mailbox_of, network_of


@pytest.mark.parametrize(
    "address",
    ["ada@example.org", "Ada@Example.ORG", "ada+1@example.org", "ADA+x+y@example.org.", " ada@example.org "],
)
def test_spellings_of_an_address_are_one_mailbox(address: str) -> None:
    assert mailbox_of(address) == "ada@example.org"


def test_unicode_and_ascii_spellings_of_a_domain_are_one() -> None:
    assert mailbox_of("ada@BÜCHER.de") == mailbox_of("ada@xn--bcher-kva.de") == "ada@xn--bcher-kva.de"
    assert mail_domain("ada@Bücher.de") == "xn--bcher-kva.de"


def test_dots_mean_nothing_only_where_the_provider_ignores_them() -> None:
    assert mailbox_of("a.d.a+x@googlemail.com") == "ada@gmail.com"
    assert mailbox_of("a.d.a@example.org") != mailbox_of("ada@example.org")


def test_a_local_part_that_begins_with_plus_is_kept() -> None:
    assert mailbox_of("+ada@example.org") == "+ada@example.org"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("not an address", ""),
        ("", ""),
    ],
)
def test_networks_of_addresses(address: str, network: str) -> None:
    assert network_of(address) == network
