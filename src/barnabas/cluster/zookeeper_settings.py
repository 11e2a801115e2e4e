"""Reads the ZooKeeper settings and checks them before the first connection is opened."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.security.tls_settings import TlsSettings

_TYPES = {".jks": "JKS", ".p12": "PKCS12", ".pfx": "PKCS12", ".pem": "PEM"}
_VERSIONS = "TLSv1.2,TLSv1.3"


class Settings(NamedTuple):
    """The address of the cluster's metadata, with timeouts and credentials."""

    connect: str
    session_timeout_ms: int = 18_000
    # how long the first connection may take; if None, the session timeout applies
    connection_timeout_ms: int | None = None
    credentials: str = ""  # in the form user:password
    # whether the credentials are sent with SASL DIGEST-MD5 instead of the digest scheme
    uses_sasl: bool = False
    is_protected: bool = False  # other clients may only read the nodes that are created
    tls: TlsSettings | None = None

    @property
    def has_identity(self) -> bool:
        """True if ZooKeeper can identify this client, so that it can own nodes."""
        return bool(self.credentials or (self.tls is not None and self.tls.keystore_location))

    def __repr__(self) -> str:
        """Return the settings for logs, without any secrets."""
        return f"Settings({self.connect})"

    @property
    def first_timeout_ms(self) -> int:
        """How long the broker waits for ZooKeeper at startup."""
        if self.connection_timeout_ms is None:
            return self.session_timeout_ms
        return self.connection_timeout_ms


def settings_from(config: BrokerConfig) -> Settings:
    """Read the settings from a broker's configs, which contain `zookeeper.connect`.

    Raises ConfigError.
    """
    credentials = config.str("barnabas.zookeeper.credentials")
    if credentials and not all(credentials.partition(":")):
        raise ConfigError("barnabas.zookeeper.credentials must have the form user:password")
    uses_sasl = config.str("barnabas.zookeeper.credentials.scheme") == "sasl"
    if uses_sasl:
        _check_sasl(credentials)
    tls = _tls_from(config) if config.bool("zookeeper.ssl.client.enable") else None
    is_protected = config.bool("zookeeper.set.acl")
    timeout_ms = config.value("zookeeper.connection.timeout.ms")
    assert timeout_ms is None or isinstance(timeout_ms, int), timeout_ms
    settings = Settings(
        config.str("zookeeper.connect"),
        session_timeout_ms=config.int("zookeeper.session.timeout.ms"),
        connection_timeout_ms=timeout_ms,
        credentials=credentials,
        uses_sasl=uses_sasl,
        is_protected=is_protected,
        tls=tls,
    )
    if is_protected and not settings.has_identity:
        raise ConfigError(
            "zookeeper.set.acl=true needs barnabas.zookeeper.credentials=user:password, or a "
            "certificate (zookeeper.ssl.keystore.location): without an owner, no client could "
            "change the nodes"
        )
    return settings


def _check_sasl(credentials: str) -> None:
    if not credentials:
        raise ConfigError(
            "barnabas.zookeeper.credentials.scheme=sasl needs "
            "barnabas.zookeeper.credentials=user:password"
        )
    from importlib.util import find_spec  # most clusters do not need it

    if find_spec("puresasl") is None:
        raise ConfigError(
            "barnabas.zookeeper.credentials.scheme=sasl needs a library: "
            f"{install_line('security', ['pure-sasl'])}"
        )


def _tls_from(config: BrokerConfig) -> TlsSettings:
    key_store, key_type = _store(
        config, "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.type"
    )
    trust_store, trust_type = _store(
        config, "zookeeper.ssl.truststore.location", "zookeeper.ssl.truststore.type"
    )
    password = config.str("zookeeper.ssl.keystore.password")
    is_pem = key_type == "PEM"  # a PEM store uses the password of its key
    versions = config.list("zookeeper.ssl.enabled.protocols")
    if not versions and config.is_set("zookeeper.ssl.protocol"):
        versions = [config.str("zookeeper.ssl.protocol")]
    return TlsSettings(
        keystore_type=key_type,
        keystore_location=key_store,
        keystore_password="" if is_pem else password,
        key_password=password if is_pem else "",
        truststore_type=trust_type,
        truststore_location=trust_store,
        truststore_password=config.str("zookeeper.ssl.truststore.password"),
        enabled_protocols=",".join(versions) or _VERSIONS,
        cipher_suites=",".join(config.list("zookeeper.ssl.cipher.suites")),
        endpoint_identification_algorithm=config.str(
            "zookeeper.ssl.endpoint.identification.algorithm"
        ).lower(),
    )


def _store(config: BrokerConfig, location: str, kind: str) -> tuple[str, str]:
    """Return the file and the type of a key store.

    As in ZooKeeper, the type defaults to the file extension.
    """
    path, given = config.str(location), config.str(kind).upper()
    known = given or _TYPES.get(Path(path).suffix.lower(), "")
    if path and not known:
        raise ConfigError(
            f"{location}={path}: its file name extension does not show its format; set {kind} to "
            "JKS, PKCS12 or PEM"
        )
    return path, known or "PEM"
