"""Defines the options of the clients. Option names (with underscores) and defaults are Kafka's.

The `...Config` tuples hold the values. The `...Options` dictionaries declare the same names as
keyword arguments for type checkers. Kafka's own spelling (`batch.size`) is also accepted, and text
is converted to the type of the option, so a properties file can be passed unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from barnabas.client.security.config import SecurityConfig, SecurityOptions, is_secret
from barnabas.client.unused_options import SECURITY_PREFIXES, without_unused
from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol

_log = logging.getLogger(__name__)

_INT_MAX = 2**31 - 1

ChoosePartition = Callable[[str, bytes | None, Sequence[int]], int]
"""A custom partitioner.

It is called with a topic, a key and the partition numbers, and returns one of these numbers.
"""


Servers = str | Sequence[str] | Mapping[str, Any] | None
"""A client's first argument: servers, or a mapping of options with `bootstrap.servers`."""


class ClientConfig(NamedTuple):
    """The options that all clients have."""

    client_id: str = "barnabas"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    security: SecurityConfig = SecurityConfig()


class ProducerConfig(NamedTuple):
    """The options of a producer."""

    acks: int = -1  # "all" is -1
    batch_size: int = 16_384  # bytes, per partition
    linger_ms: int = 0
    compression_type: str = "none"
    enable_idempotence: bool = True
    max_in_flight_requests_per_connection: int = 5
    max_request_size: int = 1_048_576  # bytes
    buffer_memory: int = 33_554_432  # bytes
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    retries: int = _INT_MAX
    partitioner: str | ChoosePartition = "sticky"
    allow_auto_create_topics: bool = True
    transactional_id: str = ""  # "": no transactions
    transaction_timeout_ms: int = 60_000
    key_serializer: str | Callable[[Any], bytes | None] | None = None  # None: bytes unchanged
    value_serializer: str | Callable[[Any], bytes | None] | None = None
    interceptor_classes: Any = None  # see `interceptors.interceptor_classes`


class ConsumerConfig(NamedTuple):
    """The options of a consumer."""

    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    queued_max_messages_kbytes: int = 65_536
    max_poll_records: int = 500
    auto_offset_reset: str = "latest"
    isolation_level: str = "read_uncommitted"
    check_crcs: bool = True
    client_rack: str = ""
    allow_auto_create_topics: bool = True
    group_id: str = ""  # "": no group
    group_instance_id: str = ""  # "": a dynamic member
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    # The group uses the first assignor that all members support. Rebalances are incremental only if
    # "cooperative-sticky" is the only assignor in the list.
    partition_assignment_strategy: str = "range,cooperative-sticky"
    enable_auto_commit: bool = True  # for consumers in a group
    auto_commit_interval_ms: int = 5_000
    exclude_internal_topics: bool = True  # for pattern subscriptions
    key_deserializer: str | Callable[[bytes], Any] | None = None  # None: bytes unchanged
    value_deserializer: str | Callable[[bytes], Any] | None = None
    interceptor_classes: Any = None  # see `interceptors.interceptor_classes`


class ClientOptions(SecurityOptions, total=False):
    client_id: str
    request_timeout_ms: int
    default_api_timeout_ms: int
    metadata_max_age_ms: int
    metadata_max_idle_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int


class ProducerOptions(ClientOptions, total=False):
    acks: int | str
    batch_size: int
    linger_ms: int
    compression_type: str
    enable_idempotence: bool
    max_in_flight_requests_per_connection: int
    max_request_size: int
    buffer_memory: int
    max_block_ms: int
    delivery_timeout_ms: int
    retries: int
    partitioner: str | ChoosePartition
    allow_auto_create_topics: bool
    transactional_id: str
    transaction_timeout_ms: int
    key_serializer: str | Callable[[Any], bytes | None] | None
    value_serializer: str | Callable[[Any], bytes | None] | None
    interceptor_classes: Any


