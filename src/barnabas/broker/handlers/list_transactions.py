"""ListTransactions (key 66): list the transactional ids that this broker coordinates (KIP-664)."""

from __future__ import annotations

from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.coordinator.transaction_answers import list_failed, listed_together
from barnabas.errors import CoordinatorLoadInProgress
from barnabas.protocol.message import Message
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)


def handle(context: Context, request: ListTransactionsRequest) -> Outcome:
    def answer(messages: list[Message]) -> ListTransactionsResponse:
        parts = cast(list[ListTransactionsResponse], messages)
        together = listed_together(parts, request.state_filters)
        together.transaction_states = [
            state
            for state in together.transaction_states
            if context.is_allowed(state.transactional_id)
        ]
        return together

    transactions = context.node.transactions
    # While a partition is being loaded, Kafka returns only an error for this request, unlike for
    # ListGroups. A tool that looks for hanging transactions must not mistake a partial list for a
    # complete one.
    if transactions.is_loading:
        return list_failed(CoordinatorLoadInProgress())
    outcomes = [
        shard.ask(
            lambda machine, ticket, now: machine.list_transactions(ticket, request, now.wall_ms),
            list_failed,
        )
        for shard in transactions.ready
    ]
    return join_outcomes(outcomes, answer)
