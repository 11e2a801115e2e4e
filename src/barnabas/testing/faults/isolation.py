"""Isolates brokers: blocks requests to them, and requests from them to other brokers."""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.broker.context import Context
from barnabas.broker.network.request_faults import ConnectionCut

_OF_A_BROKER = re.compile(r"broker-(\d+)-")  # as in broker.inter_broker.peers


class Isolation(NamedTuple):
    """The isolated brokers. Requests do not reach the brokers in `unreachable`; requests from the
    brokers in `mute` do not reach other brokers.
    """

    unreachable: frozenset[int] = frozenset()
    mute: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.unreachable or self.mute)

    def check(self, context: Context) -> None:
        """Raise ConnectionCut for a request that would not have arrived because of
        the isolation.
        """
        broker_id = context.node.broker_id
        if broker_id in self.unreachable:
            raise ConnectionCut(f"broker {broker_id} is isolated")
        sender = sender_of(context.client_id)
        # A broker can still reach itself, for example if it is the controller.
        if sender in self.mute and sender != broker_id:
            raise ConnectionCut(f"broker {sender}, which sent it, is isolated")


def sender_of(client_id: str | None) -> int | None:
    """Return the broker that uses this client id for its requests, or None if a client uses it."""
    found = _OF_A_BROKER.match(client_id or "")
    return int(found[1]) if found else None
