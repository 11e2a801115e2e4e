"""Lists the broker configs for ZooKeeper that have an effect, and parses ZooKeeper addresses."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table
from barnabas.errors import ConfigError

_DEFAULT_PORT = 2181
_LAST_PORT = 65535

_ZOOKEEPER = (
    ("zookeeper.connect", "string", None, "",
     "The cluster's ZooKeeper servers, as host:port,host:port/chroot; unset: a single broker."),
    ("zookeeper.connection.timeout.ms", "int", None, "",
     "How long the startup waits for ZooKeeper; unset: the session timeout."),
    ("zookeeper.session.timeout.ms", "int", 18000, "",
     "Time without a heartbeat after which ZooKeeper considers the broker dead."),
    ("zookeeper.set.acl", "boolean", False, "",
     "Whether only brokers may change the nodes that they create; needs credentials."),
    ("zookeeper.ssl.client.enable", "boolean", False, "",
     "Whether connections to ZooKeeper use TLS."),
    ("zookeeper.ssl.endpoint.identification.algorithm", "string", "HTTPS", "",
     "Whether ZooKeeper's host name is verified against its certificate: HTTPS, or empty."),
    ("zookeeper.ssl.keystore.location", "string", None, "",
     "File with this broker's key and certificates for connections to ZooKeeper."),
    ("zookeeper.ssl.keystore.password", "password", None, "",
     "Password of that file, or of the key in a PEM file."),
    ("zookeeper.ssl.keystore.type", "string", None, "",
     "Format of that file: JKS, PKCS12 or PEM; unset: by its file name extension."),
    ("zookeeper.ssl.truststore.location", "string", None, "",
     "File with the certificates trusted for ZooKeeper; unset: the system's."),
    ("zookeeper.ssl.truststore.type", "string", None, "",
     "Format of that file: JKS, PKCS12 or PEM; unset: by its file name extension."),
    ("barnabas.zookeeper.credentials", "password", None, "",
     "user:password for ZooKeeper. Specific to Barnabas."),
    ("barnabas.zookeeper.credentials.scheme", "string", "digest", "[digest, sasl]",
     "How they are sent: ZooKeeper's digest scheme, or SASL DIGEST-MD5. Specific to Barnabas."),
)  # fmt: skip

ZOOKEEPER_KEYS: dict[str, ConfigKey] = table(_ZOOKEEPER)


def hosts_and_chroot(connect: str) -> tuple[str, str]:
    """Split `a:2181,b:2181/kafka` into ("a:2181,b:2181", "/kafka").

    If there is no chroot, the second part is empty.

    Raises ConfigError if the text is not a list of addresses.
    """
    addresses, slash, below = connect.partition("/")
    hosts = [_host(address.strip(), connect) for address in addresses.split(",")]
    chroot = f"{slash}{below}".strip().rstrip("/")
    if "" in chroot.split("/")[1:]:
        raise ConfigError(f"zookeeper.connect={connect}: {chroot} is not the path of a node")
    return ",".join(hosts), chroot


def _host(address: str, connect: str) -> str:
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(_DEFAULT_PORT)
    is_number = port.isascii() and port.isdecimal() and 0 < int(port) <= _LAST_PORT
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not host or not is_number or (":" in host and not is_bracketed):
        raise ConfigError(
            f"zookeeper.connect={connect}: {address!r} is not an address; write "
            "host:2181,host:2181/chroot with one or more hosts, and no chroot for the root"
        )
    return f"{host}:{port}"