class ConsumerOptions(ClientOptions, total=False):
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    queued_max_messages_kbytes: int
    max_poll_records: int
    auto_offset_reset: str
    isolation_level: str
    check_crcs: bool
    client_rack: str
    allow_auto_create_topics: bool
    group_id: str
    group_instance_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    partition_assignment_strategy: str | Sequence[str]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    exclude_internal_topics: bool
    key_deserializer: str | Callable[[bytes], Any] | None
    value_deserializer: str | Callable[[bytes], Any] | None
    interceptor_classes: Any


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "compression_type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "auto_offset_reset": ("earliest", "latest", "none"),
    "isolation_level": ("read_uncommitted", "read_committed"),
    "partitioner": ("sticky", "round-robin", "random-until-refresh"),
    "security_protocol": tuple(each.value for each in SecurityProtocol),
}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_LISTS = ("ssl_enabled_protocols", "ssl_cipher_suites")
_LEAST: Mapping[str, int] = {
    "acks": -1,
    "max_in_flight_requests_per_connection": 1,
    "max_poll_records": 1,
    "queued_max_messages_kbytes": 1,
    "max_block_ms": 0,
    "metadata_max_idle_ms": 5_000,
    "heartbeat_interval_ms": 1,
    "max_poll_interval_ms": 1,
    "session_timeout_ms": 1,
    "transaction_timeout_ms": 1,
}

C = TypeVar("C", ClientConfig, ProducerConfig, ConsumerConfig)


def split(
    bootstrap_servers: Servers, options: Mapping[str, Any]
) -> tuple[str | Sequence[str], dict[str, Any]]:
    """Return the servers and the options from the arguments of a client's constructor.

    The servers may be given in either argument. If a mapping is given instead of servers, it
    contains options, and keyword arguments override them. The returned option names have
    underscores.

    Raises ConfigError if no servers are given, or if the same argument contains an option twice.
    """
    if isinstance(bootstrap_servers, Mapping):
        given = _with_underscores(bootstrap_servers)
        for name, value in _with_underscores(options).items():
            if value is not None or name not in given:  # None: not set
                given[name] = value
    else:
        given = _with_underscores(options)
        if bootstrap_servers is not None:
            if "bootstrap_servers" in given:
                raise ConfigError("bootstrap.servers is set twice; set it once")
            given["bootstrap_servers"] = bootstrap_servers
    servers = given.pop("bootstrap_servers", None)
    if servers is None:
        raise ConfigError("bootstrap.servers is missing; give HOST:PORT[,HOST:PORT...]")
    return servers, given


