"""Handles TLS for one listener, whose certificate can be renewed at run time.

    connection --> accept --> TlsTransport --> the name of its certificate --> the router

A new certificate can come from IncrementalAlterConfigs on `listener.name.<listener>.ssl.*` or from
a file that has changed. It is used for new connections, while open connections are not affected. A
certificate that cannot be used is rejected with the reason, and the old one is kept.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.metrics import Family, Sample, gauge
from barnabas.net.tls_failures import TlsFailure, TlsInterrupted
from barnabas.net.tls_transport import TlsTransport
from barnabas.net.turns import Turns
from barnabas.printable import has_control_characters
from barnabas.security.der import End, alternative_names, end_of
from barnabas.security.file_stamps import Stamps, stamps_of
from barnabas.security.key_stores import load_key_store
from barnabas.security.pem import der_of, pem_blocks
from barnabas.security.principal_names import NoRuleMatches, PrincipalNames, subject_of
from barnabas.security.tls import allowed_suites, client_context, server_context
from barnabas.security.tls_settings import TlsSettings

if TYPE_CHECKING:
    import socket

    from barnabas.broker.network.listeners import Listener
    from barnabas.clock import Clock
    from barnabas.config import BrokerConfig
    from barnabas.net.connection import Connection

_log = logging.getLogger(__name__)

_HANDSHAKE_MS = 10_000  # the longest handshake, regardless of connections.max.idle.ms
_LOOK_EVERY_S = 2.0
_NEWEST = "TLSv1.3"
_DAY_S = 86_400
_WARN_DAYS = 30


class _State(NamedTuple):
    """A TLS context, and a snapshot of the settings and files from which it was built."""

    settings: TlsSettings
    context: ssl.SSLContext
    names: PrincipalNames
    suites: frozenset[str]
    subject: str
    hosts: frozenset[bytes]
    end: End  # when the certificate or an authority included with it expires
    stamps: Stamps


class ServerTls:
    """Provides the TLS contexts of a listener, and watches its files between calls of `start` and
    `close`.
    """

    __slots__ = (
        "_clock",
        "_config",
        "_handshake_ms",
        "_is_inter_broker",
        "_listener",
        "_seen",
        "_state",
        "_timer",
        "_turns",
        "_warned_of",
    )

    def __init__(
        self,
        listener: Listener,
        config: BrokerConfig,
        clock: Clock,
        *,
        is_inter_broker: bool = False,
    ) -> None:
        """Raises ConfigError if a setting is invalid, or if other brokers would reject an
        inter-broker listener's certificate.
        """
        self._listener = listener
        self._clock = clock
        self._warned_of: tuple[End, int] | None = None
        self._is_inter_broker = is_inter_broker
        self._turns = Turns()
        self._timer: asyncio.TimerHandle | None = None
        self._take(config, self._build(config))

    @property
    def context(self) -> ssl.SSLContext:
        """The context to use for new connections."""
        return self._state.context

    @property
    def listener_name(self) -> str:
        return self._listener.name

    @property
    def days_left(self) -> float:
        """Return the number of days until the certificate expires, which is negative if it has
        expired.
        """
        return (self._state.end.at_s - self._clock.wall_ms() / 1000) / _DAY_S

    # ---- its settings ----

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if the current settings cannot be replaced with these."""
        if self._differs(config):
            self._check_successor(config, self._build(config))

    def configure(self, config: BrokerConfig) -> None:
        """Apply the new settings if they are valid."""
        if self._differs(config):
            self._replace(config)
            return
        self._config = config
        self._handshake_ms = _handshake_ms(config)
        self.reload()

    def reload(self) -> None:
        """Load the files again if any file has changed since the last attempt."""
        if stamps_of(self._state.settings.files) != self._seen:
            self._replace(self._config)

    def start(self) -> None:
        """Start to watch the files and the expiry of the certificate."""
        self._warn_of_end()
        self._look_later()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self.reload()
        self._warn_of_end()
        self._look_later()

    def _warn_of_end(self) -> None:
        """Warn once a day, beginning a month before the certificate expires."""
        days = math.floor(self.days_left)
        end = self._state.end
        warning = (end, days)
        # The key includes the expiry, so that there is a separate warning for a new certificate.
        if days >= _WARN_DAYS or warning == self._warned_of:
            return
        self._warned_of = warning
        name = self._listener.name
        if days < 0:
            _log.error(
                "listener %s: its certificate expired at %s, so clients reject it", name, end.text
            )
        else:
            _log.warning(
                "listener %s: its certificate expires in %s, at %s; renew it",
                name,
                counted(days, "day"),
                end.text,
            )

    def _replace(self, config: BrokerConfig) -> None:
        try:
            self._seen = stamps_of(_settings_of(config, self._listener).files)
            state = self._build(config)
            self._check_successor(config, state)
        except ConfigError as error:
            _log.error("keeping the previous certificate: %s", error)
            return
        self._take(config, state)
        _log.info("listener %s has a new certificate: %s", self._listener.name, state.subject)

    def _take(self, config: BrokerConfig, state: _State) -> None:
        self._config = config
        self._state = state
        self._seen = state.stamps
        self._handshake_ms = _handshake_ms(config)

    def _differs(self, config: BrokerConfig) -> bool:
        rules = "ssl.principal.mapping.rules"
        name = self._listener.name
        return _settings_of(config, self._listener) != self._state.settings or config.for_listener(
            name, rules
        ) != self._config.for_listener(name, rules)

    def _build(self, config: BrokerConfig) -> _State:
        settings = _settings_of(config, self._listener)
        # Do this first, so that later changes are found the next time.
        stamps = stamps_of(settings.files)
        try:
            context = server_context(settings)
            store = load_key_store(settings)
            assert store is not None
            chain = [der_of(block) for block in pem_blocks(store.chain)]
            own = chain[0]
            rules = config.for_listener(self._listener.name, "ssl.principal.mapping.rules")
            names = PrincipalNames(str(rules))
            subject, hosts = subject_of(own), alternative_names(own)
            end = min(map(end_of, chain))
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"listener {self._listener.name}: {error}") from None
        suites = allowed_suites(settings)
        state = _State(settings, context, names, suites, subject, hosts, end, stamps)
        if self._is_inter_broker:
            # Check this at startup, because brokers that reject each other's certificates would
            # appear to have a network failure.
            self._check_trust(state)
        return state

    def _check_trust(self, state: _State) -> None:
        """Raise ConfigError if brokers with these settings could not connect to each other."""
        try:
            client = client_context(state.settings._replace(endpoint_identification_algorithm=""))
            _shake_hands(client, state.context)
        except (ssl.SSLError, ConfigError) as error:
            reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error
            raise ConfigError(
                f"listener {self._listener.name}: brokers would not trust each other: the "
                f"certificate in ssl.keystore.* is not trusted by ssl.truststore.* ({reason})"
            ) from None

    def _check_successor(self, config: BrokerConfig, state: _State) -> None:
        name, old = self._listener.name, self._state
        # KIP-978: clients and rules may use these names to identify the broker, so they cannot
        # change at run time unless the operator has allowed it.
        if state.subject != old.subject and not config.for_listener(name, "ssl.allow.dn.changes"):
            raise ConfigError(
                f"listener {name}: the new certificate has the subject {state.subject}, the old "
                f"one {old.subject}; if this is intended, set ssl.allow.dn.changes=true"
            )
        if not state.hosts >= old.hosts and not config.for_listener(name, "ssl.allow.san.changes"):
            raise ConfigError(
                f"listener {name}: the new certificate lacks host names of the old one; if this "
                "is intended, set ssl.allow.san.changes=true"
            )

    # ---- connections ----

    async def accept(self, accepted: socket.socket, connection: Connection) -> None:
        """Perform the handshake, and pass the connection to its reader. Raises TlsFailure or
        OSError.
        """
        transport = TlsTransport(
            connection,
            self._state.context,
            turns=self._turns,
            opened=partial(self._on_opened, connection, self._state),
        )
        loop = asyncio.get_running_loop()
        is_taken = False
        try:
            async with asyncio.timeout(self._handshake_ms / 1000):
                await loop.connect_accepted_socket(lambda: transport, accepted)
                is_taken = True
                await transport.handshake()
        except TimeoutError:
            transport.abort()
            raise TlsInterrupted(f"no TLS handshake within {self._handshake_ms} ms") from None
        except BaseException:
            transport.abort()
            raise
        finally:
            # The event loop does not own the socket yet, so it must be closed here.
            if not is_taken and not transport.was_attached:
                accepted.close()

    def _on_opened(self, connection: Connection, state: _State, tls: ssl.SSLObject) -> None:
        """Set the peer's name to the name in its certificate.

        Raises TlsFailure if the certificate names no user.
        """
        cipher = tls.cipher()
        # Python can restrict the cipher suites only for TLS 1.2, so TLS 1.3 cipher suites are
        # checked after the handshake.
        if tls.version() == _NEWEST and cipher is not None and cipher[0] not in state.suites:
            raise TlsFailure(f"it requested {cipher[0]}, which is not in ssl.cipher.suites")
        certificate = tls.getpeercert(binary_form=True)
        # If no certificate has been verified, the client is User:ANONYMOUS.
        if certificate is None or state.context.verify_mode is ssl.CERT_NONE:
            return
        try:
            name = state.names.name_of(subject_of(certificate))
            if has_control_characters(name):
                raise ValueError("the name in its certificate contains control characters")
            connection.peer_name = name
        except (NoRuleMatches, ValueError) as error:
            raise TlsFailure(str(error)) from None


