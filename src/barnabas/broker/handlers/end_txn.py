"""EndTxn (key 26): commit or abort a transaction (PR-7).

Answered when the outcome is in the log for good; its markers follow.
"""

from __future__ import annotations

from barnabas.broker.channel import Outcome
from barnabas.broker.context import Context
from barnabas.coordinator.transaction_answers import end_failed
from barnabas.errors import InvalidRequest, KafkaError, TransactionalIdAuthorizationFailed
from barnabas.protocol.messages.end_txn import EndTxnRequest


def handle(context: Context, request: EndTxnRequest) -> Outcome:
    name, version = request.transactional_id, context.version
    try:
        if not context.allowed(name):
            raise TransactionalIdAuthorizationFailed
        if not name:
            raise InvalidRequest
        shard = context.node.transactions.shard_of(name)
    except KafkaError as error:
        return end_failed(error, version)
    return shard.ask(
        lambda ticket, now_ms: shard.machine.end(ticket, request, version, now_ms),
        lambda error: end_failed(error, version),
    )
