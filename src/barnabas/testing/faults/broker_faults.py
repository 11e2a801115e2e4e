"""Implements `broker.faults`: a broker's faults, which are set by rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import ConfigError
from barnabas.protocol.codec import Message
from barnabas.testing.faults.isolation import Isolation
from barnabas.testing.faults.machine_faults import (
    ClockFault,
    DiskFault,
    MachineFaults,
    clock_fault,
    disk_fault,
)
from barnabas.testing.faults.request_rules import RequestRules
from barnabas.testing.faults.temporary_fault import Temporary

if TYPE_CHECKING:
    from barnabas.broker.server import Server
    from barnabas.testing.faults.arguments import RuleArguments
    from barnabas.testing.faults.rule import Rule

Call = Callable[[Callable[[], None]], None]
"""Calls a function on the brokers' loop, and returns when the call has finished."""


class Faults:
    """The faults of one broker, or of all brokers of a cluster. The faults remain set after a
    restart.

    All methods may be called in any thread except the broker's own, even before the start.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._rules = RequestRules(self._apply)
        self._isolation = Isolation()
        self._disks: dict[int | None, DiskFault] = {}  # by broker; None: all other brokers
        self._clocks: dict[int | None, ClockFault] = {}
        self._servers: dict[int, Server] = {}  # the running brokers

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order in which they are matched, including rules that no
        longer apply.
        """
        return self._rules.rules

    def add(self, **arguments: Unpack[RuleArguments]) -> Rule:
        """Make matching requests fail from now on.

            with broker.faults.add(api="Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER"):
                ...

        The rule matches requests of `api` (Kafka's name, such as "Produce"). `topic`, `partition`,
        `client_id`, `broker` (an id) and `listener` (a name, such as "PLAINTEXT") narrow it down,
        and `replicas=True` includes followers' fetches. The effect is one of `error` (Kafka's name
        for an error that this API can return; the request is not carried out), `cut=True` (the
        connection is closed, and the request is not carried out) and `drop=True` (the request is
        carried out, but the connection is closed instead of answering). `delay_ms` can be set alone
        or together with one of these, which then follows the delay. The rule is applied at most
        `count` times, after the first `after` matching requests have passed. If several rules
        match, only the first is applied. Use the rule as a context manager to remove it at the end
        of a block.

        Raises ConfigError for a misspelt argument, and for a rule that can never match.
        """
        given: dict[str, Any] = dict(arguments)
        servers = list(self._servers.values())
        listeners = {each.name for server in servers for each in server.listeners}
        return self._rules.add(given, self._broker_ids(), listeners)

    def disk(
        self,
        *,
        full: bool = False,
        error: str | None = None,
        delay_ms: int = 0,
        broker: int | None = None,
    ) -> Temporary:
        """Make the log directories' disk fail until `remove()` or the end of the `with` block.

        `full`: writes fail with ENOSPC. `error`: writes and syncs fail with this error ("EIO").
        `delay_ms`: each write and sync takes this much longer, and the broker waits as for any slow
        disk. `broker`: in a cluster, the only broker affected; None: all. Another call replaces the
        fault. As in Kafka, a broker without a usable log directory stops by itself: `stop` then
        raises OSError with the reason. Raises ConfigError.
        """
        fault = disk_fault(full=full, error=error, delay_ms=delay_ms)
        self._check_broker(broker)
        self._disks[broker] = fault
        self._apply()
        return Temporary(partial(self._restore, self._disks, broker, fault))

    def clock(
        self, *, offset_ms: int = 0, frozen: bool = False, broker: int | None = None
    ) -> Temporary:
        """Move or stop the wall clock until `remove()` or the end of the `with` block.

        `offset_ms`: how far to set the clock forward, or back if negative. `frozen`: stop the
        clock. Timeouts and sessions are unaffected, because they use the monotonic clock. After a
        jump of more than a minute, a broker removes nothing by age for five minutes, because a
        wrong clock must not cause data loss. `broker`: in a cluster, the only broker affected;
        None: all. Raises ConfigError.
        """
        fault = clock_fault(offset_ms=offset_ms, frozen=frozen)
        self._check_broker(broker)
        self._clocks[broker] = fault
        self._apply()
        return Temporary(partial(self._restore, self._clocks, broker, fault))

    def clear(self) -> None:
        """Remove all rules, and restore the disks and clocks."""
        self._disks.clear()
        self._clocks.clear()
        self._rules.clear()

    # ---- methods that run on the brokers' loop ----

    def attach(self, server: Server) -> None:
        """Apply the faults to a broker that has just started."""
        self._servers[server.broker_id] = server
        self._apply_to(server)

    def detach(self, broker_id: int) -> None:
        """Remove a broker that is stopping."""
        self._servers.pop(broker_id, None)

    def handle(
        self, context: Context, request: Message, handler: Callable[[Context, Any], Outcome]
    ) -> Outcome:
        """Handle stage one of a request (`broker.network.request_faults`)."""
        self._isolation.check(context)
        return self._rules.handle(context, request, handler)

    # ---- internal methods ----

    def _machine(self) -> dict[str, dict[int | None, Any]]:
        """Return the disk and clock faults of each broker."""
        return {"disk": self._disks, "clock": self._clocks}

    def _broker_ids(self) -> tuple[int, ...]:
        return tuple(self._servers)

    def _check_broker(self, broker_id: int | None) -> None:
        known = self._broker_ids()
        if broker_id is not None and known and broker_id not in known:
            raise ConfigError(f"broker={broker_id}: the brokers are {', '.join(map(str, known))}")

    def _restore(
        self, faults: dict[int | None, Any], broker: int | None, fault: DiskFault | ClockFault
    ) -> None:
        # Compare identities, because a later fault with an equal value is a different fault.
        if faults.get(broker) is fault:  # otherwise, it was replaced
            del faults[broker]
            self._apply()

    def _apply(self) -> None:
        # Before the start, nothing can be changed; `attach` will apply the faults.
        if self._servers:
            self._call(self._apply_to_all)

    def _apply_to_all(self) -> None:
        for server in self._servers.values():
            self._apply_to(server)

    def _apply_to(self, server: Server) -> None:
        broker_id = server.broker_id
        is_needed = bool(self._rules.rules or self._isolation)
        # Without rules, requests take the normal path, with no check for faults.
        server.parts.network.inject(self if is_needed else None)
        machine = MachineFaults(server.seams)
        machine.spoil_disk(self._disks.get(broker_id, self._disks.get(None)))
        machine.spoil_clock(self._clocks.get(broker_id, self._clocks.get(None)))
