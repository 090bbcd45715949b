"""A certificate authority for trials: it signs a certificate for each server; nobody outside the trial trusts it."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 365
"""Days for which its certificates are valid. Production uses certificates of the organisation's own authority."""


class Certificate(msgspec.Struct, frozen=True):
    """A certificate and its key, as PEM."""

    pem: bytes
    key: bytes


class DevelopmentCa:
    """An authority that exists only as long as this object: its private key is never written."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "neuraxis development")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = (
            _builder(self._name, self._name, self._key).add_extension(constraints, critical=True)
        ).sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def sign(self, host: str) -> Certificate:
        """Return a certificate with which a server identifies itself to clients and to other servers."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        signed = (
            _builder(name, self._name, key)
            .add_extension(x509.SubjectAlternativeName([_alternative_name(host)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        ).sign(self._key, hashes.SHA256())
        return Certificate(
            signed.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
    )


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host)
