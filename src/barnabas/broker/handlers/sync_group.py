"""SyncGroup (key 14): return a member's assignment once the group leader has sent it (GC-2)."""

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
    # KIP-559: a member states the protocol that it joined with. A mismatch is rejected before the
    # machine checks the generation.
    if context.version >= _NAMES_PROTOCOL and not names_protocol:
        return _failure(InconsistentGroupProtocol())
    return context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.sync(ticket, request, now),
        _failure,
    )


def _failure(error: KafkaError) -> SyncGroupResponse:
    if isinstance(error, CoordinatorLoadInProgress):
        # The rebalance is lost, so members must rejoin anyway. Old clients do not expect the
        # original error.
        error = RebalanceInProgress()
    return SyncGroupResponse(error_code=error.code)
