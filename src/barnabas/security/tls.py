"""Builds the TLS contexts of servers and clients from Kafka's `ssl.*` settings.

The minimum version is TLS 1.2, and renegotiation is disabled. As in Java, every certificate in a
truststore is trusted by itself; by default, OpenSSL would require the authority at the end of the
chain.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.security.key_stores import KeyStore, load_key_store, load_trust_store
from barnabas.security.tls_settings import (
    BROKERS_CRL_LOCATION,
    CLIENTS_CRL_LOCATION,
    TlsSettings,
)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TOO_OLD = ("SSLV2HELLO", "SSLV2", "SSLV3", "TLSV1", "TLSV1.1")
_PREFERRED = ("TLS", "TLSv1.2", "TLSv1.3")
_SUITES_1_3 = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
_FIRST_1_3 = "TLS_AES_256_GCM_SHA384"
_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_\w+_SHA\d+$")
_SIZED = re.compile(r"(AES|ARIA|CAMELLIA)_(\d+)_")
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context for a listener. Raises ConfigError, whose message names the setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key_store = load_key_store(settings)
    if key_store is None:
        raise ConfigError(
            "a listener with TLS needs a private key and its certificate: set "
            "ssl.keystore.location (and ssl.keystore.type), or ssl.keystore.key and "
            "ssl.keystore.certificate.chain"
        )
    _load(context, key_store)
    auth = _CLIENT_AUTH.get(settings.client_auth.strip().lower())
    if auth is None:
        raise ConfigError(
            f"ssl.client.auth: {settings.client_auth!r} is not one of {', '.join(_CLIENT_AUTH)}"
        )
    context.verify_mode = auth
    trusted = load_trust_store(settings)
    if trusted is not None:
        _trust(context, trusted)
    elif auth != ssl.CERT_NONE:
        raise ConfigError(
            f"ssl.client.auth={settings.client_auth} requires the CA certificates of the "
            "clients: set ssl.truststore.location (and ssl.truststore.type), or "
            "ssl.truststore.certificates"
        )
    _refuse_revoked(context, BROKERS_CRL_LOCATION, settings)
    # A client could renegotiate again and again, which would cost the broker more than the client.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _restrict(context, settings)
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context for a client.

    Without a truststore, the client trusts the system's authorities.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = _checks_host(settings)
    trusted = load_trust_store(settings)
    if trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, trusted)
    key_store = load_key_store(settings)
    if key_store is not None:
        _load(context, key_store)
    _refuse_revoked(context, CLIENTS_CRL_LOCATION, settings)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _restrict(context, settings)
    return context


def allowed_suites(settings: TlsSettings) -> frozenset[str]:
    """Return the TLS 1.3 suites that a connection may use.

    In Python, a context cannot restrict them.
    """
    names = [name for name in _items(settings.cipher_suites) if _is_of_tls_1_3(name)]
    return frozenset(names) if names else _SUITES_1_3


def openssl_name(name: str) -> str:
    """Return OpenSSL's name for a TLS 1.2 suite.

    Names that are not IANA names are returned unchanged.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256
    """
    exchange, has_both, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not name.startswith("TLS_") or not has_both:
        return name
    cipher = _SIZED.sub(r"\1\2-", cipher).replace("_", "-")
    cipher = cipher.replace("-CBC-", "-").replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305")
    if cipher.endswith("-CCM") is False and "-CCM-8" in cipher:
        cipher = cipher.replace("-CCM-8", "-CCM8")
    parts = [] if exchange == "RSA" else [exchange.replace("_", "-")]
    return "-".join((*parts, cipher))


def _is_of_tls_1_3(name: str) -> bool:
    # TLS 1.3 suites have the same names everywhere, which contain no key exchange:
    # TLS_AES_256_GCM_SHA384.
    return _TLS_1_3.match(name) is not None


def _checks_host(settings: TlsSettings) -> bool:
    algorithm = settings.endpoint_identification_algorithm.strip()
    if algorithm and algorithm.lower() != "https":
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm: {algorithm!r} must be https or empty"
        )
    return bool(algorithm)


def _restrict(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Restrict the versions and suites that a context accepts."""
    if settings.protocol.strip() not in _PREFERRED:
        raise ConfigError(
            f"ssl.protocol: {settings.protocol!r} is not one of {', '.join(_PREFERRED)}"
        )
    versions = [_version(name) for name in _items(settings.enabled_protocols)]
    if not versions:
        versions = list(_VERSIONS.values())
    suites = _items(settings.cipher_suites)
    if suites:
        versions = _restrict_suites(context, suites, versions)
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _version(name: str) -> ssl.TLSVersion:
    if name in _VERSIONS:
        return _VERSIONS[name]
    why = "is no longer secure and is rejected" if name.upper() in _TOO_OLD else "is unknown"
    raise ConfigError(f"ssl.enabled.protocols: {name!r} {why}; use {', '.join(_VERSIONS)}")


