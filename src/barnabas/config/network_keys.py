"""Lists the broker configs for listeners and connections that have an effect here."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_INT_MAX = 2147483647

_LISTENERS = (
    ("listeners", "string", "PLAINTEXT://:9092", "",
     "Addresses to listen on, as NAME://host:port; no host means all interfaces."),
    ("advertised.listeners", "string", None, "",
     "Addresses advertised to clients; unset, the one that the client connected to."),
    ("listener.security.protocol.map", "string",
     "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "",
     "Security protocol of each listener name, as NAME:PROTOCOL."),
    ("socket.request.max.bytes", "int", 104857600, "[1,...]",
     "Largest request that is read; a larger one closes the connection."),
    ("queued.max.request.bytes", "long", -1, "",
     "Bytes of large requests in memory above which reading stops; unset, an eighth of the memory "
     "that the machine or container has, at least 128 MiB; -1 is no limit."),
    ("barnabas.request.stalled.ms", "int", 10_000, "[1,...]",
     "How long a request may stall whose memory others wait for, before its connection is closed."),
    ("barnabas.request.max.entries", "int", 100_000, "[65536,...]",
     "Most entries in all lists of a client's request; one with more gets an error."),
    ("barnabas.connection.login.deadline.ms", "int", 30_000, "[1,...]",
     "Time for a client to authenticate (SASL), from the moment that its connection is accepted."),
    ("connections.max.idle.ms", "long", 600000, "",
     "How long a connection may stay idle before it is closed."),
    ("max.connections", "int", _INT_MAX, "[0,...]",
     "Most open connections."),
    ("max.connections.per.ip", "int", _INT_MAX, "[0,...]", "Most connections from one address."),
    ("max.connections.per.ip.overrides", "string", "", "",
     "The same for single addresses, as host:number,host:number."),
    ("max.connection.creation.rate", "int", _INT_MAX, "[0,...]",
     "Most new connections in a second, on average."),
    ("socket.listen.backlog.size", "int", 50, "[1,...]",
     "Connections that wait to be accepted."),
    ("socket.send.buffer.bytes", "int", 102400, "",
     "Send buffer of a client's socket; -1 leaves it to the system."),
    ("socket.receive.buffer.bytes", "int", 102400, "",
     "Receive buffer of a client's socket; -1 leaves it to the system."),
    ("fetch.max.bytes", "int", 57671680, "[1024,...]",
     "Upper limit for the bytes of one fetch, whatever it asks for."),
    ("max.incremental.fetch.session.cache.slots", "int", 1000, "[0,...]",
     "Most incremental fetch sessions (KIP-227) in the cache."),
    ("request.timeout.ms", "int", 30000, "", "Time for a request between brokers."),
    ("inter.broker.listener.name", "string", None, "",
     "Name of the listener for connections between brokers."),
    ("control.plane.listener.name", "string", None, "",
     "Name of the listener to which controllers send; unset, that between brokers."),
)  # fmt: skip

NETWORK_KEYS: dict[str, ConfigKey] = table(_LISTENERS)

PER_LISTENER = frozenset({"max.connections", "max.connection.creation.rate"})
"""Keys that can also be set for one listener, as `listener.name.<listener>.<key>` (KIP-402)."""
