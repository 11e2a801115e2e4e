"""SyncGroup (key 14): get a member's assignment; the answer waits for the leader (GC-2)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import (
    CoordinatorLoadInProgress,
    GroupAuthorizationFailed,
    InconsistentGroupProtocol,
    KafkaError,
    RebalanceInProgress,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL = 5


def handle(context: Context, request: SyncGroupRequest) -> Outcome:
    if not context.is_allowed(request.group_id):
        return _failure(GroupAuthorizationFailed())
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    # KIP-559: a member states the protocol with which it joined; a mismatch is refused before the
    # machine checks its generation.
    if context.version >= _NAMES_PROTOCOL and not names_protocol:
        return _failure(InconsistentGroupProtocol())
    return context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.sync(ticket, request, now),
        _failure,
    )


def _failure(error: KafkaError) -> SyncGroupResponse:
    if isinstance(error, CoordinatorLoadInProgress):
        # This request's rebalance is lost. Old clients do not expect the error itself, and have to
        # rejoin anyway.
        error = RebalanceInProgress()
    return SyncGroupResponse(error_code=error.code)
