"""Determines how this broker authenticates itself to other brokers.

listener.name.inner.scram-sha-256.sasl.jaas.config=
    org.apache.kafka.common.security.scram.ScramLoginModule required
    username="broker" password="secret";
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.security.config import SecurityConfig
from barnabas.errors import ConfigError
from barnabas.security.sasl import OAUTHBEARER

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig
    from barnabas.security.protocol import SecurityProtocol

_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_JAAS: Final = "sasl.jaas.config"
_OF_TOKENS: Final = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.buffer.seconds",
)


def own_login(config: BrokerConfig, listener: str, protocol: SecurityProtocol) -> SecurityConfig:
    """Return the security options for a connection to this listener on another broker.

    Raises ConfigError if the connection requires credentials and none are configured.
    """
    options = SecurityConfig.of_listener(protocol, partial(config.for_listener, listener))
    if not protocol.uses_sasl:
        return options
    mechanism = str(config.for_listener(listener, _MECHANISM))
    jaas = str(config.for_listener(listener, _JAAS, mechanism) or "")
    login = options._replace(sasl_mechanism=mechanism, sasl_jaas_config=jaas)
    # A broker's OAuth settings have the same names as a client's options.
    if mechanism == OAUTHBEARER:
        tokens: dict[str, Any] = {
            name.replace(".", "_"): config.for_listener(listener, name, mechanism)
            for name in _OF_TOKENS
        }
        login = login._replace(**{name: each for name, each in tokens.items() if each is not None})
    try:
        login.check()
    except ConfigError as error:
        raise ConfigError(
            f"{_MECHANISM}={mechanism}, which brokers use to authenticate at listener "
            f"{listener}: {error}"
        ) from None
    return login


def is_between_brokers(config: BrokerConfig, listener: str, protocol: SecurityProtocol) -> bool:
    """Return whether this listener is used by brokers or controllers to reach each other."""
    name = config.str("inter.broker.listener.name").upper()
    return listener in (name, config.str("control.plane.listener.name").upper()) or (
        not name and protocol.value == config.str("security.inter.broker.protocol")
    )
