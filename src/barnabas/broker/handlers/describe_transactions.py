"""DescribeTransactions (key 65): describe the state of transactional ids (KIP-664)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import ShardOutcome, join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.coordinator.transaction_answers import describe_failed
from barnabas.errors import InvalidRequest, TransactionalIdAuthorizationFailed
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from barnabas.security.acl import Operation, ResourceType


def handle(context: Context, request: DescribeTransactionsRequest) -> Outcome:
    def answer(states: list[Message]) -> DescribeTransactionsResponse:
        found = cast(list[TransactionState], states)
        for state in found:
            # Topics that the client is not authorized to describe are omitted without an error
            # (KIP-664).
            state.topics = [
                each
                for each in state.topics
                if context.allowed_to(Operation.DESCRIBE, ResourceType.TOPIC, each.topic)
            ]
        return DescribeTransactionsResponse(transaction_states=found)

    return run_slices(_describe_all(context, request, answer))


def _describe_all(
    context: Context,
    request: DescribeTransactionsRequest,
    answer: Callable[[list[Message]], Message],
) -> Slices[Outcome]:
    pace = Pace()
    outcomes = []
    for name in dict.fromkeys(request.transactional_ids):
        outcomes.append(_describe(context, name))
        if pace.is_over():
            yield
    return join_outcomes(outcomes, answer)


def _describe(context: Context, name: str) -> ShardOutcome:
    if not context.is_allowed(name):
        return describe_failed(name, TransactionalIdAuthorizationFailed())
    if not name:
        return describe_failed(name, InvalidRequest())
    return context.node.transactions.ask(
        name,
        lambda machine, ticket, _: machine.describe(ticket, name),
        lambda error: describe_failed(name, error),
    )
