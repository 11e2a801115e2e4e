"""AddOffsetsToTxn (key 25): add the offsets partition of a group to a transaction.

The request is handled by the transaction coordinator. After that, the producer sends the offsets to
the group coordinator with TxnOffsetCommit.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import ShardOutcome, settle
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.mutation_quota import mutation_quota
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.coordinator.transaction_answers import add_offsets_failed
from barnabas.errors import (
    GroupAuthorizationFailed,
    InvalidRequest,
    KafkaError,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.security.acl import Operation, ResourceType
from barnabas.types import TopicPartition


def handle(context: Context, request: AddOffsetsToTxnRequest) -> Outcome:
    name, group = request.transactional_id, request.group_id
    try:
        if not context.is_allowed(name):
            raise TransactionalIdAuthorizationFailed
        # The group coordinator checks the same permission for TxnOffsetCommit. As in Kafka, it is
        # checked here too, so that the producer fails before it sends anything.
        if not context.allowed_to(Operation.READ, ResourceType.GROUP, group):
            raise GroupAuthorizationFailed
        # As in Kafka, check authorization first. The coordinator rejects an empty id.
        if not name:
            raise InvalidRequest
        if GROUP_TOPIC not in context.node.image.topics:
            return _create_topic_and_ask(context, request)
        return _ask(context, request)
    except KafkaError as error:
        return add_offsets_failed(error, context.version)


async def _create_topic_and_ask(context: Context, request: AddOffsetsToTxnRequest) -> Message:
    """Create `__consumer_offsets` if it does not exist, because the producer looks up the group
    coordinator next.
    """
    node = context.node
    try:
        charge = mutation_quota(context).take
        await node.internal_topics.make(GROUP_TOPIC, node.config, charge, context.origin)
        outcome = _ask(context, request)
    except KafkaError as error:
        return add_offsets_failed(error, context.version)
    return await settle(outcome, node.replicas)


def _ask(context: Context, request: AddOffsetsToTxnRequest) -> ShardOutcome:
    """Ask the coordinator. Raises KafkaError if this broker does not host it."""
    node, version = context.node, context.version
    partition = TopicPartition(GROUP_TOPIC, node.groups.partition_of(request.group_id))
    shard = node.transactions.shard_of(request.transactional_id)
    return shard.ask(
        lambda machine, ticket, now: machine.add_offsets(ticket, request, partition, version, now),
        lambda error: add_offsets_failed(error, version),
    )
