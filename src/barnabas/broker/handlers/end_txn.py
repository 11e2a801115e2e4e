"""EndTxn (key 26): commit or abort a transaction (PR-7).

The response is sent once the outcome is committed to the log. The markers are written after that.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.coordinator.transaction_answers import end_failed
from barnabas.errors import InvalidRequest, TransactionalIdAuthorizationFailed
from barnabas.protocol.messages.end_txn import EndTxnRequest


def handle(context: Context, request: EndTxnRequest) -> Outcome:
    name, version = request.transactional_id, context.version
    if not context.is_allowed(name):
        return end_failed(TransactionalIdAuthorizationFailed(), version)
    if not name:
        return end_failed(InvalidRequest(), version)
    return context.node.transactions.ask(
        name,
        lambda machine, ticket, now: machine.end(ticket, request, version, now.wall_ms),
        lambda error: end_failed(error, version),
    )
