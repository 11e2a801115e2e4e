"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

There are no coordinators yet, and the answer says so in the protocol's own words. It is served at
all because librdkafka before 2.11.1 takes a broker without it for one that cannot do lz4.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.errors import CoordinatorNotAvailable
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHED = 4  # KIP-699: several keys in one request
_WHY = "this broker has no group or transaction coordinator yet"


def handle(context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    # A client that subscribes goes on asking, and says nothing: its user looks here.
    context.node.tell_once(
        "client %s asked for a coordinator: there are no consumer groups and no transactions yet, "
        "so it will wait; let it assign its partitions (kafka-console-consumer: --partition)",
        context.client_id,
    )
    if context.version < _BATCHED:
        return FindCoordinatorResponse(
            error_code=CoordinatorNotAvailable.code, error_message=_WHY, node_id=-1, port=-1
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key,
                node_id=-1,
                port=-1,
                error_code=CoordinatorNotAvailable.code,
                error_message=_WHY,
            )
            for key in request.coordinator_keys
        ]
    )
