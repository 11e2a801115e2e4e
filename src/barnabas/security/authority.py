"""Implements a private certificate authority for clusters that do not have one (SE-2).

The certificates are meant only for TLS, and their keys are on the curve P-256. A certificate is
valid from an hour before it is issued, so that a client accepts it even if the client's clock is
slow.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SKEW = timedelta(hours=1)
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


class Issued(NamedTuple):
    """A private key, which is not encrypted, and its certificate, both in PEM."""

    key: bytes
    certificate: bytes


class Authority:
    """Issues certificates. Its key is kept only in memory."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        """Call `new` or `load` instead."""
        self._key = key
        self._certificate = certificate

    @classmethod
    def new(cls, common_name: str, life: timedelta) -> Authority:
        """Create an authority that has a self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        builder = (
            _builder(name, name, key, life)
            # The authority may sign certificates of hosts and users, but not of other authorities.
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage("key_cert_sign", "crl_sign"), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        )
        return cls(key, builder.sign(key, hashes.SHA256()))

    @classmethod
    def load(cls, issued: Issued) -> Authority:
        """Return the authority that has this key and certificate.

        Raises ValueError if they are not a CA's.
        """
        try:
            key = serialization.load_pem_private_key(issued.key, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError(
                "the authority's key is not a PEM private key, or it is encrypted"
            ) from None
        try:
            certificate = x509.load_pem_x509_certificate(issued.certificate)
        except ValueError:
            raise ValueError("the authority's certificate is not a PEM certificate") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is not an elliptic-curve key")
        if key.public_key() != certificate.public_key():
            raise ValueError("the authority's key does not match its certificate")
        return cls(key, certificate)

    @property
    def certificate(self) -> bytes:
        """The CA certificate in PEM. A client that trusts this authority needs it."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key(self) -> bytes:
        """The CA key in PEM. Anyone who has it can issue certificates."""
        return _key_pem(self._key)

    def issue(self, common_name: str, life: timedelta, names: Sequence[str] = ()) -> Issued:
        """Issue a certificate for a host with these names and addresses or, if there are none, for
        a user.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        # Brokers connect to each other, so a host's certificate is also valid for clients.
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if names:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = (
            _builder(_name(common_name), self._certificate.subject, key, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage("digital_signature"), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
        )
        if names:
            # RFC 6125: clients compare these names and ignore the common name.
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Issued(_key_pem(key), certificate.public_bytes(serialization.Encoding.PEM))


class Described(NamedTuple):
    """The properties of a certificate that determine whether it can still be used."""

    ends_at: datetime
    names: frozenset[str]
    subject: str


def describe(certificate: bytes) -> Described:
    """Return when a PEM certificate expires, and the names in it.

    Raises ValueError if the text is not a certificate."""
    parsed = x509.load_pem_x509_certificate(certificate)
    try:
        extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        names: frozenset[str] = frozenset()
    else:
        alternatives = extension.value
        hosts = alternatives.get_values_for_type(x509.DNSName)
        addresses = alternatives.get_values_for_type(x509.IPAddress)
        names = frozenset({*hosts, *map(str, addresses)})
    return Described(parsed.not_valid_after_utc, names, parsed.subject.rfc4514_string())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*usages: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in usages for usage in _USAGES})


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
