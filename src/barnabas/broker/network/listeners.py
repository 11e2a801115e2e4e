"""Parses `listeners` and `advertised.listeners`, and binds the listeners' sockets.

NAME://host:port    an empty host binds every address; port 0 takes a free one
"""

from __future__ import annotations

import errno
import socket

from barnabas.broker.listener_names import (
    control_plane_listener,
    inter_broker_listener,
    security_protocols,
)
from barnabas.cluster.image import Endpoint
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.named_tuple import NamedTuple
from barnabas.security.protocol import SecurityProtocol

_BACKLOG = 128
_EVERY_ADDRESS = ("", "0.0.0.0", "::")


class Listener(NamedTuple):
    """An entry of `listeners`, with its security protocol from `listener.security.protocol.map`."""

    name: str
    host: str
    port: int
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    @property
    def address_here(self) -> str:
        """Return the address to which a client on this machine connects."""
        return _address("localhost" if self.host in _EVERY_ADDRESS else self.host, self.port)

    def __str__(self) -> str:
        return f"{self.name}://{_address(self.host, self.port)}"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_listeners(key: str, text: str) -> list[Listener]:
    """Parse a list of listeners. Raises ConfigError, which names the entry that is invalid."""
    listeners = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, address = entry.partition("://")
        host, colon, port = address.rpartition(":")
        if not separator or not name or not colon or not port.isdecimal() or int(port) > 65535:
            raise ConfigError(
                f"{key}: {entry!r} must be NAME://HOST:PORT, such as PLAINTEXT://:9092"
            )
        listeners.append(Listener(name.upper(), host.strip("[]"), int(port)))
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigError(f"{key}: two listeners have the same name: {text}")
    return listeners


def configured_listeners(config: BrokerConfig) -> list[Listener]:
    """Return the entries of `listeners`, each with its security protocol."""
    protocols = security_protocols(config)
    listeners = []
    for listener in parse_listeners("listeners", config.str("listeners")):
        protocol = protocols.get(listener.name)
        if protocol is None:
            raise ConfigError(
                f"listeners: {listener.name} has no entry in listener.security.protocol.map"
            )
        listeners.append(listener._replace(protocol=protocol))
    if not listeners:
        raise ConfigError("listeners: at least one listener is required, such as PLAINTEXT://:9092")
    _check_inter_broker(config, [listener.name for listener in listeners])
    return listeners


def exposures(config: BrokerConfig, listeners: list[Listener]) -> list[str]:
    """Return a warning for each listener that is bound to all addresses but requires no
    authentication (SE-6).

    There is also a warning if TLS is configured but not used by any listener.
    """
    warnings = []
    if not any(listener.protocol.uses_tls for listener in listeners):
        unused = sorted(name for name in config.set_names() if name.startswith("ssl."))
        if unused:
            warnings.append(
                f"no listener uses TLS, so these configs have no effect: {', '.join(unused)}"
            )
    return warnings + [
        f"listener {listener} is open on all addresses without authentication: every client that "
        "can reach it may do everything; bind it to one address or keep the network private"
        for listener in listeners
        if listener.host in _EVERY_ADDRESS and _is_open(config, listener)
    ]


def _is_open(config: BrokerConfig, listener: Listener) -> bool:
    """Return whether clients can connect to this listener without authentication."""
    # If the listener requires a client certificate, it authenticates the client.
    if listener.protocol is SecurityProtocol.SSL:
        return str(config.for_listener(listener.name, "ssl.client.auth")).lower() != "required"
    return listener.protocol.is_open


def _check_inter_broker(config: BrokerConfig, names: list[str]) -> None:
    """Check, as Kafka 3.9 does, that the brokers can reach each other.

    Raises ConfigError if they cannot.

    A standalone broker needs no inter-broker listener.
    """
    advertised = config.str("advertised.listeners")
    if advertised:
        # Each broker connects to the other brokers' advertised listeners.
        names = [each.name for each in parse_listeners("advertised.listeners", advertised)]
    inner, protocol = inter_broker_listener(config)
    is_asked = config.is_set("inter.broker.listener.name") or config.is_set(
        "security.inter.broker.protocol"
    )
    key = (
        "inter.broker.listener.name"
        if config.is_set("inter.broker.listener.name")
        else f"security.inter.broker.protocol={protocol.value}"
    )
    if inner not in names and (is_asked or config.str("zookeeper.connect")):
        raise ConfigError(
            f"{key}: {inner} is not an advertised listener; set inter.broker.listener.name to "
            f"one of {', '.join(names)}"
        )
    control = control_plane_listener(config)
    if control and control not in names:
        raise ConfigError(
            f"control.plane.listener.name: {control} is not an advertised listener; set it to "
            f"one of {', '.join(names)}"
        )
    if control and control == inner:
        raise ConfigError(
            f"control.plane.listener.name: {control} is also the inter-broker listener; name "
            "another listener, or leave it out"
        )


