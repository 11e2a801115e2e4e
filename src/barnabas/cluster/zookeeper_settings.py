"""The settings of the connection to ZooKeeper, checked before the first attempt.

Certificates and keys are PEM files, since Python reads no other kind.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError

_PEM = "PEM"


class Tls(NamedTuple):
    """The encryption of the connection. Empty: the system's trust, or no own certificate."""

    trusted: str = ""
    own_certificate: str = ""  # one file, with the private key in it
    password: str = ""  # of that key
    is_host_checked: bool = True


class Settings(NamedTuple):
    """The address of a cluster's metadata, with timeouts and credentials."""

    connect: str
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int | None = None  # for the first connection; None: as for a session
    credentials: str = ""  # user:password
    uses_sasl: bool = False  # the credentials go by SASL DIGEST-MD5, not by the digest scheme
    is_protected: bool = False  # others may read created nodes, but not change them
    tls: Tls | None = None

    @property
    def has_identity(self) -> bool:
        """Whether ZooKeeper can tell this client from others, so that it may own nodes."""
        return bool(self.credentials or (self.tls is not None and self.tls.own_certificate))

    def __repr__(self) -> str:
        """Without secrets, so that it may be logged."""
        return f"Settings({self.connect})"

    @property
    def first_timeout_ms(self) -> int:
        """How long the start waits for ZooKeeper."""
        if self.connection_timeout_ms is None:
            return self.session_timeout_ms
        return self.connection_timeout_ms


def settings_from(config: BrokerConfig) -> Settings:
    """The settings from a broker's configs, which include `zookeeper.connect`. ConfigError."""
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
            "certificate (zookeeper.ssl.keystore.location): without an owner no client could "
            "change the nodes"
        )
    return settings


def _check_sasl(credentials: str) -> None:
    if not credentials:
        raise ConfigError(
            "barnabas.zookeeper.credentials.scheme=sasl needs "
            "barnabas.zookeeper.credentials=user:password"
        )
    from importlib.util import find_spec  # few clusters have this

    if find_spec("puresasl") is None:
        raise ConfigError(
            "barnabas.zookeeper.credentials.scheme=sasl needs a library: "
            'pip install "barnabas[security]"'
        )


def _tls_from(config: BrokerConfig) -> Tls:
    check = config.str("zookeeper.ssl.endpoint.identification.algorithm")
    return Tls(
        _pem(config, "zookeeper.ssl.truststore.location", "zookeeper.ssl.truststore.type"),
        _pem(config, "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.type"),
        config.str("zookeeper.ssl.keystore.password"),
        check.upper() == "HTTPS",
    )


def _pem(config: BrokerConfig, location: str, kind: str) -> str:
    path, type_name = config.str(location), config.str(kind)
    is_pem = type_name.upper() == _PEM if type_name else path.lower().endswith(".pem")
    if path and not is_pem:
        raise ConfigError(
            f"{location}={path} is not declared as PEM: convert it (keytool -importkeystore, "
            f"then openssl pkcs12), and set {kind}=PEM"
        )
    return path
