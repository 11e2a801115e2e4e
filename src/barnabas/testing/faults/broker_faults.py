"""`broker.faults`: what goes wrong in an embedded broker, by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from barnabas.testing.faults.request_rules import RequestRules

if TYPE_CHECKING:
    from barnabas.broker.embedded.broker import Broker
    from barnabas.broker.server import Server
    from barnabas.testing.faults.arguments import RuleArguments
    from barnabas.testing.faults.rule import Rule


class BrokerFaults:
    """The faults of one embedded broker; they outlive a stop and a start of it.

    All methods may be called in any thread but the broker's own, before the start, too.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rules = RequestRules(self._rules_changed)
        self._server: Server | None = None  # the one that runs

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force, in the order in which they are tried; spent ones included."""
        return self._rules.rules

    def add(self, **arguments: Unpack[RuleArguments]) -> Rule:
        """Make requests fail that match, from now on.

            with broker.faults.add(api="Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER"):
                ...

        Which requests: `api` (Kafka's name, "Produce"), and to narrow it `topic`, `partition`,
        `client_id`, `broker` (an id), `listener` (a name, "PLAINTEXT"); `replicas=True` for what
        followers fetch, too. What happens: one of `error` (Kafka's name of an error that this API
        can answer; the request is not carried out), `cut=True` (the connection is closed, and the
        request not carried out), `drop=True` (it is carried out, and the connection closed instead
        of the answer); `delay_ms` alone or before one of these. How often: `count` times at most,
        the first `after` matching requests unhurt. Of several rules that match the first is
        applied. Use it as a context manager to remove it at the end of a block.

        Raises ConfigError for what is misspelt, and for a rule that can never match.
        """
        given: dict[str, Any] = dict(arguments)
        server = self._server
        if server is None:
            return self._rules.add(given)
        listeners = [each.name for each in server.listeners]
        return self._rules.add(given, (server.broker_id,), listeners)

    def clear(self) -> None:
        """Remove all faults."""
        self._rules.clear()

    # ---- on the broker's loop ----

    def attach(self, server: Server) -> None:
        """Apply the rules to a broker that has started."""
        self._server = server
        self._inject(bool(self.rules))

    def detach(self) -> None:
        """The broker stops."""
        self._server = None

    def _inject(self, has_rules: bool) -> None:
        if self._server is not None:
            self._server.parts.network.inject(self._rules if has_rules else None)

    def _rules_changed(self, has_rules: bool) -> None:
        if self._server is not None:
            self._broker.thread.call(lambda: self._inject(bool(self.rules)))
