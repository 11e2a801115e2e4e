"""What a coordinator on another broker has answered, and how long that counts (KIP-890, part 1)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.coordinator.verifier import Unverified, Verifier
from barnabas.broker.inter_broker.peer_links import PeerLinks
from barnabas.broker.inter_broker.peers import Peers
from barnabas.coordinator.decision import TransactionalBatch
from barnabas.errors import CoordinatorNotAvailable
from barnabas.types import TopicPartition
from tests.kit.broker.topics import create
from tests.kit.broker.transactional import TransactionalProducer, running, talk
from tests.kit.raw_client import RawClient

NAME = TopicPartition("t", 0)
UNKNOWN = CoordinatorNotAvailable.code


def test_an_answer_counts_once_and_until_a_marker_comes_pr_7(tmp_path: Path) -> None:
    """PR-7: it was about the transaction that the marker has ended; the next one may not have this
    partition, and a batch taken into it would never end."""
    batches: list[TransactionalBatch] = []

    def begin(client: RawClient) -> None:
        create(client, "t")
        producer = TransactionalProducer(client, "tx").begun()
        assert producer.add("t", 0) == [0]
        batches.append(TransactionalBatch("tx", producer.producer_id, producer.epoch))

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, begin)
            (batch,) = batches
            asked = [Unverified(NAME, batch)]
            peers = Peers(CurrentConfig(server.config), server.clock, server.node.random)
            links = PeerLinks(server.node.view, peers, "test")
            verifier = Verifier(server.node.view, CurrentConfig(server.config), links)
            try:
                asking = asyncio.ensure_future(verifier.verify(asked))
                await asyncio.sleep(0)
                assert verifier.take(NAME, batch) == UNKNOWN, "there is no answer yet"
                await asking
                later = batch._replace(producer_epoch=batch.producer_epoch + 1)
                assert verifier.take(NAME, later) == UNKNOWN, "it was about another epoch"
                assert verifier.take(NAME, batch) == 0
                assert verifier.take(NAME, batch) == UNKNOWN, "it has been taken"

                asking = asyncio.ensure_future(verifier.verify(asked))
                await asyncio.sleep(0)
                verifier.on_marker(NAME, batch.producer_id)
                await asking
                assert verifier.take(NAME, batch) == UNKNOWN, "it was asked before the marker"

                await verifier.verify(asked)
                verifier.on_marker(NAME, batch.producer_id)
                assert verifier.take(NAME, batch) == UNKNOWN, "it was answered before the marker"
            finally:
                links.close()

    asyncio.run(scenario())
