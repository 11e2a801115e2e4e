"""Reads the keystore and truststore in Kafka's settings, in any format, and returns PEM.

    PEM      in the settings themselves, or a file
    PKCS12   a file, read by `cryptography`
    JKS      a file; since Java 9, it usually contains PKCS12, and is read as PKCS12

If a setting is faulty, the error uses the same words as Kafka. Errors never contain secrets.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas.security import jks
from barnabas.security.pem import CERTIFICATES, PemBlock, pem_blocks
from barnabas.security.tls_settings import TlsSettings

_TYPES = ("JKS", "PKCS12", "PEM")
_PEM_MARK = b"-----BEGIN "


class KeyStore(NamedTuple):
    """A private key and its chain, which starts with the key's own certificate.

    `password` is the key's password, or an empty string.
    """

    key: str
    chain: str
    password: str

    def __repr__(self) -> str:
        return "KeyStore([hidden])"


def load_key_store(settings: TlsSettings) -> KeyStore | None:
    """Return the key store specified by `ssl.keystore.*`, or None if there is none.

    Raises ConfigError."""
    kind = _kind("ssl.keystore.type", settings.keystore_type)
    # KIP-651: the key and the certificates may be in the settings themselves, but only as PEM.
    if settings.keystore_key:
        _refuse_key_store_mix(settings, kind)
        return _pem_key_store(
            settings.keystore_key + "\n" + settings.keystore_certificate_chain,
            settings.key_password,
            "ssl.keystore.key",
        )
    if settings.keystore_certificate_chain:
        raise ConfigError("ssl.keystore.certificate.chain is set, but ssl.keystore.key is not")
    if not settings.keystore_location:
        if settings.keystore_password:
            raise ConfigError("ssl.keystore.password is set, but ssl.keystore.location is not")
        return None
    content = _read("ssl.keystore.location", settings.keystore_location)
    if kind == "PEM":
        if settings.keystore_password:
            raise ConfigError(
                "ssl.keystore.password cannot be set with ssl.keystore.type=PEM; set the key's "
                "password with ssl.key.password"
            )
        return _pem_key_store(
            content.decode("ascii", "replace"),
            settings.key_password,
            f"ssl.keystore.location={settings.keystore_location}",
        )
    if not settings.keystore_password:
        _refuse_pem("keystore", settings.keystore_location, content)
        raise ConfigError("ssl.keystore.location is set, but ssl.keystore.password is not")
    from barnabas.security import binary_stores  # PEM does not need these packages

    with _Naming("ssl.keystore", settings.keystore_location):
        _refuse_pem("keystore", settings.keystore_location, content)
        # Look at the first bytes, because since version 9, Java writes PKCS12 even if the type is
        # JKS, and reads both.
        load = binary_stores.jks_key if _is_jks(content) else binary_stores.pkcs12_key
        key, chain = load(content, settings.keystore_password, settings.key_password)
        # The key was decrypted together with the store.
        return KeyStore(key, chain, "")


def load_trust_store(settings: TlsSettings) -> str | None:
    """Return the certificates in `ssl.truststore.*` as PEM, or None if there are none.

    Raises ConfigError."""
    kind = _kind("ssl.truststore.type", settings.truststore_type)
    if settings.truststore_certificates:
        if kind != "PEM":
            raise ConfigError(
                "ssl.truststore.certificates can be set only with ssl.truststore.type=PEM, but "
                f"it is {kind}"
            )
        if settings.truststore_location:
            raise ConfigError(
                "ssl.truststore.location and ssl.truststore.certificates are both set; set only "
                "one of them"
            )
        if settings.truststore_password:
            raise ConfigError("ssl.truststore.password cannot be set with ssl.truststore.type=PEM")
        return _pem_trust_store(settings.truststore_certificates, "ssl.truststore.certificates")
    if not settings.truststore_location:
        if settings.truststore_password:
            raise ConfigError("ssl.truststore.password is set, but ssl.truststore.location is not")
        return None
    content = _read("ssl.truststore.location", settings.truststore_location)
    if kind == "PEM":
        if settings.truststore_password:
            raise ConfigError("ssl.truststore.password cannot be set with ssl.truststore.type=PEM")
        where = f"ssl.truststore.location={settings.truststore_location}"
        return _pem_trust_store(content.decode("ascii", "replace"), where)
    _refuse_pem("truststore", settings.truststore_location, content)
    from barnabas.security import binary_stores

    with _Naming("ssl.truststore", settings.truststore_location):
        load = (
            binary_stores.jks_certificates
            if _is_jks(content)
            else binary_stores.pkcs12_certificates
        )
        return load(content, settings.truststore_password)


class _Naming:
    """Converts the errors of a reader to ConfigErrors that name the setting and the file."""

    def __init__(self, prefix: str, path: str) -> None:
        self._prefix = prefix
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError) and not isinstance(error, ConfigError):
            raise ConfigError(f"{self._prefix}.location={self._path}: {error}") from None


def _refuse_key_store_mix(settings: TlsSettings, kind: str) -> None:
    if kind != "PEM":
        raise ConfigError(
            f"ssl.keystore.key can be set only with ssl.keystore.type=PEM, but it is {kind}"
        )
    if not settings.keystore_certificate_chain:
        raise ConfigError("ssl.keystore.key is set, but ssl.keystore.certificate.chain is not")
    if settings.keystore_location:
        raise ConfigError(
            "ssl.keystore.location and ssl.keystore.key are both set; set only one of them"
        )
    if settings.keystore_password:
        raise ConfigError(
            "ssl.keystore.password cannot be set with ssl.keystore.type=PEM; set the key's "
            "password with ssl.key.password"
        )


def _pem_key_store(text: str, password: str, where: str) -> KeyStore:
    blocks = _blocks(text, where)
    keys = [block for block in blocks if block.is_private_key]
    chain = [block for block in blocks if block.is_certificate]
    if len(keys) != 1:
        raise ConfigError(
            f"{where}: there must be exactly one PEM private key, but there are {len(keys)}"
        )
    if not chain:
        raise ConfigError(f"{where}: there is no PEM certificate")
    # In PKCS8, the label says that the key is encrypted. In OpenSSL's older format, a header line
    # says so.
    is_encrypted = keys[0].label.startswith("ENCRYPTED") or "ENCRYPTED" in keys[0].text
    if is_encrypted and not password:
        raise ConfigError(f"{where}: the private key is encrypted; set ssl.key.password")
    return KeyStore(keys[0].text, "".join(block.text for block in chain), password)


def _pem_trust_store(text: str, where: str) -> str:
    certificates = [block.text for block in _blocks(text, where) if block.is_certificate]
    if not certificates:
        raise ConfigError(f"{where}: there is no PEM certificate ({CERTIFICATES[0]})")
    return "".join(certificates)


def _blocks(text: str, where: str) -> list[PemBlock]:
    try:
        return pem_blocks(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _kind(name: str, text: str) -> str:
    kind = text.strip().upper()
    if kind not in _TYPES:
        raise ConfigError(f"{name}: {text!r} is not one of {', '.join(_TYPES)}")
    return kind


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}={path} cannot be read: {error.strerror or error}") from None


def _is_jks(content: bytes) -> bool:
    return content.startswith(jks.MAGIC)


def _refuse_pem(store: str, path: str, content: bytes) -> None:
    if _PEM_MARK in content:
        raise ConfigError(f"ssl.{store}.location={path} is a PEM file: set ssl.{store}.type=PEM")
