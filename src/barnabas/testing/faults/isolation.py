"""Cuts off brokers: from requests to them, and from reaching others."""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.broker.context import Context
from barnabas.broker.network.request_faults import ConnectionCut

_OF_A_BROKER = re.compile(r"broker-(\d+)-")  # see broker.inter_broker.peers


class Isolation(NamedTuple):
    """`unreachable`: brokers that no request reaches; `mute`: brokers whose requests reach no
    other.
    """

    unreachable: frozenset[int] = frozenset()
    mute: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.unreachable or self.mute)

    def check(self, context: Context) -> None:
        """Raise ConnectionCut for a request that could not have arrived."""
        broker_id = context.node.broker_id
        if broker_id in self.unreachable:
            raise ConnectionCut(f"broker {broker_id} is isolated")
        sender = sender_of(context.client_id)
        # A broker can still reach itself, for example its own controller.
        if sender in self.mute and sender != broker_id:
            raise ConnectionCut(f"broker {sender}, which sent it, is isolated")


def sender_of(client_id: str | None) -> int | None:
    """Return the broker that sends requests with this client id; None for a client's id."""
    found = _OF_A_BROKER.match(client_id or "")
    return int(found[1]) if found else None
