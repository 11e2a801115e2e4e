"""BrokerConfig: one broker's settings, checked once and then read by name.

Invariant: every value it hands out has been parsed and lies within its key's bounds; whatever is
wrong is told when it is made, before a socket is opened or a file touched.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.broker_keys import BROKER_KEYS, PREFIXES
from barnabas.config.key import ConfigKey, ConfigValue, unknown_key
from barnabas.config.topic_keys import TOPIC_KEYS, LogConfig
from barnabas.errors import ConfigError

_MS_PER_UNIT = {"hours": 3_600_000, "minutes": 60_000}
_TEMPORARY = ("/tmp/", "/var/tmp/")


class BrokerConfig:
    """Typed access to a broker's properties.

    `warnings` lists, one line each, settings that Kafka knows and that change nothing here.
    """

    __slots__ = ("_log_defaults", "_texts", "_values", "warnings")

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Check everything; raises ConfigError with the key, the value and what is allowed."""
        self._texts: dict[str, str] = {}
        self._values: dict[str, ConfigValue] = {}
        self.warnings: list[str] = []
        for name, text in properties.items():
            self._set(name, text)
        self._check_together()
        self._log_defaults = LogConfig().with_overrides(self._topic_defaults())

    def is_set(self, name: str) -> bool:
        """Whether the properties set this key, be it to its default."""
        return name in self._values

    def value(self, name: str) -> ConfigValue:
        """The value of a key of any type, or its default; None is Kafka's null."""
        if name in self._values:
            return self._values[name]
        return BROKER_KEYS[name].default_value

    def log_directories(self) -> list[str]:
        """The entries of `log.dirs`, or else of `log.dir` (which takes several as well)."""
        return self.list("log.dirs") or self.list("log.dir")

    def log_config(self, overrides: Mapping[str, str] = {}) -> LogConfig:
        """What a topic's logs obey: its own settings on top of this broker's.

        Raises ConfigError on an unknown topic config or a bad value.
        """
        return self._log_defaults.with_overrides(overrides)

    def _set(self, name: str, text: str) -> None:
        key = BROKER_KEYS.get(name)
        if key is None:
            if not name.startswith(PREFIXES):
                raise unknown_key(name, BROKER_KEYS, "broker")
            self.warnings.append(f"{name} has no effect: it is for a plug-in or a secured listener")
            return
        self._values[name] = key.parse(text)
        self._texts[name] = text.strip()
        if key.inert:
            self.warnings.append(f"{name} has no effect: {key.inert}")

    def _check_together(self) -> None:
        if self.str("zookeeper.connect"):
            raise ConfigError(
                f"zookeeper.connect={self.str('zookeeper.connect')}: clusters on ZooKeeper are not "
                "there yet; leave it out and this broker runs alone, on a metadata store of its own"
            )
        directories = self.log_directories()
        if not directories:
            raise ConfigError("log.dirs is empty; name at least one directory for the data")
        if len(set(directories)) < len(directories):
            raise ConfigError(f"log.dirs names a directory twice: {', '.join(directories)}")
        for directory in directories:
            if directory.startswith(_TEMPORARY):
                self.warnings.append(
                    f"the data is in {directory}, a temporary directory, which the system may "
                    "empty; set log.dirs"
                )

    def _topic_defaults(self) -> dict[str, str]:
        """What the broker's settings say of topic configs, as text of the topic keys."""
        texts = {key.name: self._topic_default(key) for key in TOPIC_KEYS.values()}
        return {name: text for name, text in texts.items() if text is not None}

    def _topic_default(self, key: ConfigKey) -> str | None:
        for synonym in key.synonyms:
            if synonym in self._values:
                text = self._in_topic_units(key, synonym)
                try:
                    key.parse(text)
                except ConfigError as error:  # the topic's bounds can be the narrower ones
                    raise ConfigError(f"{synonym}={self._texts[synonym]}: {error}") from None
                return text
        return None

    def _in_topic_units(self, key: ConfigKey, synonym: str) -> str:
        unit_ms = _MS_PER_UNIT.get(synonym.rpartition(".")[2])
        if unit_ms is None:
            return self._texts[synonym]
        value = self.int(synonym)
        # Any negative time to keep means "for ever", as Kafka reads log.retention.hours=-1.
        return "-1" if value < 0 and key.name == "retention.ms" else f"{value * unit_ms}"

    # These four carry the names of their types, and a class body reads from top to bottom: below
    # each of them its name means the method, so they come last, and `str` the very last.

    def list(self, name: str) -> list[str]:
        """The items; also of a text that Kafka splits at commas itself, such as `log.dirs`."""
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
        """The text; a key without a value gives the empty string."""
        value = self.value(name)
        if value is None:
            return ""
        assert isinstance(value, str), f"{name} is {value!r}"
        return value
