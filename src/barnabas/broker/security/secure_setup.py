"""Creates the `--secure` directory with an authority, a server certificate, two users and their
settings.

    ca.pem                  the authority's certificate, which clients need; it is not secret
    ca.key                  its key, needed to issue certificates but not to run brokers
    server.pem              the brokers' certificate and key
    users.json              the passwords of `admin` and of the brokers
    zookeeper.properties    how brokers own their tree if they use ZooKeeper
    client.properties       how `admin` connects, for our commands and for Kafka's tools
    librdkafka.properties   the same for kcat and confluent-kafka

Except for ca.pem, all files can be read only by their owner, and a directory to which other users
can write is rejected. Existing files are reused, but the server certificate is reissued if it will
expire soon or lacks one of the names. Brokers on other machines use a copy of the directory.
"""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.config.properties import load_properties
from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.security.own_directory import check_secrets, own_directory
from barnabas.security.secret_file import write_secret

ADMIN: Final = "admin"
BROKER: Final = "broker"
MECHANISM: Final = "SCRAM-SHA-512"
PROTOCOL: Final = "SASL_SSL"

_PASSWORD_BYTES = 24
_MAX_REAUTH_MS = "3600000"  # limits how long a session lasts after its user was deleted
_SECRETS: Final = (
    "ca.key",
    "server.pem",
    "users.json",
    "zookeeper.properties",
    "client.properties",
    "librdkafka.properties",
)


class SecureSetup(NamedTuple):
    """The directory with its files, and the passwords that the brokers need."""

    directory: Path
    passwords: Mapping[str, str]

    def __repr__(self) -> str:
        return f"SecureSetup({self.directory})"

    @property
    def client_file(self) -> Path:
        return self.directory / "client.properties"

    @property
    def librdkafka_file(self) -> Path:
        return self.directory / "librdkafka.properties"

    def broker_settings(self) -> dict[str, str]:
        """Return the configs for every broker, except for the listeners, which use `PROTOCOL`."""
        jaas = _jaas(BROKER, self.passwords[BROKER])
        return {
            "security.inter.broker.protocol": PROTOCOL,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.{PROTOCOL.lower()}.{MECHANISM.lower()}.sasl.jaas.config": jaas,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
        }

    def defaults(self) -> dict[str, str]:
        """Return the configs for every broker, which a broker's own settings can override."""
        return {
            "connections.max.reauth.ms": _MAX_REAUTH_MS,
            "barnabas.connections.end.with.user": "true",
            # The metrics page, which shows topics and users, requires no authentication.
            "barnabas.metrics.host": "localhost",
        }

    def zookeeper_settings(self) -> dict[str, str]:
        """Return the configs for every broker that uses ZooKeeper. They are empty if the directory
        is older than these configs, because its tree is then open and other brokers may not have
        these configs. Raises ConfigError.
        """
        if not self._zookeeper_file.exists():
            return {}
        return load_properties(str(self._zookeeper_file))

    @property
    def _zookeeper_file(self) -> Path:
        return self.directory / "zookeeper.properties"

    def client_settings(self, user: str = ADMIN, password: str | None = None) -> dict[str, str]:
        """Return the settings that a user needs to connect, under Kafka's names."""
        return {
            "security.protocol": PROTOCOL,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": _jaas(user, password or self.passwords[user]),
        }

    def librdkafka_settings(self, user: str = ADMIN, password: str | None = None) -> dict[str, str]:
        """Return the same settings under librdkafka's names."""
        return {
            "security.protocol": PROTOCOL,
            "ssl.ca.location": str(self.directory / "ca.pem"),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password or self.passwords[user],
        }

    def settings_for(self, library: str) -> dict[str, Any]:
        """Return the settings that `admin` needs to connect with the clients in this library."""
        if library == "confluent-kafka":
            return dict(self.librdkafka_settings())
        if library not in ("kafka-python", "aiokafka"):
            return dict(self.client_settings())
        authority = str(self.directory / "ca.pem")
        return {
            "security_protocol": PROTOCOL,
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": ADMIN,
            "sasl_plain_password": self.passwords[ADMIN],
            **(
                {"ssl_cafile": authority}
                if library == "kafka-python"
                else {"ssl_context": ssl.create_default_context(cafile=authority)}
            ),
        }

    def write_client_files(self, bootstrap_servers: str) -> None:
        """Write the client files for `admin`, unless they exist and contain these addresses."""
        if self._names(bootstrap_servers):
            return
        servers = {"bootstrap.servers": bootstrap_servers}
        for path, settings in (
            (self.client_file, self.client_settings()),
            (self.librdkafka_file, self.librdkafka_settings()),
        ):
            lines = (f"{name}={value}\n" for name, value in {**servers, **settings}.items())
            write_secret(path, "".join(lines).encode())

    def _names(self, bootstrap_servers: str) -> bool:
        """Return whether the client file was created from this setup and lists these servers."""
        if not self.client_file.exists():
            return False
        lines = self.client_file.read_text().splitlines()
        known = next((line for line in lines if line.startswith("bootstrap.servers=")), "=")
        servers = known.partition("=")[2].split(",")
        has_login = f"sasl.jaas.config={_jaas(ADMIN, self.passwords[ADMIN])}" in lines
        return has_login and set(bootstrap_servers.split(",")) <= set(servers)


def prepare(directory: Path, names: Collection[str]) -> SecureSetup:
    """Create any missing files, and return the directory's contents.

    `names` are the host names and addresses at which clients reach a broker. Raises OSError. Raises
    ConfigError if a library is missing or an existing file cannot be used.
    """
    try:
        from barnabas.broker.security.own_authority import ensure_certificates
    except ImportError:
        raise ConfigError(
            f"creating certificates needs a library: {install_line('security', ['cryptography'])}"
        ) from None
    own_directory(directory)
    check_secrets(directory / name for name in _SECRETS)
    ensure_certificates(directory, names)
    return SecureSetup(directory, _passwords(directory / "users.json"))


def _passwords(path: Path) -> Mapping[str, str]:
    """Return the password of each user. If the file is missing, generate the passwords. Raises
    ConfigError.
    """
    if not path.exists():
        made = {user: secrets.token_urlsafe(_PASSWORD_BYTES) for user in (ADMIN, BROKER)}
        identity = f"{BROKER}:{secrets.token_urlsafe(_PASSWORD_BYTES)}"
        owning = f"zookeeper.set.acl=true\nbarnabas.zookeeper.credentials={identity}\n"
        write_secret(path.with_name("zookeeper.properties"), owning.encode())
        write_secret(path, json.dumps(made, indent=2).encode() + b"\n")
        return made
    try:
        kept = json.loads(path.read_bytes())
        return {user: str(kept[user]) for user in (ADMIN, BROKER)}
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{path} lacks the passwords of {ADMIN} and {BROKER}; remove the file to create new "
            "passwords"
        ) from None


def _jaas(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'
