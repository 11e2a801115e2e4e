"""Sorts `kafka.*` options into options for our client, options without effect, and rejected
options.

There are three kinds of options. The options of our client are passed on, and `client/config.py`
checks their values. Options that apply only to Kafka's Java clients are accepted but ignored, so
that a tuned job runs unchanged. Options that would break the guarantees of the source are rejected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.client.config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    configure,
    of_every_client,
    parse_servers,
)
from barnabas.client.unused_options import SECURITY_PREFIXES
from barnabas.errors import ConfigError
from pyspark_barnabas.given import refuse_others

_PREFIX = "kafka."
_SERVERS = "bootstrap.servers"

_READ_DEFAULTS = {
    # A task reads one partition, which may fill a whole fetch. 2 MiB, about 17,000 small records,
    # keep round trips rare and decoded data within the processor's cache.
    "max.partition.fetch.bytes": "2097152",
    # A request for a mistyped name must not create a topic.
    "allow.auto.create.topics": "false",
}
_WRITE_DEFAULTS = {
    # Tasks have thousands of rows ready, and large batches cost the broker least.
    "linger.ms": "5",
    "batch.size": "262144",
}

_REFUSED = {
    "key.deserializer": "keys are always binary; cast the column",
    "value.deserializer": "values are always binary; cast the column",
    "key.serializer": "cast the key column to string or binary",
    "value.serializer": "cast the value column to string or binary",
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "the query's checkpoint keeps its progress",
    "interceptor.classes": "this format has no interceptors",
    "transactional.id": "it needs exactlyOnce=true",
}
_WITHOUT_EFFECT = frozenset(
    (
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "exclude.internal.topics",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.ignore.keys",
        "receive.buffer.bytes",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
    )
)
_OF_CLIENTS = {name.replace("_", ".") for name in ClientConfig._fields} - {"security"}
_SECURITY = tuple(prefix.replace("_", ".") for prefix in SECURITY_PREFIXES)
_OF_CONSUMERS = {name.replace("_", ".") for name in ConsumerConfig._fields}
_OF_PRODUCERS = {name.replace("_", ".") for name in ProducerConfig._fields}


class Properties(NamedTuple):
    """The `kafka.*` options of a sink, by client."""

    common: dict[str, Any]
    producer: dict[str, Any]  # including the common ones


def client_properties(given: Mapping[str, str], *, reads: bool) -> Mapping[str, str]:
    """Return `bootstrap.servers` and the other properties for our consumer or producer.

    Raises `ConfigError`, which names the option.
    """
    own = _OF_CLIENTS | (_OF_CONSUMERS if reads else _OF_PRODUCERS)
    properties = dict(_READ_DEFAULTS if reads else _WRITE_DEFAULTS)
    for option, value in given.items():
        name = option.lower()
        if name == _SERVERS:
            # Also accept the bare name; `kafka.bootstrap.servers` takes precedence.
            properties.setdefault(_SERVERS, value)
        elif name.startswith(_PREFIX):
            _take(properties, name.removeprefix(_PREFIX), value, own)
    if _SERVERS not in properties:
        raise ConfigError("option kafka.bootstrap.servers is missing: give HOST:PORT[,HOST:PORT]")
    _check(properties, reads)
    return properties


def properties_of_clients(given: Mapping[str, str]) -> tuple[str, Properties]:
    """Return the bootstrap servers, and all other options by client."""
    rest = {name: value for name, value in given.items() if name != _SERVERS}
    return given[_SERVERS], Properties(of_every_client(rest), rest)


def refuse_unknown(names: Iterable[str], known: Sequence[str]) -> None:
    """Reject unknown names.

    `names` are in lower case. Raises `ConfigError`, which suggests the most similar known name.
    """
    names = list(names)
    if _OF_CATALOG_TABLES in names:
        # Spark 4.3 stores a table's options in the catalog, but passes none of them to a Python
        # source that reads the table. An error is better than a useless table.
        raise ConfigError(
            "CREATE TABLE does not work for a topic: Spark passes no options of a table to a source"
            " written in Python. Use CREATE TEMPORARY VIEW ... USING barnabas OPTIONS (...)"
        )
    refuse_others("barnabas", names, (*known, _SERVERS, _PREFIX + _SERVERS), _PREFIX)


_OF_CATALOG_TABLES = "provider"


def _take(properties: dict[str, str], name: str, value: str, own: set[str]) -> None:
    if name in _REFUSED:
        raise ConfigError(f"option kafka.{name} is not supported: {_REFUSED[name]}")
    if name in _WITHOUT_EFFECT:
        return  # even if our consumer has it, because the source joins no group
    if name == _SERVERS or name in own or name.startswith(_SECURITY):
        properties[name] = value
    elif name not in _OF_CONSUMERS | _OF_PRODUCERS:
        near = difflib.get_close_matches(name, own | {_SERVERS}, n=1)
        hint = f"; did you mean kafka.{near[0]}?" if near else ""
        raise ConfigError(f"option kafka.{name} is unknown{hint}")


def _check(properties: Mapping[str, str], reads: bool) -> None:
    rest = {name: value for name, value in properties.items() if name != _SERVERS}
    try:
        parse_servers(properties[_SERVERS])
        if reads:
            configure(ConsumerConfig, rest)
        else:
            configure(ProducerConfig, rest)
    except ConfigError as error:
        raise ConfigError(f"option kafka.{error}") from None