def _with_underscores(options: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in options.items():
        if not isinstance(name, str):
            raise ConfigError(f"{name!r} is not the name of an option: a name must be a string")
        own = name.strip().replace(".", "_")
        if own in given:
            raise ConfigError(f"{own.replace('_', '.')} is set twice; set it once")
        given[own] = value
    return given


def configure(own: type[C], options: Mapping[str, Any]) -> tuple[ClientConfig, C]:
    """Split `options` into the common options and those of the class `own`, and check all values.

    Raises ConfigError, which names the option, its value and the valid values.
    """
    # Remove the options of Kafka's clients that have no effect in these clients, because they must
    # not be reported as unknown.
    given = without_unused(_with_underscores(options))
    security = SecurityConfig._field_defaults
    defaults = {**ClientConfig._field_defaults, **own._field_defaults, **security}
    del defaults["security"]
    for name in given:
        if name not in defaults:
            raise _unknown(name, list(defaults))
    checked = {
        name: _valid_value(name, value, defaults[name])
        for name, value in given.items()
        if value is not None  # None means not set, as in other clients
    }
    common = {name: checked[name] for name in checked if name in ClientConfig._fields}
    rest = {name: checked[name] for name in checked if name in own._fields}
    config = own(**rest)
    secured = {name: checked[name] for name in checked if name in security}
    shared = ClientConfig(**common, security=_settle_security(secured))
    if isinstance(config, ProducerConfig):
        config = _settle_delivery(_settle_producer(config, rest), shared, rest)
    if isinstance(config, ConsumerConfig):
        config = _settle_consumer(config, rest)
    return shared, config


def of_every_client(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the options that all clients have, with underscores in their names.

    This makes a properties file for one kind of client usable for another kind.
    """
    return {
        name: value
        for name, value in _with_underscores(options).items()
        if name in ClientConfig._fields or name.startswith(SECURITY_PREFIXES)
    }


def parse_servers(bootstrap_servers: str | Sequence[str]) -> list[tuple[str, int]]:
    """Parse addresses such as `host:port,[::1]:9092`, given as text or as a sequence.

    A protocol prefix, as in `listeners`, is ignored, as it is in Kafka's clients, because the
    protocol is set by `security.protocol`.
    """
    if not isinstance(bootstrap_servers, str | list | tuple):
        kind = type(bootstrap_servers).__name__
        raise ConfigError(f"bootstrap.servers: must be text or a list of strings, not {kind}")
    texts = (
        bootstrap_servers.split(",") if isinstance(bootstrap_servers, str) else bootstrap_servers
    )
    servers = []
    for text in (str(text).strip() for text in texts):
        if not text:
            continue
        # Ignore only security protocols; `http://localhost:9092` is a mistake, and is rejected.
        protocol, separator, address = text.partition("://")
        is_listener = separator and protocol.upper() in _CHOICES["security_protocol"]
        host, colon, port = (address if is_listener else text).rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        is_named = bool(host) and "/" not in host  # false for http://localhost:9092
        if not colon or not is_named or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ConfigError(
                f"bootstrap.servers: {text!r} is not HOST:PORT, such as localhost:9092"
            )
        servers.append((host, int(port)))
    if not servers:
        raise ConfigError("bootstrap.servers is empty; give HOST:PORT[,HOST:PORT...]")
    return servers


def _valid_value(name: str, value: Any, default: Any) -> Any:
    """Convert `value` to the type of `default`, and return it if it is within the bounds."""
    if name == "acks" and value == "all":
        return -1
    if default is None or (name == "partitioner" and callable(value)):
        return value  # checked where it is used
    kafka_name = name.replace("_", ".")
    if name == "security_protocol" and isinstance(value, str):
        value = value.strip().upper()
    if name == "partition_assignment_strategy" and isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if name in _LISTS and isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    converted = _convert(value, default)
    if is_secret(name):
        value = "its value"  # keep a secret out of the messages below
    if converted is None:
        kind = _KINDS[type(default)]
        shown = "its value" if is_secret(name) else repr(value)
        raise ConfigError(f"{kafka_name}: {shown} is not {kind}")
    if name in SecurityConfig._fields and name not in _CHOICES:
        return converted  # never sent; checked where it is used
    # Every request contains client.id, and text on the wire is limited to 32,767 bytes.
    if isinstance(converted, str) and not _fits_the_wire(converted):
        shown = value if is_secret(name) else converted[:60]
        raise ConfigError(f"{kafka_name}: {shown!r} is not text of at most 32767 bytes")
    if name in _CHOICES and converted not in _CHOICES[name]:
        raise ConfigError(f"{kafka_name}: {value!r} is not one of {', '.join(_CHOICES[name])}")
    if type(default) is int:
        least = _LEAST.get(name, 0)
        if converted < least:
            raise ConfigError(f"{kafka_name}: {value!r} is less than {least}")
        if name == "acks" and converted > 1:
            raise ConfigError(f"acks: {value!r} is not one of all, -1, 0, 1")
    return converted


def _fits_the_wire(text: str) -> bool:
    try:
        return len(text.encode()) < 2**15
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _convert(value: Any, default: Any) -> Any:
    """Return the value converted to the type of the default, or None if that is not possible."""
    # Check bool first, because a bool is an int in Python.
    if isinstance(default, bool):
        if isinstance(value, str):
            return {"true": True, "false": False}.get(value.strip().lower())
        return value if isinstance(value, bool) else None
    if isinstance(default, int):
        if isinstance(value, str):
            text = value.strip()
            return int(text) if text.removeprefix("-").isdecimal() else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(default, float):
        return _as_float(value)
    return value if isinstance(value, str) else None


def _as_float(value: Any) -> float | None:
    """Return the value as a finite number, or None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _settle_security(secured: Mapping[str, Any]) -> SecurityConfig:
    """Check the security options. The TLS files are loaded so that errors are reported early."""
    security = SecurityConfig(**secured)
    if security.protocol.uses_tls:
        from barnabas.client.security.tls import client_tls  # imported only where it is used

        client_tls(security.tls_settings())
    elif any(name.startswith("ssl_") for name in secured):
        _log.warning(
            "ssl.* options have no effect: security.protocol is %s", security.security_protocol
        )
    security.check()
    return security


def _settle_producer(config: ProducerConfig, explicit: Mapping[str, Any]) -> ProducerConfig:
    """Disable idempotence if other options conflict with it (PR-6); raise if it was requested."""
    conflict = None
    if config.acks != -1:
        conflict = f"acks={config.acks}"
    elif config.retries == 0:
        conflict = "retries=0"
    elif config.max_in_flight_requests_per_connection > 5:
        in_flight = config.max_in_flight_requests_per_connection
        conflict = f"max.in.flight.requests.per.connection={in_flight}"
    # Transactions require idempotence (KIP-98), so it is not disabled here.
    if config.transactional_id and (conflict or not config.enable_idempotence):
        raise ConfigError(
            "transactional.id needs idempotence, which conflicts with "
            + (conflict or "enable.idempotence=false")
        )
    if not config.enable_idempotence or conflict is None:
        return config
    if "enable_idempotence" in explicit:
        raise ConfigError(
            f"enable.idempotence=true conflicts with {conflict}: it needs acks=all, retries > 0 "
            "and at most 5 max.in.flight.requests.per.connection"
        )
    _log.info("enable.idempotence is off because %s was set", conflict)
    return config._replace(enable_idempotence=False)


def _settle_delivery(
    config: ProducerConfig, shared: ClientConfig, explicit: Mapping[str, Any]
) -> ProducerConfig:
    """Require enough time to linger and to send a request. As in Java, raise a short default."""
    linger_ms, request_ms = config.linger_ms, shared.request_timeout_ms
    least_ms = min(linger_ms + request_ms, _INT_MAX)
    if config.delivery_timeout_ms >= least_ms:
        return config
    if "delivery_timeout_ms" in explicit:
        raise ConfigError(
            f"delivery.timeout.ms: {config.delivery_timeout_ms} is less than linger.ms + "
            f"request.timeout.ms, {linger_ms} + {request_ms}; raise it, or lower one of these"
        )
    _log.info(
        "delivery.timeout.ms is raised to %d, the sum of linger.ms and request.timeout.ms", least_ms
    )
    return config._replace(delivery_timeout_ms=least_ms)


def _settle_consumer(config: ConsumerConfig, explicit: Mapping[str, Any]) -> ConsumerConfig:
    """Check the options that require a group or depend on each other."""
    if not config.group_id:
        for name in ("enable_auto_commit", "group_instance_id"):
            if explicit.get(name):
                kafka_name = name.replace("_", ".")
                raise ConfigError(f"{kafka_name} needs a consumer group: set group.id")
        return config._replace(enable_auto_commit=False)
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise ConfigError(
            f"heartbeat.interval.ms: {config.heartbeat_interval_ms} is not less than "
            f"session.timeout.ms, {config.session_timeout_ms}; a third of it is usual"
        )
    return config


def _unknown(name: str, known: Sequence[str]) -> ConfigError:
    from difflib import get_close_matches  # imported only for an error

    near = get_close_matches(name.lower(), known, n=1)
    hint = f"; did you mean {near[0].replace('_', '.')}?" if near else ""
    return ConfigError(f"unknown option {name.replace('_', '.')}{hint}")
