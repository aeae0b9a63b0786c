"""Mailboxes behind e-mail addresses, and networks behind IP addresses.

Limits of new tenants are counted by them: other spellings of one mailbox are one person.
"""

import ipaddress

GOOGLE = frozenset({"gmail.com", "googlemail.com"})  # dots before the @ mean nothing there
IPV6_NETWORK_BITS = 64  # a household or machine has at least that many addresses


def mail_domain(address: str) -> str:
    """Return the domain of an e-mail address, in lower case and ASCII."""
    return ascii_domain(address.rpartition("@")[2])


def ascii_domain(domain: str) -> str:
    """Return a domain as it is registered: lower case, and unicode as xn--…"""
    plain = domain.strip().rstrip(".").lower()
    try:
        return plain.encode("idna").decode("ascii")
    except UnicodeError:  # not a domain; it equals no other
        return plain


def mailbox_of(address: str) -> str:
    """Return the mailbox that an address delivers to, in one spelling.

    Upper case, `+tags` and unicode spellings of the domain are left out, and dots where the provider ignores them.
    """
    local, _, _ = address.strip().lower().rpartition("@")
    domain = mail_domain(address)
    local = local.partition("+")[0] or local
    if domain in GOOGLE:
        local, domain = local.replace(".", "") or local, "gmail.com"
    return f"{local}@{domain}"


def network_of(address: str) -> str:
    """Return the network of an IP address: IPv4 itself, IPv6 its /64.

    Empty if it is none.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found) >> 64 << 64, IPV6_NETWORK_BITS)).network_address) + "/64"
    return str(found)
