"""Certificates for tests, made as they run: an authority, and what it issues to hosts and users.

    authority = Authority.make(tmp_path)
    broker = authority.server()                     # for localhost and 127.0.0.1
    alice = authority.client("alice")               # CN=alice
    broker.key, broker.chain, broker.truststore     # paths of PEM files

Each issue has files of its own, so that one can be written over the other's.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

_LIFE = timedelta(days=60)  # brokers warn of the last thirty
_SKEW = timedelta(hours=1)

_ATTRIBUTES = {
    "CN": NameOID.COMMON_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "L": NameOID.LOCALITY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "C": NameOID.COUNTRY_NAME,
}


class PemFiles(NamedTuple):
    """One side's files: its private key, its certificates, and whom it trusts."""

    key: Path
    chain: Path
    truststore: Path

    @property
    def keystore(self) -> Path:
        """Key and certificates in one file, as `ssl.keystore.location` of type PEM wants them."""
        path = self.key.with_suffix(".keystore.pem")
        path.write_bytes(self.key.read_bytes() + self.chain.read_bytes())
        return path

    def settings(self) -> dict[str, str]:
        """Kafka's settings of this side, for a broker or a client of ours or of Java."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.truststore),
        }

    def trust(self) -> dict[str, str]:
        """Kafka's settings of a client that has no certificate."""
        return {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.truststore),
        }

    def replace_with(self, other: PemFiles) -> None:
        """Write another's key and certificates over these, as a renewal does."""
        self.key.write_bytes(other.key.read_bytes())
        self.chain.write_bytes(other.chain.read_bytes())
        _ = self.keystore


class Authority:
    """A certificate authority. Two of them do not trust each other."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._numbers = itertools.count(1)
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(self.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(_authority_usage(), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
            .sign(self.key, hashes.SHA256())
        )
        self.truststore = path / f"{name.replace(' ', '-')}.pem"
        self.truststore.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    @classmethod
    def make(cls, path: Path, name: str = "Test CA") -> Authority:
        """A new one, whose files are in the directory `path`."""
        path.mkdir(parents=True, exist_ok=True)
        return cls(path, name)

    def server(
        self,
        names: Sequence[str] = LOCAL_NAMES,
        *,
        cn: str | None = None,
        expired: bool = False,
        password: str | None = None,
    ) -> PemFiles:
        """For a host with these names and addresses."""
        subject = f"CN={cn or names[0]}"
        return self._issue(subject, names, expired=expired, password=password)

    def client(
        self,
        cn: str = "client",
        *,
        subject: str | None = None,
        expired: bool = False,
        password: str | None = None,
    ) -> PemFiles:
        """For a user; `subject`: the whole name, as `CN=alice,OU=Sales,O=Acme,C=DE`."""
        return self._issue(subject or f"CN={cn}", (), expired=expired, password=password)

    def revoke(self, *revoked: PemFiles, expired: bool = False, is_der: bool = False) -> Path:
        """Write the list of these, which replaces the one before; returns its path."""
        now = datetime.now(UTC)
        end = now - timedelta(minutes=1) if expired else now + _LIFE
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.name)
            .last_update(now - _SKEW)
            .next_update(end)
        )
        for files in revoked:
            certificate = x509.load_pem_x509_certificate(files.chain.read_bytes())
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(certificate.serial_number)
                .revocation_date(now - _SKEW)
                .build()
            )
        signed = builder.sign(self.key, hashes.SHA256())
        form = serialization.Encoding.DER if is_der else serialization.Encoding.PEM
        path = self.truststore.with_suffix(".crl")
        path.write_bytes(signed.public_bytes(form))
        return path

    def self_signed(self, names: Sequence[str] = LOCAL_NAMES) -> PemFiles:
        """A host's certificate that nobody issued; its files are beside the authority's."""
        return self._issue(f"CN={names[0]}", names, is_self_signed=True)

    def _issue(
        self,
        subject: str,
        names: Sequence[str],
        *,
        expired: bool = False,
        is_self_signed: bool = False,
        password: str | None = None,
    ) -> PemFiles:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        end = now - timedelta(minutes=1) if expired else now + _LIFE - _SKEW
        own_name = x509.Name(
            [
                x509.NameAttribute(_ATTRIBUTES[kind], value)
                # Written from the specific to the general, kept the other way round.
                for kind, _, value in reversed([part.partition("=") for part in subject.split(",")])
            ]
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(own_name)
            .issuer_name(own_name if is_self_signed else self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        )
        if not is_self_signed:
            issuer = self.key.public_key()
            builder = builder.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
            )
        certificate = builder.sign(key if is_self_signed else self.key, hashes.SHA256())
        return self._write(subject, key, certificate, password)

    def _write(
        self,
        subject: str,
        key: ec.EllipticCurvePrivateKey,
        certificate: x509.Certificate,
        password: str | None,
    ) -> PemFiles:
        cn = subject.partition("=")[2].partition(",")[0]
        stem = f"{self.truststore.stem}-{next(self._numbers)}-{cn.replace(' ', '-')}"
        files = PemFiles(self.path / f"{stem}.key", self.path / f"{stem}.crt", self.truststore)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        files.key.touch(mode=0o600)
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        )
        files.chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return files


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _authority_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