def _restrict_suites(
    context: ssl.SSLContext, suites: list[str], versions: list[ssl.TLSVersion]
) -> list[ssl.TLSVersion]:
    """Allow only these suites. Return the versions for which at least one suite remains."""
    newer = {name for name in suites if _is_of_tls_1_3(name)}
    older = [openssl_name(name) for name in suites if name not in newer]
    for name in (*(newer - _SUITES_1_3), *(each for each in older if not _is_known(each))):
        raise ConfigError(f"ssl.cipher.suites: {name} is unknown to {ssl.OPENSSL_VERSION}")
    # OpenSSL enables all TLS 1.3 suites in its own order. If OpenSSL's first suite is also the
    # first one in the settings, it is negotiated with every peer that supports it.
    if newer and _FIRST_1_3 not in newer:
        raise ConfigError(
            "ssl.cipher.suites: this Python cannot select individual TLS 1.3 suites; add "
            f"{_FIRST_1_3}, which is preferred, or set ssl.enabled.protocols=TLSv1.2"
        )
    if older:
        context.set_ciphers(":".join(older))
    has = {ssl.TLSVersion.TLSv1_2: bool(older), ssl.TLSVersion.TLSv1_3: bool(newer)}
    left = [version for version in versions if has[version]]
    if not left:
        raise ConfigError(
            "ssl.cipher.suites has no suite for the versions in ssl.enabled.protocols"
        )
    return left


def _is_known(openssl_suite: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(openssl_suite)
    except ssl.SSLError:
        return False
    return True


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _trust(context: ssl.SSLContext, certificates: str) -> None:
    try:
        context.load_verify_locations(cadata=certificates)
    except ssl.SSLError as error:
        raise ConfigError(f"ssl.truststore: cannot read a certificate: {error.reason}") from None
    # As in Java, a certificate in a truststore is trusted by itself, even if the authority that
    # signed it is missing.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _refuse_revoked(context: ssl.SSLContext, setting: str, settings: TlsSettings) -> None:
    """Check the whole chain, because a revoked authority is as bad as a revoked certificate."""
    if not settings.crl_location:
        return
    from barnabas.security.revocation import load_revocation_lists  # most listeners have none

    lists = load_revocation_lists(setting, settings.crl_location)
    with _file_of(lists) as path:
        try:
            context.load_verify_locations(cafile=path)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{setting}={settings.crl_location}: cannot read a revocation list: {error.reason}"
            ) from None
    # This flag also causes a certificate to be rejected if its authority has no list.
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def _load(context: ssl.SSLContext, store: KeyStore) -> None:
    with _file_of(store.chain + store.key) as path:
        try:
            # Always pass a password, because otherwise OpenSSL would ask for one on the terminal.
            context.load_cert_chain(path, password=store.password)
        except ssl.SSLError as error:
            raise ConfigError(f"ssl.keystore: {_load_reason(error, store)}") from None


def _load_reason(error: ssl.SSLError, store: KeyStore) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the private key does not match the first certificate"
    if store.password and error.reason in (None, "BAD_DECRYPT", "BAD_PASSWORD_READ"):
        return "cannot read the private key; check ssl.key.password"
    return f"cannot read the key or certificate: {error.reason or error}"


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """Yield a path from which OpenSSL can read the text.

    On systems that allow it, the text is never written to disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("keystore", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
        is_file = not Path(path).exists()
    else:
        is_file = True
    if is_file:
        descriptor, path = tempfile.mkstemp(suffix=".pem")  # readable only by its owner
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            yield path
    finally:
        if is_file:
            Path(path).unlink()