def socket_options(config: BrokerConfig) -> list[tuple[int, int]]:
    """Return the configured buffer sizes. Accepted sockets inherit them from the listening socket.

    Kafka's default of 100 KiB is not applied. A fixed size would turn off the kernel's automatic
    tuning, which works better.
    """
    return [
        (option, config.int(name))
        for option, name in (
            (socket.SO_SNDBUF, "socket.send.buffer.bytes"),
            (socket.SO_RCVBUF, "socket.receive.buffer.bytes"),
        )
        if config.is_set(name) and config.int(name) >= 0
    ]


def bind(listener: Listener, backlog: int = _BACKLOG) -> list[socket.socket]:
    """Return sockets bound to the listener's address.

    Raises ConfigError, with the address and a remedy, or OSError.
    """
    host: str | bytes | None = listener.host or None
    # Pass bytes. If a string were passed, even an IP address, Python would load its IDNA codec.
    if host is not None and listener.host.isascii():
        host = listener.host.encode()
    try:
        found = socket.getaddrinfo(
            host,
            listener.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
    except socket.gaierror as error:
        raise ConfigError(f"listeners: {listener}: {error.strerror}; check the host name") from None
    # Use the first address of each family, in the resolver's order.
    families = {entry[0]: entry for entry in reversed(found)}
    # As in Java, bind one socket for both families.
    if not listener.host and socket.AF_INET6 in families and socket.has_dualstack_ipv6():
        return [_bind_dual_stack(listener, backlog)]
    family, _, _, _, address = families.get(socket.AF_INET) or found[0]
    return [_bind_one(listener, socket.socket(family, socket.SOCK_STREAM), address, backlog)]


def _bind_dual_stack(listener: Listener, backlog: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        return _bind_one(listener, sock, ("::", listener.port), backlog)
    except ConfigError:
        raise
    except OSError:  # IPv6 is compiled in but disabled on this machine
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        return _bind_one(listener, sock, ("0.0.0.0", listener.port), backlog)


def _bind_one(
    listener: Listener, sock: socket.socket, address: object, backlog: int
) -> socket.socket:
    # Without this, the port could not be bound after a restart until old connections have timed
    # out.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)  # type: ignore[arg-type]
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"{listener}: port {listener.port} is in use; stop the process that uses it or "
                "choose another port (--port)"
            ) from None
        if error.errno in (errno.EACCES, errno.EADDRNOTAVAIL):
            raise ConfigError(f"{listener}: cannot bind: {error.strerror}") from None
        raise
    sock.setblocking(False)
    return sock


def advertised_endpoints(
    config: BrokerConfig, bound: list[Listener]
) -> tuple[tuple[Endpoint, ...], frozenset[str]]:
    """Return the endpoints to register and the names of the listeners that have no advertised
    address.

    For a listener without an address, each client receives the address that it connected to. As in
    Kafka, the registered endpoint has the host name of this machine.
    """
    advertised = {
        listener.name: listener
        for listener in parse_listeners(
            "advertised.listeners", config.str("advertised.listeners") or ""
        )
    }
    unknown = set(advertised) - {listener.name for listener in bound}
    if unknown:
        raise ConfigError(
            f"advertised.listeners: {', '.join(sorted(unknown))} is not among the listeners"
        )
    endpoints = []
    automatic = []
    for listener in bound:
        address = advertised.get(listener.name, listener)
        # Kafka rejects this too, because each client would try to connect to itself.
        if address.host in ("0.0.0.0", "::") and listener.name in advertised:
            raise ConfigError(
                f"advertised.listeners: {address}: clients cannot connect to {address.host}"
            )
        if address.host in _EVERY_ADDRESS:
            automatic.append(listener.name)
            address = address._replace(host=socket.gethostname())
        port = address.port or listener.port
        endpoints.append(Endpoint(listener.name, address.host, port, listener.protocol.value))
    return tuple(endpoints), frozenset(automatic)
