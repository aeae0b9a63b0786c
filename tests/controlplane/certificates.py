"""The certificate authority of one test cluster."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
NAMES = ("localhost", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        """Write both into a folder; return their paths."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        return str(certificate), str(key)


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the public half of a key as PEM."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a key; elliptic, because making six of RSA's takes a second."""
    return ec.generate_private_key(ec.SECP256R1())


class Authority:
    """Certificate authority of one cluster."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.key, self.x509 = key, certificate
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    @classmethod
    def new(cls) -> Self:
        """Make an authority that trusts itself."""
        key = new_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test cluster")])
        builder = cls._builder(name, name, key).add_extension(x509.BasicConstraints(True, None), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    def client(self, user: str, *groups: str) -> Pair:
        """Sign a user's certificate with its groups."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._sign(subject, ExtendedKeyUsageOID.CLIENT_AUTH)

    def server(self) -> Pair:
        """Sign a server certificate for this machine."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]
        return self._sign(subject, ExtendedKeyUsageOID.SERVER_AUTH, names)

    def website(self, name: str) -> Pair:
        """Sign a server certificate for a host name or a wildcard."""
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, "ingress")]
        return self._sign(subject, ExtendedKeyUsageOID.SERVER_AUTH, [x509.DNSName(name)])

    def _sign(
        self,
        subject: list[x509.NameAttribute[str]],
        usage: x509.ObjectIdentifier,
        names: list[x509.GeneralName] | None = None,
    ) -> Pair:
        key = new_key()
        builder = self._builder(x509.Name(subject), self.x509.subject, key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), pem(key))

    @staticmethod
    def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + 30 * DAY)
        )
