"""Implements `--secure`, which adds TLS, authentication and ACLs to the listeners."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from barnabas.broker.network.listeners import parse_listeners
from barnabas.broker.security.secure_setup import PROTOCOL, SecureSetup, prepare
from barnabas.config import BrokerConfig
from barnabas.config.kraft import without_controller_listeners
from barnabas.errors import ConfigError
from barnabas.security.own_directory import check_directory

_PLAIN: Final = "PLAINTEXT"
_DEFAULT: Final = "PLAINTEXT://:9092"
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_LISTENERS: Final = ("listeners", "advertised.listeners")
_HINT: Final = (
    "--secure secures one PLAINTEXT listener: for others set up their security by configs"
)


def secure_configs(
    properties: Mapping[str, str], directory: str | None
) -> tuple[SecureSetup, dict[str, str]]:
    """Secure a broker with these configs, and return its setup and the secured configs.

    `directory` is for certificates and passwords. None means a directory beside the first log
    directory. Raises ConfigError or OSError.
    """
    properties = without_controller_listeners(properties)
    given = {name: properties[name] for name in _LISTENERS if properties.get(name)}
    # This is Kafka's default listener. An empty host means every address.
    given.setdefault("listeners", _DEFAULT)
    hosts = []
    listeners = {}
    for name, text in given.items():
        parsed = parse_listeners(name, text)
        # If there were several listeners, some might remain open without the user noticing.
        if len(parsed) != 1 or parsed[0].name not in (_PLAIN, PROTOCOL):
            raise ConfigError(f"{name}={text}: {_HINT}")
        listeners[name] = str(parsed[0]._replace(name=PROTOCOL))
        if parsed[0].host not in _EVERY_ADDRESS:
            hosts.append(parsed[0].host)
    logs = [Path(each).absolute() for each in BrokerConfig(properties).log_directories()]
    if directory is None:
        where = logs[0].with_name(f"{logs[0].name}-secure")
    else:
        where = Path(directory).absolute()
    if not properties.get("zookeeper.connect"):  # the log directories store users and rules
        for each in filter(Path.exists, logs):
            check_directory(each)
    setup = prepare_security(where, hosts)
    # The brokers own the nodes in ZooKeeper. Otherwise, any client could change them (SE-6).
    owning = setup.zookeeper_settings() if properties.get("zookeeper.connect") else {}
    return setup, {
        # Later entries take precedence. They are the defaults, the user's configs, and the settings
        # that secure the broker.
        **setup.defaults(),
        **owning,
        **properties,
        **setup.broker_settings(),
        **listeners,
    }


def prepare_security(directory: Path, hosts: Iterable[str]) -> SecureSetup:
    """Prepare security for brokers that clients reach by these hosts or by this machine's names.

    Raises ConfigError or OSError.
    """
    return prepare(directory, {*_LOCAL, socket.gethostname(), socket.getfqdn(), *hosts})
