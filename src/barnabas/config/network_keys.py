"""Lists the broker configs for listeners and connections that have an effect."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_INT_MAX = 2147483647

_LISTENERS = (
    ("listeners", "string", "PLAINTEXT://:9092", "",
     "Addresses to listen on, as NAME://host:port; no host means all interfaces."),
    ("advertised.listeners", "string", None, "",
     "Addresses advertised to clients; unset: the address that the client connected to."),
    ("listener.security.protocol.map", "string",
     "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "",
     "Security protocol of each listener name, as NAME:PROTOCOL."),
    ("socket.request.max.bytes", "int", 104857600, "[1,...]",
     "Maximum size of a request; a larger request closes the connection."),
    ("queued.max.request.bytes", "long", -1, "",
     "Bytes of large requests in memory above which reading stops; unset: one eighth of the "
     "memory of the machine or container, at least 128 MiB; -1 means no limit."),
    ("barnabas.request.stalled.ms", "int", 10_000, "[1,...]",
     "How long a request may stall while others wait for its memory before its connection is "
     "closed."),
    ("barnabas.request.max.entries", "int", 100_000, "[65536,...]",
     "Maximum entries in all lists of a client's request; a request with more gets an error."),
    ("barnabas.connection.login.deadline.ms", "int", 30_000, "[1,...]",
     "How long a client has to authenticate (SASL) after its connection is accepted."),
    ("connections.max.idle.ms", "long", 600000, "",
     "How long a connection may stay idle before it is closed."),
    ("max.connections", "int", _INT_MAX, "[0,...]",
     "Maximum number of open connections."),
    ("max.connections.per.ip", "int", _INT_MAX, "[0,...]",
     "Maximum number of connections from one address."),
    ("max.connections.per.ip.overrides", "string", "", "",
     "Overrides of max.connections.per.ip for single addresses, as host:number,host:number."),
    ("max.connection.creation.rate", "int", _INT_MAX, "[0,...]",
     "Maximum average number of new connections per second."),
    ("socket.listen.backlog.size", "int", 50, "[1,...]",
     "Maximum number of connections waiting to be accepted."),
    ("socket.send.buffer.bytes", "int", 102400, "",
     "Send buffer size of a client's socket; -1 uses the system's default."),
    ("socket.receive.buffer.bytes", "int", 102400, "",
     "Receive buffer size of a client's socket; -1 uses the system's default."),
    ("fetch.max.bytes", "int", 57671680, "[1024,...]",
     "Maximum bytes of a fetch response, regardless of the request."),
    ("max.incremental.fetch.session.cache.slots", "int", 1000, "[0,...]",
     "Maximum number of cached incremental fetch sessions (KIP-227)."),
    ("request.timeout.ms", "int", 30000, "", "Timeout of a request between brokers."),
    ("inter.broker.listener.name", "string", None, "",
     "Name of the listener for connections between brokers."),
    ("control.plane.listener.name", "string", None, "",
     "Name of the listener to which controllers send; unset: the inter-broker listener."),
)  # fmt: skip

NETWORK_KEYS: dict[str, ConfigKey] = table(_LISTENERS)

PER_LISTENER = frozenset({"max.connections", "max.connection.creation.rate"})
"""Keys that can also be set for one listener, as `listener.name.<listener>.<key>` (KIP-402)."""
