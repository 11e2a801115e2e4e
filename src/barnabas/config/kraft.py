"""Handles properties files for KRaft.

A single node can be started with such a file, but several nodes cannot.

    process.roles       controller.quorum.*              without zookeeper.connect
    broker,controller   one voter, which is this node    starts, as a single node with its metadata
    anything else                                        refused

The brokers of a KRaft cluster find each other through its quorum. Barnabas has no quorum, so every
broker would be a cluster of its own, and would acknowledge records that the other brokers never
see. The broker therefore refuses to start, and the error lists the lines that have to be set. If
`zookeeper.connect` is set, the brokers find each other in ZooKeeper instead.

The listeners in `controller.listener.names` are for connections between controllers. Clients must
not use them, so they are not opened. If that setting is missing, a listener named CONTROLLER is
treated as a controller listener, unless brokers use it to connect to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

_LISTENERS = ("listeners", "advertised.listeners")
_ROLES, _CLOSED = "process.roles", "controller.listener.names"
_VOTERS, _SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
_CONTROLLER = "CONTROLLER"
_OF_BROKERS = ("inter.broker.listener.name", "control.plane.listener.name")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WAYS_OUT = (
    "For a single node leave out process.roles, controller.* and the listener CONTROLLER (or set "
    f"process.roles=broker,controller and {_VOTERS}=<this node.id>@localhost:9093). For several "
    "nodes set zookeeper.connect on each to the same ZooKeeper (HOST:2181) and leave out "
    "process.roles and controller.*; `barnabas cluster start` runs a ZooKeeper and three brokers "
    "on one machine"
)


def without_controller_listeners(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without the controller listeners."""
    names = _closed_names(properties)
    kept = dict(properties)
    for key in _LISTENERS:
        if key in kept:
            entries = _items(kept[key])
            left = [entry for entry in entries if _name(entry) not in names]
            if entries and not left and key == "listeners":
                raise ConfigError(
                    f"listeners={kept[key]} has only controller listeners ({_CLOSED}), but "
                    "clients need a listener: add PLAINTEXT://:9092"
                )
            if left != entries:
                kept[key] = ",".join(left)
    return kept


def check_kraft(config: BrokerConfig) -> list[str]:
    """Return the warnings for a properties file for KRaft.

    Raises ConfigError if the cluster consists of more than this node.

    The controller listeners must not have been removed from `config.properties` yet.
    """
    given = config.properties
    said = [name for name in (_ROLES, _VOTERS, _SERVERS) if given.get(name)]
    if not said:
        served = config.str("listeners")
        if _CLOSED not in given and given.get("listeners", served) != served:
            return [f"the listener {_CONTROLLER} is for controllers and is not opened"]
        return []
    text = f"{said[0]}={given[said[0]]}"
    roles = config.list(_ROLES) or ["broker", "controller"]
    if "broker" not in roles:
        raise ConfigError(
            f"{text} makes this node a controller without a broker, but Barnabas has no KRaft "
            f"quorum: do not start it. {_WAYS_OUT}"
        )
    if "controller" in config.list(_ROLES) and not config.str(_CLOSED):
        raise ConfigError(
            f"{text} needs {_CLOSED}, as in Kafka: the names of the controller listeners "
            "(CONTROLLER)"
        )
    # With ZooKeeper, the roles have no effect, because the brokers elect the controller through
    # ZooKeeper.
    if config.str("zookeeper.connect"):
        return [f"{text} has no effect: brokers find each other by zookeeper.connect"]
    reason = _reason_against(config, roles)
    if reason is not None:
        raise ConfigError(
            f"{text}: {reason}, but Barnabas has no KRaft quorum: the nodes would be separate "
            f"brokers that never see each other's writes. {_WAYS_OUT}"
        )
    return [
        f"{text} runs as a single node without a KRaft quorum: its metadata is kept in log.dirs, "
        "and no other node can join it"
    ]


def _reason_against(config: BrokerConfig, roles: Sequence[str]) -> str | None:
    """Return why this node cannot be the only node of the cluster, or None if it can."""
    if "controller" not in roles:
        return "its controllers are other nodes"
    if not config.is_set("node.id"):
        return "node.id, which identifies this node, is missing"
    voters, servers = config.list(_VOTERS), config.list(_SERVERS)
    if voters:
        own = config.int("node.id")
        # Only the ids are compared, because the addresses of the voters are not used.
        if [voter.partition("@")[0].strip() for voter in voters] == [str(own)]:
            return None
        return f"{_VOTERS}={','.join(voters)} lists other nodes than node.id={own}"
    if not servers:
        return f"neither {_VOTERS} nor {_SERVERS} shows that it is the only controller"
    if len(servers) == 1 and _is_own(servers[0], config.properties):
        return None
    return f"{_SERVERS}={','.join(servers)} lists more than this node's controller listener"


def _closed_names(given: Mapping[str, str]) -> set[str]:
    """Return the names of the controller listeners."""
    names = {name.upper() for name in _items(given.get(_CLOSED))}
    if not names and all(given.get(key, "").upper() != _CONTROLLER for key in _OF_BROKERS):
        names = {_CONTROLLER}
    return names


def _is_own(server: str, given: Mapping[str, str]) -> bool:
    """Return whether this is the address of the controller listener of this node."""
    names = _closed_names(given)
    own = {
        entry.partition("://")[2].lower()
        for key in _LISTENERS
        for entry in _items(given.get(key))
        if _name(entry) in names
    }
    host, _, port = server.lower().rpartition(":")
    ports = {address.rpartition(":")[2] for address in own}
    return server.lower() in own or (host.strip("[]") in _LOOPBACK and port in ports)


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _name(entry: str) -> str:
    return entry.partition("://")[0].strip().upper()
