"""How ZooKeeper is reached: what the broker's settings say of it, checked before anything is tried.

Certificates and keys are PEM files, since Python reads no other kind.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError

_PEM = "PEM"


class Tls(NamedTuple):
    """How the connection is encrypted. Empty: what the system trusts, or no own certificate."""

    trusted: str = ""
    own_certificate: str = ""  # one file, with the private key in it
    password: str = ""  # of that key
    is_host_checked: bool = True


class Settings(NamedTuple):
    """Where the metadata of a cluster is, and for how long silence is borne."""

    connect: str
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int | None = None  # for the first connection; None: as for a session
    credentials: str = ""  # user:password, of the digest scheme
    is_protected: bool = False  # others may read what is created, and not change it
    tls: Tls | None = None

    @property
    def first_timeout_ms(self) -> int:
        """How long the start waits for ZooKeeper."""
        if self.connection_timeout_ms is None:
            return self.session_timeout_ms
        return self.connection_timeout_ms


def settings_from(config: BrokerConfig) -> Settings:
    """What a broker's own settings say; `zookeeper.connect` is one of them. Raises ConfigError."""
    credentials = config.str("barnabas.zookeeper.credentials")
    if credentials and not all(credentials.partition(":")):
        raise ConfigError("barnabas.zookeeper.credentials is not of the form user:password")
    is_protected = config.bool("zookeeper.set.acl")
    if is_protected and not credentials:
        raise ConfigError(
            "zookeeper.set.acl=true needs barnabas.zookeeper.credentials=user:password: nodes that "
            "belong to nobody could be changed by nobody"
        )
    timeout_ms = config.value("zookeeper.connection.timeout.ms")
    assert timeout_ms is None or isinstance(timeout_ms, int), timeout_ms
    return Settings(
        config.str("zookeeper.connect"),
        config.int("zookeeper.session.timeout.ms"),
        timeout_ms,
        credentials,
        is_protected,
        _tls_from(config) if config.bool("zookeeper.ssl.client.enable") else None,
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
            f"{location}={path} is not said to be a PEM file: convert it (keytool -importkeystore, "
            f"then openssl pkcs12), and set {kind}=PEM"
        )
    return path
