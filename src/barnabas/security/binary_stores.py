"""Converts Java's binary key stores, PKCS12 and JKS, to PEM. PKCS12 needs the extra `security`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.security.jks import read_jks
from barnabas.security.pem import pem_of

if TYPE_CHECKING:
    from types import ModuleType

_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_KEYTOOL = "keytool -importkeystore -srckeystore OLD -destkeystore NEW -deststoretype PKCS12"


def pkcs12_key(content: bytes, password: str, key_password: str) -> tuple[str, str]:
    """Return the key and the chain in a PKCS12 store as PEM. Raises ValueError or ConfigError."""
    # Java requires this too, because keytool does not give the key a password of its own.
    if key_password and key_password != password:
        raise ValueError("the key in a PKCS12 store must have the store's password")
    store = _pkcs12(content, password)
    if store.key is None or store.cert is None:
        raise ValueError("the store does not contain a private key with its certificate")
    serialization = _cryptography()
    key = store.key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain = [store.cert, *_in_order(store.cert, store.additional_certs)]
    return pem_of("PRIVATE KEY", key), "".join(_certificate(each.certificate) for each in chain)


def pkcs12_certificates(content: bytes, password: str) -> str:
    """Return all certificates in a PKCS12 store as PEM."""
    store = _pkcs12(content, password)
    found = [*store.additional_certs, *([store.cert] if store.cert is not None else [])]
    if not found:
        raise ValueError("the store has no certificate")
    return "".join(_certificate(each.certificate) for each in found)


def jks_key(content: bytes, password: str, key_password: str) -> tuple[str, str]:
    """Return the private key and the chain in a JKS store as PEM. Raises ValueError."""
    keys = read_jks(content, password).keys
    if len(keys) != 1:
        raise ValueError(f"the store must have exactly one private key, but has {len(keys)}")
    [key] = keys
    if not key.chain:
        raise ValueError("the store's private key has no certificate")
    chain = "".join(pem_of("CERTIFICATE", der) for der in key.chain)
    return pem_of("PRIVATE KEY", key.plain(key_password or password)), chain


def jks_certificates(content: bytes, password: str) -> str:
    """Return the trusted certificates in a JKS store as PEM. Raises ValueError."""
    trusted = read_jks(content, password).trusted
    if not trusted:
        raise ValueError("the store has no trusted certificate")
    return "".join(pem_of("CERTIFICATE", der) for der in trusted)


def _in_order(own: Any, others: list[Any]) -> list[Any]:
    """Return the chain, starting with the issuer of `own`.

    The certificates in a store may be in any order.
    """
    chain: list[Any] = []
    left = list(others)
    last = own.certificate
    while last.issuer != last.subject:
        issuer = next((each for each in left if each.certificate.subject == last.issuer), None)
        # The root does not have to be included, because the peer has its own copy.
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
        last = issuer.certificate
    return chain


def _certificate(certificate: Any) -> str:
    return pem_of("CERTIFICATE", certificate.public_bytes(_cryptography().Encoding.DER))


def _pkcs12(content: bytes, password: str) -> Any:
    if content.startswith(_JCEKS_MAGIC):
        raise ValueError(f"this is a JCEKS store; convert it: {_KEYTOOL}")
    _cryptography()
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        return pkcs12.load_pkcs12(content, password.encode() if password else None)
    except ValueError as error:
        if "password" in str(error).lower():
            raise ValueError("the store's password is wrong") from None
        raise ValueError(f"this is not a PKCS12 or JKS store, or it is damaged: {error}") from None


def _cryptography() -> ModuleType:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        line = install_line("security", ["cryptography"])
        raise ConfigError(
            f"a PKCS12 store needs a library: {line}, or convert the store to PEM"
        ) from None
    return serialization
