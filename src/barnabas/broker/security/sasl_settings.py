"""Provides a snapshot of a listener's SASL configuration.

Everything is validated when the snapshot is created, so that no listener ever serves clients with
invalid settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.own_login import is_between_brokers, own_login
from barnabas.broker.security.sasl_session import EnabledMechanism
from barnabas.errors import ConfigError
from barnabas.security.jaas import LoginModule, check_mechanism, parse_jaas
from barnabas.security.oauthbearer import OAuthBearerServer
from barnabas.security.plain import PlainServer
from barnabas.security.protocol import SecurityProtocol
from barnabas.security.sasl import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SaslServer,
)

if TYPE_CHECKING:
    from barnabas.broker.network.listeners import Listener
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.broker.security.scram_credentials import ScramCredentials
    from barnabas.broker.security.signing_keys import SigningKeys
    from barnabas.config import BrokerConfig

_log = logging.getLogger(__name__)

_ENABLED: Final = "sasl.enabled.mechanisms"
_JAAS: Final = "sasl.jaas.config"
_LOCAL: Final = ("127.", "localhost", "::1")


class SaslSettings:
    """The mechanisms and limits for a single listener."""

    def __init__(
        self,
        config: BrokerConfig,
        listener: Listener,
        clock: WatchedClock,
        credentials: ScramCredentials,
    ) -> None:
        """Raises ConfigError."""
        self._config = config
        self._listener = listener
        self._clock = clock
        self._credentials = credentials
        self.failure_delay_ms = config.int("connection.failed.authentication.delay.ms")
        self.max_message_bytes = self._int("sasl.server.max.receive.size")
        self.mechanisms = {name: self._enable(name) for name in self._names()}
        self._warn_of_readable_secrets()
        if is_between_brokers(config, listener.name, listener.protocol):
            own_login(config, listener.name, listener.protocol)

    def _names(self) -> list[str]:
        value = self._config.for_listener(self._listener.name, _ENABLED)
        names = [name.strip() for name in value] if isinstance(value, list) else []
        if not names:
            raise ConfigError(f"{_ENABLED} is empty, but {self._listener} needs a mechanism")
        for name in names:
            # Kafka's default is GSSAPI, so the mechanisms of a SASL listener must be set explicitly
            # (SE-6).
            if name not in MECHANISMS:
                hint = "Kerberos" if name == "GSSAPI" else "it"
                raise ConfigError(
                    f"{_ENABLED}={','.join(names)}: {hint} is not supported on {self._listener}; "
                    f"choose from {', '.join(MECHANISMS)}"
                )
        return list(dict.fromkeys(names))

    def _enable(self, mechanism: str) -> EnabledMechanism:
        max_reauth_ms = self._int("connections.max.reauth.ms", mechanism)
        return EnabledMechanism(self._maker(mechanism), max_reauth_ms)

    def _maker(self, mechanism: str) -> Callable[[], SaslServer]:
        if mechanism == PLAIN:
            return partial(PlainServer, self._plain_users())
        if mechanism == OAUTHBEARER:
            return partial(OAuthBearerServer, self._signing_keys().verify)
        module = self._module(mechanism)
        if module is not None:
            check_mechanism(self._setting(mechanism), module, mechanism)
        # The SCRAM users are stored in the metadata tree. The login module only configures the
        # broker as a client.
        return partial(self._credentials.server, mechanism)

    def _plain_users(self) -> Mapping[str, str]:
        setting = self._setting(PLAIN)
        module = self._module(PLAIN)
        if module is None:
            raise ConfigError(
                f"{setting} is missing: {PLAIN} on {self._listener} needs users "
                "(org.apache.kafka.common.security.plain.PlainLoginModule required "
                'user_NAME="...";)'
            )
        check_mechanism(setting, module, PLAIN)
        if not module.users:
            raise ConfigError(f'{setting} defines no user; add an option user_NAME="..."')
        return module.users

    def _signing_keys(self) -> SigningKeys:
        # Imported here so that a broker without tokens never loads it.
        from barnabas.broker.security.signing_keys import SigningKeys
        from barnabas.security.token_rules import TokenRules

        value = partial(self._config.for_listener, self._listener.name, mechanism=OAUTHBEARER)
        module = self._module(OAUTHBEARER)
        if module is not None:
            check_mechanism(self._setting(OAUTHBEARER), module, OAUTHBEARER)
        audiences = value("sasl.oauthbearer.expected.audience")
        rules = TokenRules(
            audiences=audiences if isinstance(audiences, list) else (),
            issuer=str(value("sasl.oauthbearer.expected.issuer") or ""),
            clock_skew_ms=1000 * self._int("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER),
            subject_claim=str(value("sasl.oauthbearer.sub.claim.name")),
            scope_claim=str(value("sasl.oauthbearer.scope.claim.name")),
        )
        return SigningKeys(
            str(value("sasl.oauthbearer.jwks.endpoint.url") or ""),
            self._int("sasl.oauthbearer.jwks.endpoint.refresh.ms", OAUTHBEARER),
            self._int("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", OAUTHBEARER),
            rules,
            self._clock,
        )

    def _module(self, mechanism: str) -> LoginModule | None:
        """Return the login module that is configured for a mechanism, if there is one."""
        value = self._config.for_listener(self._listener.name, _JAAS, mechanism)
        if not isinstance(value, str) or not value.strip():
            return None
        return parse_jaas(self._setting(mechanism), value)

    def _setting(self, mechanism: str) -> str:
        name = f"listener.name.{self._listener.name.lower()}.{mechanism.lower()}.{_JAAS}"
        return name if self._config.is_set(name) else _JAAS

    def _int(self, name: str, mechanism: str = "") -> int:
        value = self._config.for_listener(self._listener.name, name, mechanism)
        assert isinstance(value, int), f"{name} is {value!r}"
        return value

    def _warn_of_readable_secrets(self) -> None:
        readable = [name for name in (PLAIN, OAUTHBEARER) if name in self.mechanisms]
        is_plain = self._listener.protocol is SecurityProtocol.SASL_PLAINTEXT
        if readable and is_plain and not self._listener.host.startswith(_LOCAL):
            _log.warning(
                "listener %s: %s sends secrets that anyone on the network can read; use SASL_SSL "
                "or SCRAM",
                self._listener,
                " and ".join(readable),
            )