def _handshake_ms(config: BrokerConfig) -> int:
    idle_ms = config.int("connections.max.idle.ms")
    return min(_HANDSHAKE_MS, idle_ms) if idle_ms >= 0 else _HANDSHAKE_MS


def _settings_of(config: BrokerConfig, listener: Listener) -> TlsSettings:
    """Return a listener's settings.

    As in Kafka, a listener with SASL requests a client certificate only if its own settings require
    one.
    """

    def text_of(name: str) -> str:
        value = config.for_listener(listener.name, name)
        if isinstance(value, list):
            return ",".join(value)
        return "" if value is None else str(value)

    settings = TlsSettings.read(text_of)
    own = f"listener.name.{listener.name.lower()}.ssl.client.auth"
    # KIP-684: the general `ssl.client.auth` does not apply to listeners where SASL identifies the
    # client.
    if listener.protocol.uses_sasl and not config.is_set(own):
        return settings._replace(client_auth="none")
    return settings


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Perform a handshake entirely in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


def certificate_families(tls: Sequence[ServerTls]) -> Iterator[Family]:
    """Yield the metric for certificates, which does not exist in Kafka."""
    yield gauge(
        "barnabas_certificate_days_left",
        "Days until a listener's certificate expires; negative after its expiry",
        [Sample(each.days_left, (("listener", each.listener_name),)) for each in tls],
    )
