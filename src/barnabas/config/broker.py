"""Defines BrokerConfig, which contains the settings of a broker.

They are checked once and read by name.

Invariant: every value that is returned has been parsed and is within the bounds of its key. Errors
are raised by the constructor, before any socket is opened or any file is accessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from barnabas.config.broker_keys import inert_warning, key_of
from barnabas.config.key import ConfigKey, ConfigValue
from barnabas.config.kraft import check_kraft, without_controller_listeners
from barnabas.config.topic_keys import TOPIC_KEYS, LogConfig, unusable
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.errors import ConfigError

_NOTHING: Mapping[str, str] = MappingProxyType({})
_MS_PER_UNIT = {"hours": 3_600_000, "minutes": 60_000}
_TEMPORARY = ("/tmp/", "/var/tmp/")


class BrokerConfig:
    """Provides typed access to the properties and the dynamic configs of a broker.

    A dynamic config takes precedence over a property, and a dynamic config of one broker takes
    precedence over a cluster-wide one. `properties`, `per_broker` and `cluster_wide` contain the
    values as text, in the form in which they were set. `warnings` contains a line for each property
    of Kafka that is set but has no effect in Barnabas. If such a property promises protection, it
    is rejected (SE-6).
    """

    __slots__ = (
        "_log_defaults",
        "_texts",
        "_values",
        "cluster_wide",
        "per_broker",
        "properties",
        "warnings",
    )

    def __init__(
        self,
        properties: Mapping[str, str],
        per_broker: Mapping[str, str] = _NOTHING,
        cluster_wide: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Check all settings.

        Raises ConfigError, which contains the key, the value and the valid values.
        """
        self.properties: Mapping[str, str] = _with_both_ids(properties)
        self.per_broker = per_broker
        self.cluster_wide = cluster_wide
        self.warnings: list[str] = []
        # The sample files for KRaft also list the controller listener, which would be open to all
        # clients.
        served = without_controller_listeners(self.properties)
        self._texts = {**served, **cluster_wide, **per_broker}
        self._values: dict[str, ConfigValue] = {}
        for name, text in self._texts.items():
            key = key_of(name)
            self._values[name] = key.parse(text)
            if key.inert:
                _refuse_broken_promise(name, text)
        self.warnings += [w for w in map(inert_warning, self.properties) if w is not None]
        self.warnings += check_kraft(self)
        self._check_together()
        self._log_defaults = LogConfig().with_overrides(self._topic_defaults())

    def with_dynamic(
        self, per_broker: Mapping[str, str], cluster_wide: Mapping[str, str]
    ) -> BrokerConfig:
        """Return a configuration with the same properties and with these dynamic configs.

        Raises ConfigError if one is invalid.
        """
        return BrokerConfig(self.properties, per_broker, cluster_wide)

    def is_set(self, name: str) -> bool:
        """Return whether the properties contain this key, even if the value is the default."""
        return name in self._values

    def set_names(self) -> Iterable[str]:
        """Return the names of all settings, from all sources."""
        return self._texts

    def value(self, name: str) -> ConfigValue:
        """Return the value of a key of any type, or its default if it is not set.

        None is "null" in Kafka.
        """
        if name in self._values:
            return self._values[name]
        return key_of(name).default_value

    @property
    def verifies_all_records(self) -> bool:
        """Return whether every record is checked before an append.

        This is the default if there is an authorizer, because otherwise a client with limited
        rights could damage a topic.
        """
        name = "barnabas.verify.all.records"
        if self.is_set(name):
            return self.bool(name)
        # Only keys that are set are looked up, because the table is loaded on demand.
        authorizer = "authorizer.class.name"
        return self.is_set(authorizer) and self.str(authorizer) != ""

    def log_directories(self) -> list[str]:
        """Return the entries of `log.dirs`.

        If it is not set, return the entries of `log.dir`, which may also be a list.
        """
        return self.list("log.dirs") or self.list("log.dir")

    def listener_int(self, listener: str, name: str) -> int | None:
        """Return the value of `listener.name.<listener>.<name>`, or None if it is not set."""
        value = self._values.get(f"{_of_listener(listener)}{name}")
        assert value is None or isinstance(value, int), f"{name} of {listener} is {value!r}"
        return value

    def for_listener(self, listener: str, name: str, mechanism: str = "") -> ConfigValue:
        """Return the value of a key for one listener.

        The first name that is set is used: `listener.name.<listener>.<mechanism>.<name>` (if a SASL
        mechanism is given), `listener.name.<listener>.<name>` and then `<name>`. If none is set,
        return the default.
        """
        prefix = _of_listener(listener)
        names = (f"{prefix}{mechanism.lower()}.{name}",) if mechanism else ()
        # As in Kafka, the most specific name takes precedence.
        for each in (*names, f"{prefix}{name}"):
            if each in self._values:
                return self._values[each]
        return self.value(name)

    def log_config(self, overrides: Mapping[str, str] = _NOTHING) -> LogConfig:
        """Return the configuration for the logs of a topic: the broker's configuration, overridden
        by the topic's settings. Settings that are invalid (because they were stored by hand or by
        another version) are left out, because the topic must still work. They are reported by
        `check_topic`.
        """
        try:
            return self._log_defaults.with_overrides(overrides)
        except ConfigError:
            useless = unusable(overrides)
        try:
            return self._log_defaults.with_overrides(
                {name: text for name, text in overrides.items() if name not in useless}
            )
        except ConfigError:  # only the combination is invalid
            return self._log_defaults

    def check_topic(self, overrides: Mapping[str, str]) -> None:
        """Raise ConfigError if a topic on this broker cannot have this combination of settings."""
        self._log_defaults.with_overrides(overrides)

    def _check_together(self) -> None:
        self._check_authorization()
        if self.str("zookeeper.connect"):
            hosts_and_chroot(self.str("zookeeper.connect"))
        directories = self.log_directories()
        if not directories:
            raise ConfigError("log.dirs is empty; set at least one directory for the data")
        if len(set(directories)) < len(directories):
            raise ConfigError(f"log.dirs lists a directory twice: {', '.join(directories)}")
        for directory in directories:
            if directory.startswith(_TEMPORARY):
                self.warnings.append(
                    f"the data is in {directory}, a temporary directory that the system may "
                    "empty; set log.dirs"
                )

        for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
            if self.value(name) == 0:
                raise ConfigError(f"{name} is 0, which would delete everything; -1 means no limit")
        _check_addresses(self.str("max.connections.per.ip.overrides"))

    def _check_authorization(self) -> None:
        authorizer = self._values.get("authorizer.class.name")
        if authorizer:
            from barnabas.config.authorization_keys import check_authorizer  # few brokers need it

            check_authorizer(str(authorizer))
            return
        for name in ("super.users", "allow.everyone.if.no.acl.found"):
            if self._values.get(name):
                self.warnings.append(f"{name} has no effect: authorizer.class.name is not set")

    def _topic_defaults(self) -> dict[str, str]:
        """Return the broker's defaults for topic configs as text, by topic config."""
        texts = {key.name: self._topic_default(key) for key in TOPIC_KEYS.values()}
        return {name: text for name, text in texts.items() if text is not None}

    def _topic_default(self, key: ConfigKey) -> str | None:
        for synonym in key.synonyms:
            if synonym in self._values:
                text = self._in_topic_units(key, synonym)
                try:
                    key.parse(text)
                except ConfigError as error:  # the bounds of the topic config may be narrower
                    raise ConfigError(
                        f"{synonym}={self._texts[synonym].strip()}: {error}"
                    ) from None
                return text
        return None

    def _in_topic_units(self, key: ConfigKey, synonym: str) -> str:
        unit_ms = _MS_PER_UNIT.get(synonym.rpartition(".")[2])
        if unit_ms is None:
            return self._texts[synonym].strip()
        value = self.int(synonym)
        # As in Kafka, a negative retention time (log.retention.hours=-1) means that there is no
        # limit.
        return "-1" if value < 0 and key.name == "retention.ms" else f"{value * unit_ms}"

    # These four methods are named after the types that they return. In the class, everything below
    # such a method sees the method under that name instead of the type, so the methods come at the
    # end of the class, and `str` comes last.

    def list(self, name: str) -> list[str]:
        """Return the items of a list or of text that Kafka splits at commas, such as `log.dirs`."""
        value = self.value(name)
        if isinstance(value, str):
            value = [item.strip() for item in value.split(",") if item.strip()]
        assert isinstance(value, list | None), f"{name} is {value!r}"
        return value or []

    def bool(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is {value!r}"
        return value

    def int(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is {value!r}"
        return value

    def str(self, name: str) -> str:
        """Return the text, or an empty string if the key has no value."""
        value = self.value(name)
        if value is None:
            return ""
        assert isinstance(value, str), f"{name} is {value!r}"
        return value


def _of_listener(listener: str) -> str:
    """Return the prefix for the settings of one listener."""
    return f"listener.name.{listener.lower()}."


def _refuse_broken_promise(name: str, text: str) -> None:
    """Refuse to start if a setting promises protection that does not exist (SE-6)."""
    from barnabas.config.security_claims import broken_promise  # rarely needed at startup

    reason = broken_promise(name, text)
    if reason is not None:
        raise ConfigError(reason)


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """Set both `broker.id` and KRaft's `node.id`, because they have the same meaning."""
    texts = {name: text.strip() for name, text in properties.items()}
    broker_id = texts.get("broker.id", texts.get("node.id"))
    if broker_id is None:
        return texts
    if texts.get("node.id", broker_id) != broker_id:
        raise ConfigError(
            f"broker.id={broker_id} and node.id={texts['node.id']} are the same setting; set "
            "them to the same value or remove one of them"
        )
    return {**texts, "broker.id": broker_id, "node.id": broker_id}


def _check_addresses(text: str) -> None:
    """Raise ConfigError if the text is not of the form `host:number,host:number`."""
    for entry in filter(None, map(str.strip, text.split(","))):
        host, _, limit = entry.rpartition(":")
        if not (host and limit.isascii() and limit.isdigit()):
            raise ConfigError(
                f"max.connections.per.ip.overrides: {entry!r} does not have the form "
                "ADDRESS:CONNECTIONS, such as 127.0.0.1:200"
            )
