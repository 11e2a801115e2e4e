"""Creates a SASL session for every connection that is made to a listener.

A change made by IncrementalAlterConfigs applies to all authentications that start after it, on both
new and open connections. Open connections remain open until their sessions end.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.sasl_session import SaslSession
from barnabas.broker.security.sasl_settings import SaslSettings
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.network.listeners import Listener
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.broker.security.scram_credentials import ScramCredentials
    from barnabas.config import BrokerConfig
    from barnabas.config.key import ConfigValue

_log = logging.getLogger(__name__)

_OF_ALL: Final = ("sasl.", "connections.max.reauth.ms", "connection.failed.authentication.")


class SaslListener:
    """Creates the SASL sessions of one listener."""

    __slots__ = ("_clock", "_credentials", "_listener", "_mechanisms", "_seen", "_settings")

    def __init__(
        self,
        config: BrokerConfig,
        listener: Listener,
        clock: WatchedClock,
        credentials: ScramCredentials,
    ) -> None:
        """Raises ConfigError."""
        self._listener = listener
        self._clock = clock
        self._credentials = credentials
        self._settings = self._build(config)
        self._seen = self._relevant(config)
        # All sessions share this dictionary, so that a mechanism that was removed cannot be used to
        # re-authenticate.
        self._mechanisms = dict(self._settings.mechanisms)

    @property
    def failure_delay_ms(self) -> int:
        return self._settings.failure_delay_ms

    @property
    def max_message_bytes(self) -> int:
        return self._settings.max_message_bytes

    def session(self) -> SaslSession:
        """Start authenticating a new connection."""
        return SaslSession(self._mechanisms, self._clock)

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if the current settings cannot be replaced with these."""
        if self._relevant(config) != self._seen:
            self._build(config)

    def configure(self, config: BrokerConfig) -> None:
        """Apply the new settings if they are valid."""
        seen = self._relevant(config)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._settings = self._build(config)
        except ConfigError as error:
            _log.error("keeping the previous SASL mechanisms at %s: %s", self._listener, error)
            return
        # Update the dictionary in place, because open sessions use it when they re-authenticate.
        self._mechanisms.clear()
        self._mechanisms.update(self._settings.mechanisms)
        _log.info("SASL mechanisms of %s: %s", self._listener, ", ".join(self._mechanisms))

    def _build(self, config: BrokerConfig) -> SaslSettings:
        return SaslSettings(config, self._listener, self._clock, self._credentials)

    def _relevant(self, config: BrokerConfig) -> dict[str, ConfigValue]:
        own = f"listener.name.{self._listener.name.lower()}."
        return {
            name: config.value(name)
            for name in config.set_names()
            if name.startswith((own, *_OF_ALL)) and not name.startswith(f"{own}ssl.")
        }
