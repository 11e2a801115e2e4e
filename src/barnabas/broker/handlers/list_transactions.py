"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664)."""

from __future__ import annotations

from typing import cast

from barnabas.broker.asked import joined
from barnabas.broker.channel import Outcome
from barnabas.broker.context import Context
from barnabas.broker.shard import Shard
from barnabas.coordinator.transaction_answers import list_failed, listed_together
from barnabas.coordinator.transactions import Transactions
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
            if context.allowed(state.transactional_id)
        ]
        return together

    transactions = context.node.transactions
    if transactions.is_loading:
        return list_failed(CoordinatorLoadInProgress())
    return joined([_list(shard, request) for shard in transactions.loaded], answer)


def _list(shard: Shard[Transactions], request: ListTransactionsRequest) -> Outcome:
    return shard.ask(
        lambda ticket, now_ms: shard.machine.list_transactions(ticket, request, now_ms),
        list_failed,
    )
